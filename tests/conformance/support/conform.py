"""Printing for the programs: one line per fact, without ids, times or addresses.

It runs on Ray as well, so it uses nothing but Ray's public API.
"""

import sys

import ray

_BUILTIN = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RuntimeError,
    AssertionError,
    TimeoutError,
    ConnectionError,
    OSError,
    ZeroDivisionError,
    NotImplementedError,
    KeyboardInterrupt,
    SystemExit,
    StopIteration,
)


def facts(error):
    """The name of an error, the classes that a program could catch it by, and its cause."""

    def caught_by(kind):
        return isinstance(error, kind) and type(error).__name__ != kind.__name__

    kinds = [kind.__name__ for kind in _BUILTIN if caught_by(kind)]
    kinds += [
        name
        for name in sorted(dir(ray.exceptions))
        if isinstance(getattr(ray.exceptions, name), type)
        and issubclass(getattr(ray.exceptions, name), Exception)
        and caught_by(getattr(ray.exceptions, name))
        and name != "RayError"
    ]
    text = type(error).__name__
    if isinstance(error, ray.exceptions.RayError) and text != "RayError":
        kinds.append("RayError")
    kinds = list(dict.fromkeys(kinds))
    if kinds:
        text += " is " + " ".join(kinds)
    cause = getattr(error, "cause", None)
    if isinstance(cause, BaseException) and isinstance(error, ray.exceptions.RayTaskError):
        text += (
            f", cause {type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}"
        )
    return text


def show(label, call, *words):
    """Prints the value of call(), or the error that it raises.

    Args:
       label: begins the line.
       call: takes no arguments.
       words: for each of them the line says whether the error's text contains it.
    """
    try:
        value = call()
    except BaseException as error:
        has = "".join(f" [{word}: {'yes' if word in str(error) else 'no'}]" for word in words)
        print(f"{label}: raises {facts(error)}{has}", file=sys.__stdout__, flush=True)
    else:
        print(f"{label}: {value!r}", file=sys.__stdout__, flush=True)
