"""Decorators that say how stable a function or class of a library is.

They note it on the object and in its documentation.
"""

from __future__ import annotations

import enum
import functools
import inspect
import warnings

_STABILITIES = ("stable", "beta", "alpha")
_DEPRECATED = "This API is deprecated and may be removed in future Ray releases."


class AnnotationType(enum.Enum):
    PUBLIC_API = "PublicAPI"
    DEVELOPER_API = "DeveloperAPI"
    DEPRECATED = "Deprecated"
    UNKNOWN = "Unknown"


class RayDeprecationWarning(DeprecationWarning):
    """A deprecated interface of Ray, or of a library on top of it, was used."""


def _annotate(obj, kind: AnnotationType, group: str, note: str, admonition: str = ""):
    if note:
        doc = inspect.getdoc(obj) or ""
        body = (
            note if not admonition else f".. {admonition}::\n\n    " + note.replace("\n", "\n    ")
        )
        obj.__doc__ = f"{doc}\n\n{body}\n" if doc else f"{body}\n"
    obj._annotated = obj.__name__
    obj._annotated_type = kind
    obj._annotated_api_group = group
    return obj


def _decorator(args: tuple, annotate):
    """Makes a decorator usable with and without parentheses."""
    return annotate(args[0]) if len(args) == 1 and callable(args[0]) else annotate


def PublicAPI(*args, stability: str = "stable", api_group: str = "Others"):
    """Marks an interface for users; without arguments it is stable.

    stability: "stable", "beta" or "alpha"; raises AssertionError for another.
    """
    assert stability in _STABILITIES, stability
    note = (
        ""
        if stability == "stable"
        else (
            f"**PublicAPI ({stability}):** This API is in {stability} and may change before "
            "becoming stable."
        )
    )
    return _decorator(args, lambda obj: _annotate(obj, AnnotationType.PUBLIC_API, api_group, note))


def DeveloperAPI(*args, api_group: str = "Others"):
    """Marks an interface for developers of libraries, which may change between minor versions."""
    return _decorator(
        args,
        lambda obj: _annotate(
            obj,
            AnnotationType.DEVELOPER_API,
            api_group,
            "**DeveloperAPI:** This API may change across minor Ray releases.",
        ),
    )


def Deprecated(*args, message: str | None = None, warning: bool = False):
    """Marks an interface as deprecated; `message` says what replaces it.

    With `warning`, calling it warns with a RayDeprecationWarning.
    """
    note = f"**DEPRECATED**: {_DEPRECATED}" + (f"\n{message}" if message else "")
    said = (
        f"{_DEPRECATED} You could suppress this warning by setting env variable "
        'PYTHONWARNINGS="ignore::DeprecationWarning"' + (f"\n{message}" if message else "")
    )

    def warn(call):
        @functools.wraps(call)
        def warns(*args, **kwargs):
            warnings.warn(said, RayDeprecationWarning, stacklevel=2)
            return call(*args, **kwargs)

        return warns

    def annotate(obj):
        _annotate(obj, AnnotationType.DEPRECATED, "Others", note, "warning")
        if not warning:
            return obj
        if isinstance(obj, type):
            obj.__init__ = warn(obj.__init__)
            return obj
        return warn(obj)

    return _decorator(args, annotate)
