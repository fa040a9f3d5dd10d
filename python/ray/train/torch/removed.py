"""Functions of an earlier interface: they exist so that calls of them say what to do instead."""

from __future__ import annotations

_REMEDY = (
    "was removed. Use torch.amp.autocast and torch.amp.GradScaler in the training function; they "
    "need nothing from Train."
)


def accelerate(*args, **kwargs):
    """Raises DeprecationWarning."""
    raise DeprecationWarning(f"ray.train.torch.accelerate() {_REMEDY}")


def backward(*args, **kwargs):
    """Raises DeprecationWarning."""
    raise DeprecationWarning(f"ray.train.torch.backward() {_REMEDY}")


def prepare_optimizer(*args, **kwargs):
    """Raises DeprecationWarning."""
    raise DeprecationWarning(f"ray.train.torch.prepare_optimizer() {_REMEDY}")
