"""Operations on file systems of pyarrow. Only users who pass one of these import this."""

from __future__ import annotations

import pyarrow.fs as arrow

from ray.train.filesystem import LOCAL, FileSystem


class ArrowFileSystem(FileSystem):
    """Adapts one object of pyarrow.fs."""

    def __init__(self, filesystem: arrow.FileSystem):
        self._fs = filesystem
        self.type_name = filesystem.type_name

    def same_as(self, other):
        return isinstance(other, ArrowFileSystem) and self._fs.equals(other._fs)

    def kind(self, path):
        found = self._fs.get_file_info(path).type
        if found == arrow.FileType.Directory:
            return "directory"
        return None if found == arrow.FileType.NotFound else "file"

    def walk(self, path):
        infos = self._fs.get_file_info(arrow.FileSelector(path, recursive=True))
        root = self._fs.normalize_path(path).rstrip("/") + "/"
        for info in sorted(infos, key=lambda info: info.path):
            relative = info.path[len(root) :] if info.path.startswith(root) else info.path
            yield relative, info.type == arrow.FileType.Directory

    def make_directory(self, path):
        self._fs.create_dir(path, recursive=True)

    def delete_directory(self, path):
        if self.kind(path) is not None:
            self._fs.delete_dir(path)

    def delete_file(self, path):
        self._fs.delete_file(path)

    def open_input_stream(self, path):
        return self._fs.open_input_stream(path)

    def open_output_stream(self, path):
        return self._fs.open_output_stream(path)


def adapt(filesystem: arrow.FileSystem) -> FileSystem:
    """Returns the operations on the file system; those of local paths for pyarrow's own local
    one."""
    if isinstance(filesystem, arrow.LocalFileSystem):
        return LOCAL
    return ArrowFileSystem(filesystem)
