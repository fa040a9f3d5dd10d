"""TorchCheckpoint, which is deprecated: a directory with one file that torch wrote."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import torch

from ray.train.checkpoint import Checkpoint

_FILE = "model.pt"


class TorchCheckpoint(Checkpoint):
    """A checkpoint whose directory holds model.pt; use Checkpoint and torch.save() instead."""

    @classmethod
    def from_state_dict(cls, state_dict: dict[str, Any]) -> TorchCheckpoint:
        """Saves a model's parameters in a new temporary directory, which is the caller's."""
        return cls._save(state_dict)

    @classmethod
    def from_model(cls, model: torch.nn.Module) -> TorchCheckpoint:
        """Saves a whole model in a new temporary directory, which is the caller's."""
        return cls._save(model)

    @classmethod
    def _save(cls, value: Any) -> TorchCheckpoint:
        directory = tempfile.mkdtemp(prefix="torch_checkpoint_")
        torch.save(value, os.path.join(directory, _FILE))
        return cls.from_directory(directory)

    def get_model(self, model: torch.nn.Module | None = None) -> torch.nn.Module:
        """The saved model, or `model` with the saved parameters.

        Raises ValueError if there are parameters only and no model is given.
        """
        with self.as_directory() as directory:
            # A whole model is more than weights, so unpickling it is the point of this class.
            path = os.path.join(directory, _FILE)
            saved = torch.load(path, map_location="cpu", weights_only=False)
        if isinstance(saved, torch.nn.Module):
            return saved
        if model is None:
            raise ValueError("This checkpoint holds parameters only: get_model(model) needs one.")
        # DistributedDataParallel puts this before the names of the model.
        prefix = "module."
        model.load_state_dict(
            {k[len(prefix) :] if k.startswith(prefix) else k: v for k, v in saved.items()}
        )
        return model
