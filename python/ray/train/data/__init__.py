"""The datasets of a trainer, divided among its workers.

sources.py says what counts as a dataset and how it is divided, blocks.py how rows are kept
together, iterator.py what a training function gets, batches.py and prefetch.py how it walks
through it. Tables of Arrow, and files, are in tables.py, which needs pyarrow. Names are loaded when
they are used: most runs have no dataset.
"""

from __future__ import annotations

import importlib

from ray._private.absent import raise_missing

_LAZY = {
    "DataIterator": "ray.train.data.iterator",
    "shards_for": "ray.train.data.sources",
    "unknown_dataset": "ray.train.data.sources",
}

__all__ = ["DataIterator", "shards_for", "unknown_dataset"]


def __getattr__(name):
    module = _LAZY.get(name)
    if module is None:
        raise_missing("ray.train.data", name)
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value
