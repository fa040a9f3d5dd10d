"""Spans that programs add to the timeline: `with profile("load"): ...`, as in Ray.

They are recorded when RAY_PROFILING is in the process's environment.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from typing import Any

from ray import _raylet

# So many characters of a message and of a traceback are kept.
_MOST_CHARACTERS = 4000


class _Span:
    def __init__(self, event_type: str, extra_data: dict[str, Any] | None):
        if not isinstance(event_type, str):
            raise TypeError(
                f"profile() takes the type of the event as a str, and was given {event_type!r}"
            )
        if extra_data is not None and not isinstance(extra_data, dict):
            raise TypeError(f"profile() takes extra_data as a dict, and was given {extra_data!r}")
        self._type, self._extra = _utf8(event_type), extra_data

    def __enter__(self) -> None:
        self._start_us = time.time_ns() // 1000

    def __exit__(self, kind, value, traceback) -> None:
        extra = self._extra if value is None else _described(value)
        _raylet.record_span(self._type, self._start_us, _packed(extra) if extra else "")


class _NoSpan:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, value, traceback) -> None:
        pass


_no_span = _NoSpan()


def profile(event_type: str, extra_data: dict[str, Any] | None = None):
    """Returns a context manager that records a span of the timeline; a no-op without RAY_PROFILING.

    `extra_data` becomes the `args` of the span; it is read at the end of the span. `name` in it is
    shown in place of the type, and `cname` is the colour. When an exception ends the span, `args`
    describes the exception instead.
    """
    return _Span(event_type, extra_data) if _raylet.is_profiling() else _no_span


def failure(error: BaseException) -> str:
    """Returns the extra data of a call that failed."""
    return _packed(_described(error))


def _described(error: BaseException) -> dict[str, str]:
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    # An exception that the binding raised has no traceback yet, so the stack of the caller is used.
    if error.__traceback__ is None:
        lines[:0] = [
            "Traceback (most recent call last):\n",
            *traceback.format_stack(sys._getframe(2), limit=10),
        ]
    return {
        "type": str(type(error)),
        "value": str(error)[:_MOST_CHARACTERS],
        "traceback": "".join(lines)[-_MOST_CHARACTERS:],
    }


def _packed(extra: dict[str, Any]) -> str:
    try:
        text = json.dumps(
            {str(key): value for key, value in extra.items()},
            ensure_ascii=False,
            allow_nan=False,
            default=str,
        )
    # JSON has no NaN or infinity, and no container that contains itself.
    except ValueError:
        text = json.dumps(
            {str(key): str(value) for key, value in extra.items()}, ensure_ascii=False
        )
    return _utf8(text)


def _utf8(text: str) -> str:
    """Replaces halves of a surrogate pair, which have no encoding in UTF-8, by '?'."""
    return text.encode(errors="replace").decode()
