"""The folder of a run: its marker, its checkpoints and the record of them.

<storage_path>/<name>/ holds .validate_storage_marker, checkpoint_manager_snapshot.json and a
directory for each checkpoint. Tools that read the results of Ray read these. Anything else in it
belongs to the user and stays.
"""

from __future__ import annotations

import os
import urllib.parse
from typing import Any, Collection

from ray.train.checkpoint import Checkpoint
from ray.train.filesystem import copy_tree, is_part, operations, resolve

MARKER = ".validate_storage_marker"
SNAPSHOT = "checkpoint_manager_snapshot.json"
# Names of empty files beside a checkpoint's directory begin with this while ranks upload to it.
_UNFINISHED = ".unfinished-"
_ALL = os.R_OK | os.W_OK | os.X_OK


class UnseenStorageError(RuntimeError):
    """A worker does not see the marker of the run's folder."""


class StorageContext:
    """The place of one run, in the driver, the controller and the workers: it pickles.

    storage_filesystem: the user's file system object, or a LocalFileSystem.
    storage_fs_path: the path of all runs in it; experiment_fs_path: that of this one.
    Methods raise OSErrors of the file system unless they say otherwise.
    """

    def __init__(
        self,
        storage_path: str | os.PathLike,
        experiment_dir_name: str,
        storage_filesystem: Any = None,
    ):
        self.storage_filesystem, self.storage_fs_path = resolve(storage_path, storage_filesystem)
        self.experiment_dir_name = experiment_dir_name
        # An object that is no file system is refused in the driver.
        operations(self.storage_filesystem)

    def __repr__(self):
        return (
            f"StorageContext(filesystem={self._files.type_name}, "
            f"experiment_fs_path={self.experiment_fs_path})"
        )

    @property
    def _files(self):
        return operations(self.storage_filesystem)

    @property
    def experiment_fs_path(self) -> str:
        """The path of this run's folder."""
        return f"{self.storage_fs_path.rstrip('/')}/{self.experiment_dir_name}"

    def place(self, dir_name: str) -> str:
        """Returns the path of something in the folder of the run."""
        return f"{self.experiment_fs_path}/{dir_name}"

    def make_marker(self) -> None:
        """Makes the folder and its marker, by which workers see that they share the storage.

        Raises an OSError, with the remedy in its text, if that cannot be.
        """
        marker = self.local_marker()
        try:
            self._files.make_directory(self.experiment_fs_path)
            # The file is not replaced, since a run that is under way has locked it as its claim
            # (claim.py).
            if not (marker and os.path.isfile(marker) and os.access(os.path.dirname(marker), _ALL)):
                self._files.write(self.place(MARKER), b"")
        except OSError as error:
            raise type(error)(
                error.errno,
                f"The folder of the run cannot be written ({error.strerror or error}): choose a "
                "RunConfig(storage_path=...) that this user can write to",
                self.experiment_fs_path,
            ) from error

    def checked_name(self, dir_name: str) -> str:
        """Returns the name of a checkpoint's directory as it is registered; raises ValueError
        unless `dir_name` can be one."""
        if not isinstance(dir_name, str) or (
            dir_name and not self.is_inside(self.checkpoint_at(dir_name))
        ):
            raise ValueError(
                f"report(checkpoint_dir_name={dir_name!r}): it must name a directory below the "
                f"folder of this run, {self.experiment_fs_path}."
            )
        if not dir_name:
            return dir_name
        name = os.path.normpath(dir_name)
        first = name.split("/")[0]
        if "\0" in dir_name or first in (MARKER, SNAPSHOT) or first.startswith(_UNFINISHED):
            raise ValueError(
                f"report(checkpoint_dir_name={dir_name!r}): this name is the run's own, or none "
                "that a directory can have. Choose another one."
            )
        return name

    def local_marker(self) -> str | None:
        """The path of the marker on a local file system; None elsewhere."""
        return self.place(MARKER) if self._files.is_local else None

    def sees_marker(self) -> bool:
        """Returns whether this process sees the marker that the driver made."""
        return self._files.kind(self.place(MARKER)) is not None

    def check_marker(self) -> None:
        """Raises UnseenStorageError if this process does not see the marker that the driver
        made."""
        if not self.sees_marker():
            raise UnseenStorageError(self.why_unseen(True, False))

    def why_unseen(self, driver_sees: bool, was_seen: bool) -> str:
        """The reason for which a worker does not see the marker.

        driver_sees: whether the driver's node sees it. was_seen: whether this worker has seen it.
        """
        marker = self.place(MARKER)
        if not driver_sees:
            return (
                f"The storage of this run has gone: {marker}, which the driver made, is no longer "
                "there, on the driver's node either. Was the folder deleted, or a file system "
                "unmounted? Checkpoints that were in it are lost unless it comes back."
            )
        if was_seen:
            return (
                f"A worker no longer sees the storage of this run: {marker} is there on the "
                "driver's node. Is the file system still mounted on the worker's node?"
            )
        return (
            f"The storage of this run is not shared: the driver made {marker}, and a worker does "
            "not see it. With workers on several nodes, RunConfig(storage_path=...) must be a "
            "store or a shared file system that is mounted at the same path on all of them."
        )

    def persist(self, checkpoint: Checkpoint, dir_name: str) -> Checkpoint:
        """Copies the files of a checkpoint into the directory and returns what lies there.

        Files of other ranks stay in it, equal names are overwritten. Raises UnseenStorageError if
        this process does not see the storage, FileNotFoundError if there is no checkpoint.
        """
        self.check_marker()
        source = operations(checkpoint.filesystem)
        if source.kind(checkpoint.path) != "directory":
            raise FileNotFoundError(2, "There is no such checkpoint", checkpoint.path)
        if self._files.is_local:
            self._files.write(self._note_of(dir_name), b"")
        copy_tree(source, checkpoint.path, self._files, self.place(dir_name))
        return self.checkpoint_at(dir_name)

    def checkpoint_at(self, dir_name: str) -> Checkpoint:
        """Returns the checkpoint in a directory of the run, whether it exists or not."""
        return Checkpoint(self.place(dir_name), self.storage_filesystem)

    def exists(self, dir_name: str) -> bool:
        return self._files.kind(self.place(dir_name)) == "directory"

    def delete(self, dir_name: str) -> None:
        """Deletes a directory of the run, unless it is gone already; what is none stays.

        Raises ValueError for a name that leads out of the folder.
        """
        self.relative(self.checkpoint_at(dir_name))
        if self._files.kind(self.place(dir_name)) in (None, "directory"):
            self._files.delete_directory(self.place(dir_name))
        self._delete_note(dir_name)

    def _note_of(self, dir_name: str) -> str:
        return self.place(_UNFINISHED + urllib.parse.quote(dir_name, safe=""))

    def _delete_note(self, dir_name: str) -> None:
        note = self._note_of(dir_name)
        if self._files.is_local and self._files.kind(note) is not None:
            self._files.delete_file(note)

    def finish(self, dir_name: str) -> None:
        """Notes that all uploads to the directory are complete, and deletes what uploads of killed
        processes left in it. Does nothing unless the file system is a local one."""
        if not self._files.is_local:
            return
        if self.exists(dir_name):
            self._delete_parts(self.place(dir_name))
        self._delete_note(dir_name)

    def delete_unfinished(self, registered: Collection[str]) -> None:
        """Deletes directories to which an earlier run was still uploading when it was killed.

        registered: those that are checkpoints of the run all the same, which stay with what they
        lie in. Only for the beginning of a run, when nobody writes. On a local file system only.
        """
        folder = self.experiment_fs_path
        if not self._files.is_local or self._files.kind(folder) is None:
            return
        for name in os.listdir(folder):
            if name.startswith(SNAPSHOT) and is_part(name):
                self._files.delete_file(self.place(name))
            elif name.startswith(_UNFINISHED):
                dir_name = urllib.parse.unquote(name[len(_UNFINISHED) :])
                if any(f"{one}/".startswith(f"{dir_name}/") for one in registered):
                    self.finish(dir_name)
                elif self.is_inside(self.checkpoint_at(dir_name)):
                    self.delete(dir_name)

    def _delete_parts(self, directory: str) -> None:
        # Uploads make directories and no links, so a link leads to something of the user's.
        for place, _, names in os.walk(directory):
            for name in filter(is_part, names):
                self._files.delete_file(f"{place}/{name}")

    def is_inside(self, checkpoint: Checkpoint) -> bool:
        """Returns whether the checkpoint lies below the folder of this run, on the same file
        system."""
        files = operations(checkpoint.filesystem)
        # Without normalizing, ".." would lead out of the folder, and the folder itself could be
        # deleted.
        path = os.path.normpath(checkpoint.path)
        root = os.path.normpath(self.experiment_fs_path)
        return self._files.same_as(files) and path.startswith(root.rstrip("/") + "/")

    def relative(self, checkpoint: Checkpoint) -> str:
        """The name of a checkpoint's directory within the run's folder.

        Raises ValueError if it lies elsewhere.
        """
        if not self.is_inside(checkpoint):
            raise ValueError(
                f"{checkpoint} does not lie in the folder of this run, "
                f"{self.experiment_fs_path}. Save it there, or let report() upload it."
            )
        path = os.path.normpath(checkpoint.path)
        return os.path.relpath(path, os.path.normpath(self.experiment_fs_path))

    def read_snapshot(self) -> str | None:
        """The record of the run's checkpoints; None if there is none.

        Raises UnicodeDecodeError if it is no text.
        """
        if self._files.kind(self.place(SNAPSHOT)) is None:
            return None
        return self._files.read(self.place(SNAPSHOT)).decode()

    def write_snapshot(self, text: str) -> None:
        """Replaces the record. On a local file system readers see the old or the new one at any
        time."""
        self._files.write(self.place(SNAPSHOT), text.encode())
