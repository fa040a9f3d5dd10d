"""The files of a wheel: metadata, tags, entry points and hashes.

The format is PyPA's binary distribution format (PEP 427 and 491).
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import sys
import sysconfig
import zipfile
from typing import Iterable, Iterator, Tuple

# The name in the archive, the contents, and whether the file is a program.
File = Tuple[str, bytes, bool]
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)

METADATA = """Metadata-Version: 2.1
Name: ray
Version: {version}
Summary: A cluster runtime in C++ for programs written for Ray's public interface
License: Apache-2.0
License-File: LICENSE
License-File: NOTICE
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Requires-Python: >=3.9
Requires-Dist: cloudpickle>=2.2
Description-Content-Type: text/markdown

"""
LICENSE_FILES = ("LICENSE", "NOTICE")
ENTRY_POINTS = """[console_scripts]
rayctl = ray._private.programs:rayctl
ray = ray._private.programs:rayctl
"""


def version(root: pathlib.Path) -> str:
    """The version of the interface, with this project's version as its local part.

    It satisfies `ray==` of the interface, and cannot be mistaken for Ray's own.
    """
    interface = re.search(
        r'^__version__ = "([^"]+)"', (root / "python" / "ray" / "__init__.py").read_text(), re.M
    ).group(1)
    project = re.search(
        r"^project\(\w+ VERSION (\S+)", (root / "CMakeLists.txt").read_text(), re.M
    ).group(1)
    return f"{interface}+rt.{project}"


def tag() -> str:
    """The tag of one interpreter and ABI on this machine's kind of Linux.

    The programs need this machine's version of the C library or a newer one.
    """
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _dist_info(root: pathlib.Path) -> str:
    return f"ray-{version(root)}.dist-info"


def _metadata_files(root: pathlib.Path) -> list[File]:
    info = _dist_info(root)
    metadata = METADATA.format(version=version(root)) + (root / "README.md").read_text()
    head = f"Wheel-Version: 1.0\nGenerator: ray-backend\nRoot-Is-Purelib: false\nTag: {tag()}\n"
    return [
        (f"{info}/METADATA", metadata.encode(), False),
        (f"{info}/WHEEL", head.encode(), False),
        (f"{info}/entry_points.txt", ENTRY_POINTS.encode(), False),
        (f"{info}/top_level.txt", b"ray\n", False),
        *((f"{info}/{name}", (root / name).read_bytes(), False) for name in LICENSE_FILES),
    ]


def write_metadata(root: pathlib.Path, directory: str) -> str:
    """Writes the .dist-info directory without RECORD; returns its name."""
    for name, contents, _ in _metadata_files(root):
        path = pathlib.Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
    return _dist_info(root)


def tree(directory: pathlib.Path, name: str) -> Iterator[File]:
    """Yields the files below `directory`, as `name`/..., in a fixed order."""
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        yield (
            f"{name}/{path.relative_to(directory).as_posix()}",
            path.read_bytes(),
            os.access(path, os.X_OK),
        )


def write(root: pathlib.Path, directory: str, files: Iterable[File]) -> pathlib.Path:
    """Writes a wheel of `files` and the metadata; equal files make equal wheels."""
    path = pathlib.Path(directory, f"ray-{version(root)}-{tag()}.whl")
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:

        def add(name: str, contents: bytes, program: bool) -> None:
            entry = zipfile.ZipInfo(name, _ZIP_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if program else 0o100644) << 16
            archive.writestr(entry, contents)

        for name, contents, program in [*files, *_metadata_files(root)]:
            add(name, contents, program)
            digest = (
                base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
            )
            record.append(f"{name},sha256={digest},{len(contents)}\n")
        own = f"{_dist_info(root)}/RECORD"
        add(own, "".join([*record, f"{own},,\n"]).encode(), False)
    return path


def unpacked_size(path: pathlib.Path) -> int:
    """Returns the size of the wheel's files once they are installed, in bytes."""
    with zipfile.ZipFile(path) as archive:
        return sum(entry.file_size for entry in archive.infolist())
