"""Checkpoint: a directory with what a training function saved."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import uuid
from typing import Any, Iterator

from ray.train import local_copy
from ray.train.filesystem import LOCAL, copy_tree, operations, resolve
from ray.train.public import public

_METADATA = ".metadata.json"
# Names of an older interface of Ray that programs may still use -> the way of today.
_GONE = {
    "from_dict": "write the dict into a file of a directory and use from_directory()",
    "to_dict": "read the file that holds it inside as_directory()",
    "from_bytes": "write the bytes into a file of a directory and use from_directory()",
    "to_bytes": "read the file that holds them inside as_directory()",
    "from_uri": "use Checkpoint(uri)",
    "to_uri": "use .path and .filesystem",
    "uri": "use .path and .filesystem",
    "get_preprocessor": "keep it in a file of the checkpoint",
    "set_preprocessor": "keep it in a file of the checkpoint",
}


def _no_attribute(name: str) -> AttributeError:
    remedy = f"; {_GONE[name]}" if name in _GONE else ""
    return AttributeError(f"ray.train.Checkpoint has no attribute {name!r}{remedy}.")


class _CheckpointType(type):
    def __getattr__(cls, name):
        raise _no_attribute(name)


@public
class Checkpoint(metaclass=_CheckpointType):
    """Refers to a directory, on this machine or in a store; making one touches nothing.

    path: an absolute path without the scheme. filesystem: the pyarrow or fsspec object that was
    given or that the URI means, or a LocalFileSystem of ours. Objects pickle, and mean the same
    directory wherever it is mounted.
    """

    def __init__(self, path: str | os.PathLike, filesystem: Any = None):
        """path: a local path, a URI, or with `filesystem` a path in it.

        URIs other than file:// raise ImportError where neither pyarrow nor fsspec is installed.
        """
        self.filesystem, self.path = resolve(path, filesystem)
        # An object that is no file system is refused now and not at its first use.
        operations(self.filesystem)
        self._uuid = uuid.uuid4()

    @classmethod
    def from_directory(cls, path: str | os.PathLike) -> Checkpoint:
        """Returns the checkpoint in a local directory, which stays where it is."""
        return cls(path)

    def __repr__(self):
        name = operations(self.filesystem).type_name
        return f"Checkpoint(filesystem={name}, path={self.path})"

    def __fspath__(self):
        raise TypeError(
            "A Checkpoint is no path, since it may lie in a remote store. Use `with "
            "checkpoint.as_directory() as path`, or checkpoint.to_directory()."
        )

    def __getattr__(self, name):
        raise _no_attribute(name)

    def to_directory(self, path: str | os.PathLike | None = None) -> str:
        """Copies the checkpoint into a directory and returns its path, as it was given.

        path: by default one below the directory for temporary files, which is the caller's to
        delete. When several processes of a node ask for the same directory at once, one copies and
        the others wait. Raises FileNotFoundError if the checkpoint does not exist.
        """
        if path is None:
            target = self._temporary_path()
            with local_copy.turn_at(target):
                if not os.path.isdir(target):
                    self._copy_to_temporary(target)
            return target
        target = os.path.abspath(os.path.expanduser(os.fspath(path)))
        with local_copy.turn_at(target, f".{self._uuid.hex}") as has_waited:
            # Another process may have copied the same checkpoint while this one waited.
            if not (has_waited and os.path.isdir(target)):
                copy_tree(operations(self.filesystem), self.path, LOCAL, target)
        return os.fspath(path)

    @contextlib.contextmanager
    def as_directory(self) -> Iterator[str]:
        """A local directory with the checkpoint's files, for reading, while the block runs.

        A local checkpoint is that directory itself. Of a remote one there is one copy a node,
        which its last reader deletes.
        """
        if operations(self.filesystem).is_local:
            yield self.path
            return
        with local_copy.shared(self._temporary_path(), self._copy_to_temporary) as target:
            yield target

    def _temporary_path(self) -> str:
        return os.path.join(tempfile.gettempdir(), f"checkpoint_tmp_{self._uuid.hex}")

    def _copy_to_temporary(self, target: str) -> None:
        local_copy.make(
            target,
            lambda part: copy_tree(operations(self.filesystem), self.path, LOCAL, part),
        )

    def get_metadata(self) -> dict[str, Any]:
        """The metadata that set_metadata() stored; an empty dict if there is none."""
        files, path = operations(self.filesystem), self._metadata_path()
        if files.kind(path) is None:
            return {}
        return json.loads(files.read(path))

    def set_metadata(self, metadata: dict[str, Any]) -> None:
        """Stores metadata, which JSON must be able to hold, in the checkpoint; replaces the old."""
        data = json.dumps(metadata).encode()
        operations(self.filesystem).write(self._metadata_path(), data)

    def update_metadata(self, metadata: dict[str, Any]) -> None:
        """Adds entries to the metadata, or replaces them."""
        self.set_metadata({**self.get_metadata(), **metadata})

    def _metadata_path(self) -> str:
        return f"{self.path}/{_METADATA}"
