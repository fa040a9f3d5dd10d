"""Numbers in environment variables."""

from __future__ import annotations

import os


def number_from_environment(name: str, kind: type, default):
    """The number in an environment variable, or `default`; ValueError names the variable."""
    text = os.environ.get(name)
    if not text:
        return default
    try:
        return kind(text)
    except ValueError:
        raise ValueError(
            f"{name} is {text!r}: {'a whole number' if kind is int else 'a number'} is needed"
        ) from None
