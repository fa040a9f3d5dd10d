"""Operations on file systems of fsspec. Only users who pass one of these import this."""

from __future__ import annotations

import fsspec
from fsspec.implementations.local import LocalFileSystem as FsspecLocalFileSystem

from ray.train.filesystem import LOCAL, FileSystem


class FsspecFileSystem(FileSystem):
    """Adapts one object of fsspec."""

    def __init__(self, filesystem: fsspec.AbstractFileSystem):
        self._fs = filesystem
        protocol = filesystem.protocol
        name = protocol if isinstance(protocol, str) else protocol[0]
        self.type_name = f"fsspec+{name}"

    def same_as(self, other):
        return isinstance(other, FsspecFileSystem) and self._fs == other._fs

    def kind(self, path):
        # Object stores cache listings, and another process may have written a checkpoint since.
        self._fs.invalidate_cache()
        try:
            return "directory" if self._fs.info(path)["type"] == "directory" else "file"
        except FileNotFoundError:
            return None

    def walk(self, path):
        root = self._fs._strip_protocol(path).rstrip("/") + "/"
        found = self._fs.find(path, withdirs=True, detail=True)
        for name in sorted(found):
            full = self._fs._strip_protocol(name)
            if full.startswith(root) and full != root:
                yield full[len(root) :], found[name]["type"] == "directory"

    def make_directory(self, path):
        self._fs.makedirs(path, exist_ok=True)

    def delete_directory(self, path):
        try:
            self._fs.rm(path, recursive=True)
        except FileNotFoundError:
            pass

    def delete_file(self, path):
        self._fs.rm_file(path)

    def open_input_stream(self, path):
        return self._fs.open(path, "rb")

    def open_output_stream(self, path):
        return self._fs.open(path, "wb")


def adapt(filesystem: fsspec.AbstractFileSystem) -> FileSystem:
    """Returns the operations on the file system; those of local paths for fsspec's own local
    one."""
    if isinstance(filesystem, FsspecLocalFileSystem):
        return LOCAL
    return FsspecFileSystem(filesystem)
