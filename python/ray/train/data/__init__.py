"""The datasets of a trainer, divided among its workers.

sources.py says what counts as a dataset and how it is divided, blocks.py how rows are kept
together, iterator.py what a training function gets, batches.py and prefetch.py how it walks
through it. Tables of Arrow, and files, are in tables.py, which needs pyarrow.
"""

from ray.train.data.iterator import DataIterator
from ray.train.data.sources import shards_for, unknown_dataset

__all__ = ["DataIterator", "shards_for", "unknown_dataset"]
