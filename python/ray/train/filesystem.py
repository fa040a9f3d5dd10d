"""File systems that hold checkpoints: local directories, and what pyarrow and fsspec offer.

Users see the object they passed, or a LocalFileSystem. `operations(filesystem)` gives the few
operations on it that Train needs. Paths are absolute and without the scheme of a URI.
"""

from __future__ import annotations

import abc
import errno
import importlib
import os
import secrets
import shutil
import stat
import urllib.parse
from typing import Any, BinaryIO, Iterator

from ray.train.filesystem_uri import open_uri

# Maps a package to our module that adapts its file systems. The module is imported when the first
# of them comes.
_ADAPTERS = {"pyarrow": "ray.train.filesystem_pyarrow", "fsspec": "ray.train.filesystem_fsspec"}

# Marks names of files that are being written, and how many random characters follow the mark.
_PART_MARK = ".part-"
_PART_CHARACTERS = 8
_COPY_BYTES = 4 << 20


class FileSystem(abc.ABC):
    """Operations on one file system. Errors are OSErrors; a missing path is FileNotFoundError."""

    type_name: str
    is_local = False

    @abc.abstractmethod
    def kind(self, path: str) -> str | None:
        """Returns "file" or "directory"; None if there is nothing."""

    @abc.abstractmethod
    def walk(self, path: str) -> Iterator[tuple[str, bool]]:
        """Yields (path relative to `path`, whether it is a directory) of everything below it.

        A directory comes before its contents.
        """

    @abc.abstractmethod
    def make_directory(self, path: str) -> None:
        """Makes the directory and those above it, unless they exist."""

    @abc.abstractmethod
    def delete_directory(self, path: str) -> None:
        """Deletes the directory with its contents, unless it does not exist."""

    @abc.abstractmethod
    def delete_file(self, path: str) -> None: ...

    @abc.abstractmethod
    def open_input_stream(self, path: str) -> BinaryIO: ...

    @abc.abstractmethod
    def open_output_stream(self, path: str) -> BinaryIO:
        """Opens a file for writing; an existing one is replaced."""

    def read(self, path: str) -> bytes:
        with self.open_input_stream(path) as file:
            return file.read()

    def write(self, path: str, data: bytes) -> None:
        """Writes a whole file. On a local file system readers see the old one or the new one."""
        with self.open_output_stream(path) as file:
            file.write(data)

    def same_as(self, other: FileSystem) -> bool:
        """Returns whether equal paths name equal files in both file systems."""
        return self is other


class LocalFileSystem(FileSystem):
    """Directories of this machine, or of a file server that is mounted on all nodes."""

    type_name = "local"
    is_local = True

    def __repr__(self):
        return "LocalFileSystem()"

    def __eq__(self, other):
        return isinstance(other, LocalFileSystem)

    def __hash__(self):
        return hash(LocalFileSystem)

    def same_as(self, other):
        return other.is_local

    def kind(self, path):
        if os.path.isdir(path):
            return "directory"
        return "file" if os.path.exists(path) else None

    def walk(self, path):
        yield from _walk(path, "", ())

    def make_directory(self, path):
        os.makedirs(path, exist_ok=True)

    def delete_directory(self, path):
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass

    def delete_file(self, path):
        os.unlink(path)

    def open_input_stream(self, path):
        return open(path, "rb")

    def open_output_stream(self, path):
        return open(path, "wb")

    def write(self, path, data):
        self._replace(path, lambda part: _write_file(part, data))

    def copy_file(self, source: str, path: str) -> None:
        """Copies a local file so that readers see the old one or the new one, never a mixture."""
        self._replace(path, lambda part: shutil.copyfile(source, part))

    @staticmethod
    def _replace(path, write):
        part = f"{path}{_PART_MARK}{secrets.token_hex(_PART_CHARACTERS // 2)}"
        try:
            write(part)
            os.replace(part, path)
        except BaseException:
            try:
                os.unlink(part)
            except OSError:
                pass
            raise


def _walk(path, prefix, around):
    """Follows links to directories. around: the identities of the directories in which this one
    lies."""
    status = os.stat(path)
    identity = (status.st_dev, status.st_ino)
    if identity in around:
        raise OSError(
            errno.ELOOP,
            "A link leads back to a directory that it lies in, so there is no end of files to "
            "copy: remove the link",
            path,
        )
    with os.scandir(path) as entries:
        found = [(entry.name, entry.is_dir()) for entry in entries]
    yield from ((prefix + name, is_directory) for name, is_directory in found)
    for name, is_directory in found:
        if is_directory:
            yield from _walk(f"{path}/{name}", f"{prefix}{name}/", (*around, identity))


def _check_regular(path):
    """Raises OSError for anything without contents that could be copied, because reading it may
    never end."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(
            errno.EINVAL,
            "Neither a file nor a directory (but a pipe, a socket or a device), so it cannot be "
            "copied: remove it",
            path,
        )


def _write_file(path, data):
    with open(path, "wb") as file:
        file.write(data)


def is_part(name: str) -> bool:
    """Returns whether the name is that of a file in the making, perhaps of a process that has
    died."""
    _, mark, end = name.rpartition(_PART_MARK)
    return bool(mark) and len(end) == _PART_CHARACTERS and not set(end) - set("0123456789abcdef")


def operations(filesystem: Any) -> FileSystem:
    """Returns the operations on a file system object of ours, of pyarrow or of fsspec.

    Raises TypeError for any other object.
    """
    if isinstance(filesystem, FileSystem):
        return filesystem
    family = {base.__module__.partition(".")[0] for base in type(filesystem).__mro__}
    for package, module in _ADAPTERS.items():
        if package in family:
            return importlib.import_module(module).adapt(filesystem)
    raise TypeError(
        f"{filesystem!r} is no file system that Train knows: pass an object of pyarrow.fs or "
        "fsspec, or leave it out for local paths."
    )


def resolve(path: str | os.PathLike, filesystem: Any = None) -> tuple[Any, str]:
    """Returns (file system, absolute path in it) of a path or URI.

    With `filesystem`, the path is one in it, without a scheme. Without, a path without a scheme is
    local (relative ones begin at the working directory, and ~ is the home directory), and URIs
    with another scheme than file:// need pyarrow or fsspec: ImportError without, ValueError for a
    scheme that both do not know.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"A path must be a str or a pathlib.Path, not {path!r}.")
    text = os.fspath(path)
    if not text:
        raise ValueError("A path is empty: give a directory or a URI.")
    if filesystem is not None:
        return filesystem, _strip(text)
    scheme, mark, rest = text.partition("://")
    if not mark:
        return LOCAL, _strip(os.path.abspath(os.path.expanduser(text)))
    if scheme == "file":
        return LOCAL, _strip(_local_part(rest))
    found, inside = open_uri(text)
    return found, _strip(inside)


def _local_part(rest: str) -> str:
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise ValueError(f"file://{rest} must be file:///absolute/path: it names no host.")
    return "/" + urllib.parse.unquote(path)


def _strip(path: str) -> str:
    return path.rstrip("/") or "/"


def copy_tree(source_fs: FileSystem, source: str, target_fs: FileSystem, target: str) -> None:
    """Copies everything below the directory `source` into the directory `target`.

    Other files in the target stay, those of the same name are replaced. Raises FileNotFoundError
    if there is no such directory, and OSError for what is neither a file nor a directory.
    """
    if source_fs.kind(source) != "directory":
        raise FileNotFoundError(2, "There is no such directory to copy from", source)
    # All is listed first, so that a target inside of the source is not copied into itself for ever.
    entries = list(source_fs.walk(source))
    target_fs.make_directory(target)
    for relative, is_directory in entries:
        place, origin = f"{target}/{relative}", f"{source}/{relative}"
        if is_directory:
            target_fs.make_directory(place)
            continue
        if is_part(os.path.basename(relative)):
            continue
        if source_fs.is_local:
            _check_regular(origin)
        if isinstance(target_fs, LocalFileSystem) and source_fs.is_local:
            target_fs.copy_file(origin, place)
        else:
            with source_fs.open_input_stream(origin) as reader:
                with target_fs.open_output_stream(place) as writer:
                    shutil.copyfileobj(reader, writer, _COPY_BYTES)


# The file system of paths without a scheme; it has no state.
LOCAL = LocalFileSystem()
