"""From scheduling strategies and label selectors to proto NodeConstraint.

A NodeConstraint says which nodes may run a task or an actor. It is checked here and applied in
C++ (common/scheduling/nodes.h). A rule is a tuple of a label, the number of an operation, and the
values that it compares with. Options arrive here after options.py has checked their types.
"""

from __future__ import annotations

import re

from ray.util.scheduling_strategies import (
    Exists,
    In,
    NodeAffinitySchedulingStrategy,
    NotIn,
    PlacementGroupSchedulingStrategy,
)

# The numbers of LabelRule.Op in common.proto, which must stay the same in both places.
_IN, _NOT_IN, _EXISTS, _DOES_NOT_EXIST = range(4)
_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_LIST = re.compile(r"(!?)in\((.*)\)")


def constraint_of(options: dict) -> dict | None:
    """Returns the fields of the options' NodeConstraint, None when any node will do.

    Raises ValueError for malformed selectors.
    """
    fields: dict = {}
    strategy = options.get("scheduling_strategy")
    # Strategies that are strings, such as "SPREAD", rule no node out; they travel by themselves.
    if strategy is not None and not isinstance(strategy, str):
        fields.update(_of_strategy(strategy))
    if options.get("label_selector"):
        fields["hard"] = fields.get("hard", []) + rules_of(options["label_selector"])
    if options.get("fallback_strategy"):
        # These are tried in their order when no node satisfies `hard`, instead of it.
        fields["fallbacks"] = [_fallback(entry) for entry in options["fallback_strategy"]]
    return fields or None


def _of_strategy(strategy) -> dict:
    if isinstance(strategy, PlacementGroupSchedulingStrategy):
        # Its bundle decides on which node it runs: placement_groups.fields_of() makes the fields.
        return {}
    if isinstance(strategy, NodeAffinitySchedulingStrategy):
        return {
            "node_id": bytes.fromhex(strategy.node_id),
            "soft": strategy.soft,
            "spill_on_unavailable": strategy._spill_on_unavailable,
            "fail_on_unavailable": strategy._fail_on_unavailable,
        }
    # A NodeLabelSchedulingStrategy, whose `soft` expressions are wishes.
    return {"hard": _expressions(strategy.hard), "preferred": _expressions(strategy.soft)}


def _expressions(expressions: dict) -> list[tuple[str, int, list[str]]]:
    rules = []
    for key, value in expressions.items():
        if isinstance(value, (In, NotIn)):
            rules.append((key, _IN if isinstance(value, In) else _NOT_IN, list(value.values)))
        else:
            rules.append((key, _EXISTS if isinstance(value, Exists) else _DOES_NOT_EXIST, []))
    return rules


def _fallback(entry) -> list[tuple[str, int, list[str]]]:
    if not isinstance(entry, dict) or entry.keys() != {"label_selector"}:
        raise ValueError(
            f"fallback_strategy: a list of {{'label_selector': {{...}}}}, got {entry!r}"
        )
    return rules_of(entry["label_selector"])


def rules_of(selector) -> list[tuple[str, int, list[str]]]:
    """The rules of a selector {label: expression}; expressions: v, !v, in(a, b), !in(a, b)."""
    if not isinstance(selector, dict):
        raise ValueError(
            "label_selector: expected a dict of labels to expressions, got "
            f"{type(selector).__name__}"
        )
    return [_rule(key, expression) for key, expression in selector.items()]


def _rule(key, expression) -> tuple[str, int, list[str]]:
    if not isinstance(key, str) or not isinstance(expression, str):
        raise ValueError(
            f"label_selector: labels and expressions are strings, got {key!r}: {expression!r}"
        )
    prefix, slash, name = key.rpartition("/")
    if not _WORD.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
        raise ValueError(
            f"label_selector: Invalid label key name {key!r}: at most 63 letters, digits, "
            "'-', '_' and '.', first and last alphanumeric, after an optional prefix and '/'"
        )
    listed = _LIST.fullmatch(expression.strip())
    if listed:
        negative, values = (
            bool(listed.group(1)),
            [value.strip() for value in listed.group(2).split(",")],
        )
    else:
        negative, values = expression.startswith("!"), [expression.removeprefix("!")]
    for value in values:
        # The value of a label may be empty.
        if not _WORD.fullmatch(value) and (listed or value):
            raise ValueError(
                f"label_selector: Invalid label selector value {expression!r} of {key!r}: expected "
                "v, !v, in(a, b) or !in(a, b) with values of at most 63 letters, digits, "
                "'-', '_' and '.', first and last alphanumeric"
            )
    return key, _NOT_IN if negative else _IN, values


def matches(labels: dict[str, str], rules: list[tuple[str, int, list[str]]]) -> bool:
    """Whether a node with these labels satisfies rules_of() a selector.

    The cluster must decide the same (common/scheduling/nodes.h): a node without the label satisfies
    no `in`, and every `!in`.
    """
    return all((labels.get(key) in values) == (op == _IN) for key, op, values in rules)
