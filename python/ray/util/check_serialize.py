"""ray.util.inspect_serializability: finds what prevents an object from being pickled."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from ray._private.serialization import FailureTuple, inspect_object


def inspect_serializability(
    base_obj: Any, name: str | None = None, depth: int = 3, print_file: TextIO | None = None
) -> tuple[bool, set[FailureTuple]]:
    """Finds the members of `base_obj` that cannot be pickled, down to `depth` levels.

    Prints a report to `print_file` (stdout). Returns (whether `base_obj` can be pickled, set of
    tuples (obj, name, parent) of the members that cannot).
    """
    name = name or getattr(base_obj, "__name__", None) or repr(base_obj)[:200]
    lines: list[str] = []
    failures: set[FailureTuple] = set()
    well = inspect_object(base_obj, name, depth, lines, failures)
    out = print_file or sys.stdout
    rule = "=" * 80
    print(rule, f"Checking Serializability of {name}", rule, *lines, sep="\n", file=out)
    if failures:
        print(
            "Variable:",
            *(f"\t{failure!r}" for failure in failures),
            "was found to be non-serializable.",
            rule,
            sep="\n",
            file=out,
        )
    return well, failures
