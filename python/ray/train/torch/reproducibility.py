"""enable_reproducibility(): the same numbers from every run of a training function."""

from __future__ import annotations

import numbers
import os
import random

import torch

from ray.train.optional import available, require

# The largest seed that NumPy takes.
_MOST = 2**32 - 1


def enable_reproducibility(seed: int = 0) -> None:
    """Seeds torch, random and NumPy, and allows deterministic algorithms only.

    Operations that have none then raise RuntimeError, and others may be slower. It works outside of
    training functions, too. Raises TypeError for a seed that is no whole number, and ValueError for
    one that NumPy does not take.
    """
    if not isinstance(seed, numbers.Integral):
        raise TypeError(
            f"enable_reproducibility(seed={seed!r}): the seed must be a whole number; leave it out "
            "for 0."
        )
    seed = int(seed)
    if not 0 <= seed <= _MOST:
        raise ValueError(
            f"enable_reproducibility(seed={seed}): the seed must be from 0 to {_MOST}, which is "
            "what NumPy takes."
        )
    torch.manual_seed(seed)
    random.seed(seed)
    if available("numpy"):
        require("numpy", "enable_reproducibility()").random.seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    # cuBLAS reads this when it is first used; without it torch refuses some of its operations.
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
