"""Packs local folders and files and stores them in the head's key-value store.

A package is zipped, named by its content, and stored in chunks.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import types
import zipfile

from ray import _raylet
from ray._private.environment import number_from_environment
from ray._private.runtime_env.ignore import files_of

NAMESPACE = "pkg"
_CHUNK = 16 << 20
_MIB = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Upload:
    """A file at `path`, or `data`, that must be stored as `name` before a worker starts."""

    def __init__(
        self, name: str, path: str | None = None, data: bytes = b"", temporary: bool = False
    ):
        self.name, self.path, self.data, self.temporary = name, path, data, temporary

    def chunks(self):
        if self.path is None:
            yield self.data
            return
        with open(self.path, "rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    def send(self):
        """Stores the file unless it is stored already.

        Either way it is kept until the last job that has called this for it has ended.
        """
        size = len(self.data) if self.path is None else os.path.getsize(self.path)
        count = 1 if self.path is None else (size + _CHUNK - 1) // _CHUNK
        manifest = json.dumps({"size": size, "chunks": count}).encode()
        keys = [f"{self.name}#{i}" for i in range(count)] + [self.name]
        # A put that does not overwrite only adds this job to the users of an existing value.
        whole = _raylet.kv_get(NAMESPACE, self.name) == manifest
        if not whole or any([_raylet.kv_put(NAMESPACE, key, b"", False) for key in keys]):
            for key, chunk in zip(keys, self.chunks()):
                _raylet.kv_put(NAMESPACE, key, chunk, True)
            # The manifest is written last: where it exists, all chunks do.
            _raylet.kv_put(NAMESPACE, self.name, manifest, True)
        self.discard()

    def discard(self):
        if self.temporary and self.path:
            try:
                os.unlink(self.path)
            except FileNotFoundError:
                pass


def size_limit() -> int:
    """The most bytes of a package: 512 MiB, or RAY_max_grpc_message_size."""
    return number_from_environment("RAY_max_grpc_message_size", int, 512 * _MIB)


def _name_of(path: str, suffix: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(_MIB):
            digest.update(block)
    return f"_ray_pkg_{digest.hexdigest()}{suffix}"


def _check_size(what: str, size: int):
    limit = size_limit()
    if size > limit:
        raise ValueError(
            f"Package size ({size / _MIB:.2f}MiB) exceeds the maximum size of "
            f"{limit / _MIB:.2f}MiB: {what}. "
            "You can exclude large files using the 'excludes' option to the runtime_env or "
            "provide a remote URI of a zip file."
        )
    warn = number_from_environment("RAY_PACKAGE_SIZE_WARNING_MIB", float, limit / 2 / _MIB) * _MIB
    if size > warn:
        logging.getLogger("ray").warning(
            "The package made of %s is large (%.1f MiB; the limit is %.1f MiB). Consider adding "
            "what workers do not need to 'excludes' of the runtime_env.",
            what,
            size / _MIB,
            limit / _MIB,
        )


def _upload_file(path: str, suffix: str) -> Upload:
    _check_size(path, os.path.getsize(path))
    return Upload(_name_of(path, suffix), path)


def _zip(files: list[tuple[str, str]], what: str) -> Upload:
    """Zips the files. Equal files give equal bytes: they are sorted, and their times left out."""
    descriptor, path = tempfile.mkstemp(prefix="ray-package-", suffix=".zip")
    upload = Upload("", path, temporary=True)
    try:
        with (
            os.fdopen(descriptor, "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            for name, source in files:
                try:
                    name.encode()
                except UnicodeEncodeError:
                    raise ValueError(
                        f"{what}: the name of the file {os.fsencode(source)!r} is not UTF-8 text, "
                        "so it cannot be packed. Rename it, or leave it out "
                        "with the environment's `excludes`."
                    ) from None
                info = zipfile.ZipInfo(name, _EPOCH)
                if info.is_dir():
                    info.external_attr = 0o40755 << 16
                    archive.writestr(info, b"")
                    continue
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = (0o100755 if os.access(source, os.X_OK) else 0o100644) << 16
                with open(source, "rb") as data, archive.open(info, "w", force_zip64=True) as out:
                    while block := data.read(_MIB):
                        out.write(block)
                if file.tell() > size_limit():
                    break
        _check_size(what, os.path.getsize(path))
        upload.name = _name_of(path, ".zip")
    except BaseException:
        upload.discard()
        raise
    return upload


def package_folder(path: str, excludes: list[str], below: str = "") -> Upload:
    """Zips the folder's files, under the path `below` in the package."""
    return _zip([(below + name, source) for name, source in files_of(path, excludes)], path)


def working_dir_upload(path: str, excludes: list[str]) -> Upload:
    """Packs a working_dir. ValueError when `path` is neither a folder nor a .zip file."""
    real = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(real):
        return package_folder(real, excludes)
    if os.path.isfile(real) and zipfile.is_zipfile(real):
        return _upload_file(real, ".zip")
    raise ValueError(
        f"working_dir: {path!r} is neither an existing directory, nor a zip file, nor a URI"
    )


def py_module_upload(module, excludes: list[str]) -> Upload:
    """Packs a module: a folder, a .py file, a wheel, or a module object imported here."""
    if isinstance(module, types.ModuleType):
        paths = list(getattr(module, "__path__", [])) or [getattr(module, "__file__", None)]
        if not paths[0]:
            raise ValueError(f"py_modules: the module {module.__name__} has no file")
        module = paths[0]
    path = os.path.abspath(os.path.expanduser(module))
    if os.path.isdir(path):
        return package_folder(path, excludes, os.path.basename(path) + "/")
    if os.path.isfile(path) and path.endswith(".whl"):
        return _upload_file(path, "-" + os.path.basename(path))
    if os.path.isfile(path) and path.endswith(".py"):
        return _zip([(os.path.basename(path), path)], path)
    raise ValueError(f"py_modules: {module!r} is not a directory, .py file or .whl file")
