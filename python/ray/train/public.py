"""The mark of a public name of ray.train: it says `ray.train` as its module."""

from __future__ import annotations


def public(thing):
    """Makes a class or function report `ray.train` as its module; used as outermost decorator.

    Pickles then name `ray.train.X`, which is found through the package whatever file X is in.
    """
    thing.__module__ = "ray.train"
    return thing
