"""A multiprocessing.Pool whose processes are actors of the cluster."""

from multiprocessing import JoinableQueue, TimeoutError

from ray.util.multiprocessing.pool import Pool

__all__ = ["JoinableQueue", "Pool", "TimeoutError"]
