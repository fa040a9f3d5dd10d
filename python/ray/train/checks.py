"""Checks of what users pass to configurations: each returns nothing, or raises with a remedy."""

from __future__ import annotations

import math
from typing import Any


class _NotGiven:
    """Marks arguments that were not given. It is the default of options that Ray once had, so that
    passing any value at all is noticed."""

    def __repr__(self):
        return "<not given>"

    def __reduce__(self):
        # There is one object in every process, since it is compared by identity.
        return "NOT_GIVEN"


NOT_GIVEN: Any = _NotGiven()


def refuse_removed(owner: str, remedy: str, **options) -> None:
    """Raises DeprecationWarning if one of the removed options was given, whatever its value."""
    for name, value in options.items():
        if value is not NOT_GIVEN:
            raise DeprecationWarning(
                f"{owner}({name}=...) is no longer supported. Leave it out: {remedy}"
            )


def is_int(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_whole_number(owner: str, name: str, value, least: int, meaning: str = "") -> None:
    """Raises ValueError unless the value is an int of at least `least`."""
    if not is_int(value) or value < least:
        note = f" ({meaning})" if meaning else ""
        raise ValueError(f"{owner}({name}={value!r}): it must be an int of at least {least}{note}.")


def check_seconds(owner: str, name: str, value) -> None:
    """Raises ValueError unless the value is a finite number of seconds, 0 or more."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise ValueError(f"{owner}({name}={value!r}): it must be a number of seconds, 0 or more.")


def check_bool(owner: str, name: str, value) -> None:
    """Raises ValueError unless the value is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{owner}({name}={value!r}): it must be True or False.")


def check_instance(owner: str, name: str, value, wanted: type) -> None:
    """Raises ValueError unless the value is of the wanted class."""
    if not isinstance(value, wanted):
        raise ValueError(
            f"{owner}({name}=...) must be a {wanted.__module__}.{wanted.__qualname__}, but a "
            f"{type(value).__module__}.{type(value).__qualname__} was given."
        )
