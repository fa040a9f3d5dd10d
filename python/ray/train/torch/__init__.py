"""Training with PyTorch: ray.train.torch.

Importing this needs torch to be installed, but does not import it: the controller of a run and the
driver unpickle configurations of this package and need no tensors.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

from ray._private.absent import raise_missing

if TYPE_CHECKING:
    from ray.train.torch.checkpoint import TorchCheckpoint
    from ray.train.torch.config import TorchConfig
    from ray.train.torch.data_loader import prepare_data_loader
    from ray.train.torch.devices import get_device, get_devices
    from ray.train.torch.model import prepare_model
    from ray.train.torch.removed import accelerate, backward, prepare_optimizer
    from ray.train.torch.reproducibility import enable_reproducibility
    from ray.train.torch.trainer import TorchTrainer

if importlib.util.find_spec("torch") is None:
    raise ModuleNotFoundError(
        "ray.train.torch needs PyTorch, which is not installed here. Install it on every node, for "
        "example with `pip install torch`, or on Debian `apt-get install python3-torch`.",
        name="torch",
    )

# Maps a name to the module of this package that defines it.
_LAZY = {
    "TorchCheckpoint": "checkpoint",
    "TorchConfig": "config",
    "TorchTrainer": "trainer",
    "accelerate": "removed",
    "backward": "removed",
    "enable_reproducibility": "reproducibility",
    "get_device": "devices",
    "get_devices": "devices",
    "prepare_data_loader": "data_loader",
    "prepare_model": "model",
    "prepare_optimizer": "removed",
}
__all__ = [
    "TorchCheckpoint",
    "TorchConfig",
    "TorchTrainer",
    "accelerate",
    "backward",
    "enable_reproducibility",
    "get_device",
    "get_devices",
    "prepare_data_loader",
    "prepare_model",
    "prepare_optimizer",
]


def __getattr__(name):
    if name not in _LAZY:
        raise_missing(__name__, name)
    value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
