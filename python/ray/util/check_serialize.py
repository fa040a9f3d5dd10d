"""ray.util.inspect_serializability"""
from __future__ import annotations

import sys


def inspect_serializability(base_obj, name=None, depth=3, print_file=None):
    """Finds the members of `base_obj` that cannot be pickled, down to `depth` levels, and prints what it finds.

    Returns (whether it can be pickled, set of tuples (object, name, parent) to blame).
    """
    from ray._private.serialization import inspect_object
    name = name or getattr(base_obj, "__name__", None) or repr(base_obj)[:200]
    lines, failures = [], set()
    ok = inspect_object(base_obj, name, depth, lines, failures)
    out = print_file or sys.stdout
    rule = "=" * 80
    print(rule, f"Checking Serializability of {name}", rule, *lines, sep="\n", file=out)
    if failures:
        print("Variable:", *(f"\t{f!r}" for f in failures), "was found to be non-serializable.", rule, sep="\n", file=out)
    return ok, {tuple(f) if _hashable(tuple(f)) else f for f in failures}


def _hashable(value) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
