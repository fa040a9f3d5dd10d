"""The claim of a run to its folder, by which a second run of the same name is noticed."""

from __future__ import annotations

import fcntl
import time
from typing import BinaryIO

from ray.train.storage import StorageContext

# Seconds in which a run that has just been killed leaves its folder, and how often it is looked.
_PATIENCE_S, _LOOK_AGAIN_S = 2.0, 0.05


class FolderClaim:
    """A lock on the marker in the folder; it ends with the process of the controller.

    Only local file systems have locks. Elsewhere, and on file servers without them, every run has
    its claim, and the record of the checkpoints tells of another run when that has written it.
    """

    def __init__(self, storage: StorageContext, patience_s: float = _PATIENCE_S):
        """Tries to get the claim for so many seconds."""
        self._file: BinaryIO | None = None
        self._has = True
        path = storage.local_marker()
        if path is None:
            return
        try:
            self._file = open(path, "rb+")  # File servers lock what is open for writing.
        except OSError:
            return  # It is told when the run writes there.
        self._has = False
        end = time.monotonic() + patience_s
        while not self.get() and time.monotonic() < end:
            time.sleep(_LOOK_AGAIN_S)

    def get(self) -> bool:
        """Whether the folder is this run's alone, tried anew if another run had it before."""
        if not self._has:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                pass  # There are no locks here.
            self._has = True
        return True

    def close(self) -> None:
        """Gives the claim up."""
        if self._file is not None:
            self._file.close()
