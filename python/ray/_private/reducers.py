"""How ray.cloudpickle pickles types of this package.

A type that must be pickled otherwise than its __reduce__ says enters its reducer when its module
is imported, so that cloudpickle, which takes long to import, need not be. Its values hold no nodes
of a call graph (dag/scan.py).
"""

from __future__ import annotations

# Maps a type to a function that does what __reduce__ does.
REDUCERS: dict = {}
