"""PEP 517 and PEP 660 hooks: builds with CMake, then packs the result (wheel.py).

backend.py DIRECTORY        builds a wheel for this interpreter into DIRECTORY and prints its size
"""

from __future__ import annotations

import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import wheel

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = (
    "raylet",
    "ray-head",
    "ray-node-manager",
    "ray-object-store",
    "rayctl",
    "ray_api",
    "ray-cpp-worker",
)
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
# Libraries of the C and C++ runtimes, which every system with the interpreter has; manylinux
# relies on them, too.
SYSTEM_LIBRARIES = (
    "linux-vdso.so",
    "ld-linux",
    "libc.so",
    "libm.so",
    "libdl.so",
    "libpthread.so",
    "librt.so",
    "libgcc_s.so",
    "libstdc++.so",
    "libz.so",
)
# Debian packages whose headers are compiled into the programs, under licenses that ask for their
# notice beside binaries.
HEADER_LIBRARIES = ("nlohmann-json3-dev", "libxxhash-dev")


class BuildError(Exception):
    """No wheel can be built; the text says why and what to do."""


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings=None) -> str:
    return wheel.write_metadata(ROOT, metadata_directory)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_sdist(sdist_directory: str, config_settings=None) -> str:
    raise BuildError(
        "there is no source distribution: build from a checkout, with `pip install .` or `pip "
        "wheel .`"
    )


def build_wheel(wheel_directory: str, config_settings=None, metadata_directory=None) -> str:
    """Builds and packs a wheel; returns the name of its file in `wheel_directory`."""
    build = _build(config_settings)
    with tempfile.TemporaryDirectory(prefix="ray-wheel-") as scratch:
        stage, package = pathlib.Path(scratch, "stage"), pathlib.Path(scratch, "ray")
        _run(["cmake", "--install", str(build), "--prefix", str(stage), "--strip"])
        _arrange(stage, package)
        path = wheel.write(ROOT, wheel_directory, wheel.tree(package, "ray"))
    print(
        f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {wheel.unpacked_size(path) / 1e6:.1f} "
        "MB installed"
    )
    return path.name


def build_editable(wheel_directory: str, config_settings=None, metadata_directory=None) -> str:
    """Makes a wheel that puts the build directory's package on the import path.

    That package consists of links to the sources.
    """
    build = _build(config_settings)
    return wheel.write(
        ROOT, wheel_directory, [("ray-editable.pth", f"{build / 'python'}\n".encode(), False)]
    ).name


def _build_dir(config_settings) -> pathlib.Path:
    settings = dict(config_settings or {})
    given = settings.pop("build-dir", None)
    # This is a setting of setuptools, which is ignored here.
    settings.pop("editable_mode", None)
    if settings:
        raise BuildError(f"unknown setting {', '.join(settings)}: there is build-dir=DIRECTORY")
    if given:
        return (ROOT / given).resolve()
    common = ROOT / "build"
    return common if _configured_for_this(common) else ROOT / "build-wheel"


def _configured_for_this(build: pathlib.Path) -> bool:
    try:
        return f"python/ray/_raylet{SUFFIX}" in (build / "build.ninja").read_text()
    except OSError:
        return False


def _build(config_settings) -> pathlib.Path:
    _check_tools()
    build = _build_dir(config_settings)
    build.mkdir(parents=True, exist_ok=True)
    with open(build / ".lock", "w") as lock:  # As in scripts/build, only one build runs at a time.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _configured_for_this(build):
            if build == ROOT / "build" and (build / "CMakeCache.txt").exists():
                raise BuildError(
                    "build/ is configured for another interpreter: leave build-dir out, or name "
                    "another directory"
                )
            _run(
                [
                    "cmake",
                    "-S",
                    str(ROOT),
                    "-B",
                    str(build),
                    "-G",
                    "Ninja",
                    f"-DRT_PYTHON={sys.executable}",
                    "-DRT_TESTS=OFF",
                ]
            )
        _run(["ninja", "-C", str(build), *TARGETS])
    return build


def _check_tools() -> None:
    missing = [tool for tool in ("cmake", "ninja", "c++", "strip", "ldd") if not shutil.which(tool)]
    if missing:
        raise BuildError(
            f"{', '.join(missing)} not found: scripts/setup installs what building needs (Debian "
            "12)"
        )
    header = pathlib.Path(sysconfig.get_paths()["include"], "Python.h")
    if not header.exists():
        raise BuildError(
            f"{header} is missing: install the development files of {sys.executable} (Debian: "
            "python3-dev)"
        )


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-4000:]}")


def _arrange(stage: pathlib.Path, package: pathlib.Path) -> None:
    """Copies files from the layout of an installation to that of the package."""
    shutil.copytree(stage / "lib" / "ray-runtime" / "python" / "ray", package)
    for other in package.glob("_raylet*.so"):
        if other.name != f"_raylet{SUFFIX}":
            other.unlink()
    (package / "bin").mkdir()
    for program in (stage / "bin").iterdir():
        if not program.is_symlink():
            shutil.copy2(program, package / "bin")
    (package / "lib").mkdir()
    soname = "libray_api.so.0"
    library = (stage / "lib" / soname).resolve()
    # A wheel has no symbolic links, so the library gets the name under which programs load it.
    shutil.copy2(library, package / "lib" / soname)
    shutil.copytree(stage / "lib" / "cmake", package / "lib" / "cmake")
    for targets in (package / "lib" / "cmake" / "ray").glob("rayTargets*.cmake"):
        targets.write_text(targets.read_text().replace(library.name, soname))
    shutil.copytree(stage / "include", package / "include")
    # Libraries loaded by name: with the first profile, for a cluster with TLS, with the first
    # scrape.
    modules = [
        package / "lib" / name for name in ("libray_unwind.so", "libray_tls.so", "libray_http.so")
    ]
    for module in modules:
        shutil.copy2(stage / "lib" / module.name, module)
    programs = [
        package / f"_raylet{SUFFIX}",
        package / "lib" / soname,
        *modules,
        *(package / "bin").iterdir(),
    ]
    libraries = _third_party(programs)
    for path in libraries:
        shutil.copy(path, package / "lib" / pathlib.Path(path).name)
    licenses = package / "lib" / "licenses"
    _copy_licenses(libraries, licenses)
    # The notices of others whose code or files are part of the programs themselves.
    shutil.copy(stage / "share" / "doc" / "ray-runtime" / "copyright", licenses / "ray-runtime")


def _third_party(programs) -> list[str]:
    """The libraries that the programs load beyond the C and C++ runtimes, by their sonames."""
    found = {}
    for program in programs:
        for line in subprocess.run(
            ["ldd", str(program)], check=True, capture_output=True, text=True
        ).stdout.splitlines():
            name, _, rest = line.strip().partition(" => ")
            if name.startswith(SYSTEM_LIBRARIES) or not rest or name.startswith("libray_api"):
                continue
            if rest.startswith("not found"):
                raise BuildError(f"{program.name} needs {name}, which is not on this machine")
            found[name] = rest.rsplit(" (", 1)[0]
    return sorted(found.values())


def _copy_licenses(libraries: list[str], directory: pathlib.Path) -> None:
    """Copies what Debian says of the licenses of the libraries and headers that go into the wheel.

    A library that no Debian package owns is left out, because only its builder knows its license.
    So is Boost: its license asks for no copy beside object code, and its list has 2 MB.
    """
    headers = ROOT / "build" / "third_party" / "usr" / "share" / "doc" / "libmsgpack-cxx-dev"
    # The headers of msgpack are the system's.
    if not headers.exists():
        headers = pathlib.Path("/usr/share/doc/libmsgpack-cxx-dev")
    compiled_in = (pathlib.Path("/usr/share/doc", name) for name in HEADER_LIBRARIES)
    documents = {headers, *compiled_in, *filter(None, map(_debian_documents, libraries))}
    directory.mkdir()
    for found in documents:
        if not found.name.startswith("libboost") and (found / "copyright").exists():
            shutil.copy(found / "copyright", directory / found.name)
            # Texts that are the same for many packages are in files of their own.
            text = (found / "copyright").read_text()
            for name in re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", text):
                if os.path.isfile(f"/usr/share/common-licenses/{name}"):
                    shutil.copy(f"/usr/share/common-licenses/{name}", directory / name)


def _debian_documents(path: str) -> pathlib.Path | None:
    """Returns the directory of the documents of the package that owns a library, or None."""
    if not shutil.which("dpkg-query"):
        return None
    # ldd may print /lib/... for a file that its package has under /usr/lib/...
    for name in (path, f"/usr{path}"):
        done = subprocess.run(
            ["dpkg-query", "-S", name], check=False, capture_output=True, text=True
        )
        if done.returncode == 0:
            return pathlib.Path("/usr/share/doc", done.stdout.split(":")[0])
    return None


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/dist")
    target.mkdir(parents=True, exist_ok=True)
    try:
        print(target / build_wheel(str(target)))
    except BuildError as error:
        sys.exit(f"no wheel: {error}")
