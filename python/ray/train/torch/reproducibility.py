"""enable_reproducibility(): the same numbers from every run of a training function."""

from __future__ import annotations

import os
import random

import torch

from ray.train.optional import available, require


def enable_reproducibility(seed: int = 0) -> None:
    """Seeds torch, random and NumPy, and allows deterministic algorithms only.

    Operations that have none then raise RuntimeError, and others may be slower. It works outside of
    training functions, too.
    """
    torch.manual_seed(seed)
    random.seed(seed)
    if available("numpy"):
        require("numpy", "enable_reproducibility()").random.seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    # cuBLAS reads it when it is first used; without it torch refuses some of its operations.
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
