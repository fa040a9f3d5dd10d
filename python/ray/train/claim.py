"""FolderClaim: the claim of a run to its folder. A second run of the same name notices it."""

from __future__ import annotations

import fcntl
import time
from typing import BinaryIO

from ray.train.storage import StorageContext

# Seconds in which a run that has just been killed leaves its folder, and the pause between two
# attempts to get it.
_PATIENCE_S, _LOOK_AGAIN_S = 2.0, 0.05


class FolderClaim:
    """A lock on the marker in the folder; it ends with the process of the controller.

    Only local file systems have locks. Elsewhere, and on file servers without them, every run has
    its claim, and the record of the checkpoints tells of another run when that has written it.
    """

    def __init__(self, storage: StorageContext, patience_s: float = _PATIENCE_S):
        """Tries for so many seconds to get the claim."""
        self._file: BinaryIO | None = None
        self._has = True
        # Whether no other run can have the claim.
        self.is_exclusive = False
        path = storage.local_marker()
        if path is None:
            return
        try:
            # The file is opened for writing, since file servers lock no other files.
            self._file = open(path, "rb+")
        except OSError:
            # The run reports the missing folder when it first writes there.
            return
        self._has = False
        end = time.monotonic() + patience_s
        while not self.get() and time.monotonic() < end:
            time.sleep(_LOOK_AGAIN_S)

    def get(self) -> bool:
        """Returns whether the folder is this run's alone. If another run had it before, this tries
        again."""
        if not self._has:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.is_exclusive = True
            except BlockingIOError:
                return False
            except OSError:
                # This file system has no locks.
                pass
            self._has = True
        return True

    def close(self) -> None:
        """Gives the claim up."""
        if self._file is not None:
            self._file.close()
