"""Packages on a node: fetched once per URI and shared by its workers.

They are kept in <session>/runtime_resources. Each folder NAME has a NAME.lock beside it. A worker
that uses the folder holds the lock shared for the rest of its life; making and removing the folder
takes it exclusively. A folder is made under another name and then renamed, so that one that exists
is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tarfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator

from ray import _raylet
from ray._private.environment import number_from_environment
from ray._private.runtime_env.errors import SetupError
from ray._private.runtime_env.packaging import NAMESPACE
from ray._private.runtime_env.schemes import SCHEME, scheme_of

# Maps a folder to the descriptor of its lock, which is held until the process ends.
_held: dict[str, int] = {}
_MAX_UNPACKED = 64 << 30
_MAX_ENTRIES = 1_000_000
_HTTP_TIMEOUT_S = 60


class Source:
    """Fetches packages from the head's key-value store, before this process is connected."""

    def __init__(self, head_address: str, token: str):
        self._head, self._token = head_address, token

    def get(self, key: str) -> bytes:
        return _raylet.fetch_value(self._head, self._token, NAMESPACE, key)

    def exists(self, name: str) -> bool:
        try:
            self.get(name)
            return True
        except ValueError:
            return False

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yields the chunks of the uploaded file `name`; SetupError if absent or incomplete."""
        size = 0
        try:
            manifest = json.loads(self.get(name))
            for i in range(manifest["chunks"]):
                chunk = self.get(f"{name}#{i}")
                size += len(chunk)
                yield chunk
        except ValueError as error:
            raise SetupError(
                f"the package {SCHEME}{name} is not in the cluster: has the job that uploaded it "
                f"ended? ({error})"
            ) from None
        if size != manifest["size"]:
            raise SetupError(
                f"the package {SCHEME}{name} has {size} bytes instead of {manifest['size']}"
            )

    def write(self, name: str, path: str):
        """Writes the uploaded file `name` to `path`."""
        with open(path, "wb") as file:
            file.writelines(self.chunks(name))

    def read(self, name: str) -> bytes:
        return b"".join(self.chunks(name))


def _checked_target(root: str, name: str) -> str:
    parts = name.replace("\\", "/").split("/")
    if (
        name.startswith(("/", "\\"))
        or ".." in parts
        or "\0" in name
        or (parts and ":" in parts[0] and len(parts[0]) == 2)
    ):
        raise SetupError(
            f"the archive is refused: its entry {name!r} would be unpacked outside of the "
            "target folder"
        )
    return os.path.join(root, *[part for part in parts if part not in ("", ".")])


class _Budget:
    def __init__(self):
        self.entries, self.size = 0, 0

    def add(self, *, entries: int = 0, size: int = 0):
        self.entries += entries
        self.size += size
        if self.entries > _MAX_ENTRIES or self.size > _MAX_UNPACKED:
            raise SetupError(
                f"the archive is too large: more than {_MAX_ENTRIES} entries or "
                f"{_MAX_UNPACKED >> 30} GiB"
            )


def _write(source, target: str, mode: int, budget: _Budget):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as out:
        while block := source.read(1 << 20):
            budget.add(size=len(block))
            out.write(block)
    os.chmod(target, mode)


def _unpack_zip(path: str, root: str, budget: _Budget):
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            target, kind = (
                _checked_target(root, info.filename),
                stat.S_IFMT(info.external_attr >> 16),
            )
            budget.add(entries=1)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise SetupError(
                    f"the archive holds {info.filename!r}, which is a link or device: packages "
                    "hold files and folders only"
                )
            if info.is_dir():
                os.makedirs(target, exist_ok=True)
                continue
            with archive.open(info) as source:
                _write(
                    source, target, 0o755 if (info.external_attr >> 16) & 0o111 else 0o644, budget
                )


def _unpack_tar(path: str, root: str, budget: _Budget):
    with tarfile.open(path) as archive:
        for info in archive:
            target = _checked_target(root, info.name)
            budget.add(entries=1)
            if info.isdir():
                os.makedirs(target, exist_ok=True)
            elif info.isfile():
                _write(
                    archive.extractfile(info), target, 0o755 if info.mode & 0o111 else 0o644, budget
                )
            else:
                raise SetupError(
                    f"the archive holds {info.name!r}, which is a link or device: packages hold "
                    "files and folders only"
                )


def unpack(path: str, root: str, name: str):
    """Unpacks an archive into the new folder `root`; `name` tells the kind of the archive.

    Raises SetupError for a file that is no archive, and for entries that lie outside of `root`.
    """
    os.makedirs(root)
    try:
        if name.lower().endswith((".zip", ".whl")):
            _unpack_zip(path, root, _Budget())
        else:
            _unpack_tar(path, root, _Budget())
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise SetupError(
            f"{name} cannot be unpacked: {os.path.relpath(error.filename, root)!r} is both a "
            "file and a folder in it"
        ) from None
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        EOFError,
        RuntimeError,
        NotImplementedError,
        UnicodeError,
    ) as error:
        raise SetupError(f"{name} cannot be unpacked: {error}") from None


def _only_folder(root: str) -> str | None:
    entries = os.listdir(root)
    path = os.path.join(root, entries[0]) if len(entries) == 1 else ""
    return path if path and os.path.isdir(path) else None


def held_locks() -> list[int]:
    """Returns the descriptors of the locks. A process that inherits them keeps the folders in
    use."""
    return list(_held.values())


def _lock(path: str, operation: int) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, operation)
            # A sweep may have removed the file between open and flock; nobody else would see the
            # lock on it.
            if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


class Cache:
    """Folders that are made once per node. `make(path)` fills a folder that does not exist."""

    def __init__(self, session_dir: str):
        self.root = os.path.join(session_dir, "runtime_resources")
        os.makedirs(self.root, mode=0o700, exist_ok=True)

    def folder(self, name: str, make, in_place: bool = False) -> tuple[str, bool]:
        """Returns (path, whether this call made it).

        The folder stays while this process lives. `in_place` is for content that cannot be
        renamed: a mark in the folder says that it is complete, and a folder without the mark is
        made anew.
        """
        path = os.path.join(self.root, name)
        if path in _held:
            return path, False
        made, whole = False, os.path.join(path, ".complete") if in_place else path
        while True:
            descriptor = _lock(path + ".lock", fcntl.LOCK_SH)
            if os.path.exists(whole):
                _held[path] = descriptor
                os.utime(path + ".lock")
                return path, made
            os.close(descriptor)
            descriptor = _lock(path + ".lock", fcntl.LOCK_EX)
            try:
                if not os.path.exists(whole):
                    made = True
                    if in_place:
                        shutil.rmtree(path, ignore_errors=True)
                        make(path)
                        open(whole, "w").close()
                    else:
                        self._make_and_rename(path, make)
            finally:
                os.close(descriptor)

    @staticmethod
    def _make_and_rename(path: str, make):
        unfinished = f"{path}.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            make(unfinished)
            os.rename(unfinished, path)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise

    def sweep(self, wanted):
        """Removes folders that no live worker uses, if they are unwanted or the cache is too large.

        `wanted(name)` says whether a folder is worth keeping. The limit is
        RAY_RUNTIME_ENV_CACHE_SIZE_GB (10); the oldest folders go first.
        """
        limit = number_from_environment("RAY_RUNTIME_ENV_CACHE_SIZE_GB", float, 10) * (1 << 30)
        ages, total = {}, 0
        for name in [entry[:-5] for entry in os.listdir(self.root) if entry.endswith(".lock")]:
            try:
                ages[name] = os.stat(os.path.join(self.root, name + ".lock")).st_mtime
            except FileNotFoundError:  # Another worker's sweep has removed it.
                continue
        for name in sorted(ages, key=ages.get, reverse=True):
            path = os.path.join(self.root, name)
            total += _size_of(path)
            if path not in _held and (total > limit or not wanted(name)):
                self._remove_unused(path)

    @staticmethod
    def _remove_unused(path: str):
        try:
            descriptor = os.open(path + ".lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            os.unlink(path + ".lock")
        except (BlockingIOError, FileNotFoundError):
            pass
        finally:
            os.close(descriptor)


def _size_of(path: str) -> int:
    total = 0
    for folder, _, files in os.walk(path):
        for file in files:
            try:
                total += os.lstat(os.path.join(folder, file)).st_size
            except OSError:
                continue
    return total


def _download(uri: str, source: Source, path: str) -> None:
    scheme = scheme_of(uri)
    if scheme == "gcs":
        source.write(uri[len(SCHEME) :], path)
    elif scheme in ("http", "https"):
        try:
            with (
                urllib.request.urlopen(uri, timeout=_HTTP_TIMEOUT_S) as response,
                open(path, "wb") as file,
            ):
                shutil.copyfileobj(response, file)
        except OSError as error:
            raise SetupError(f"{uri} cannot be fetched: {error}") from None
    else:
        raise SetupError(
            f"packages at {scheme}:// are not in this release: put the archive behind http(s):// "
            "or file://"
        )


def fetch(uri: str, cache: Cache, source: Source) -> str:
    """Returns the folder with the package's content on this node."""
    local = (
        urllib.parse.unquote(urllib.parse.urlsplit(uri).path) if scheme_of(uri) == "file" else None
    )
    identity = uri
    if local:
        try:
            info = os.stat(local)
        except OSError as error:
            raise SetupError(f"{uri} cannot be read on this node: {error.strerror}") from None
        # The file may change, and a package with other content is another package.
        identity = f"{uri} {info.st_mtime_ns} {info.st_size}"
    name = (
        uri[len(SCHEME) :]
        if uri.startswith(SCHEME)
        else "uri_" + hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()
    )
    if os.path.basename(name) != name or name.startswith("."):
        raise SetupError(
            f"{uri} is not a valid package URI: expected gcs://NAME with a plain file name"
        )

    def make(path: str):
        archive = local or path + ".archive"
        try:
            if not local:
                _download(uri, source, archive)
            unpack(
                archive,
                path,
                urllib.parse.urlsplit(uri).path if not uri.startswith(SCHEME) else name,
            )
        finally:
            if not local and os.path.exists(archive):
                os.unlink(archive)

    path, made = cache.folder(name, make)
    if made:
        cache.sweep(lambda other: not other.startswith("_ray_pkg_") or source.exists(other))
    # Archives made by other tools often hold one folder with everything in it.
    inner = None if uri.startswith(SCHEME) else _only_folder(path)
    return inner if inner and not os.path.exists(os.path.join(inner, "__init__.py")) else path
