"""The Debian packages (make deb), looked into and used from a directory. scripts/clean_root --deb
installs them."""

import os
import re
import shutil
import subprocess

import pytest

from shell import REPO

pytestmark = pytest.mark.skipif(
    not shutil.which("cpack") or not shutil.which("dpkg-deb"),
    reason="cpack or dpkg-deb is not installed",
)
NAMES = ("ray-runtime", "ray-runtime-dev")


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Builds the two packages and returns their files by name. To save time they are hardly
    compressed and contain no debug symbols."""
    out = tmp_path_factory.mktemp("deb")
    run(
        "cpack",
        "--config",
        REPO / "build" / "CPackConfig.cmake",
        "-D",
        f"CPACK_OUTPUT_FILE_PREFIX={out}",
        "-D",
        f"CPACK_PACKAGE_DIRECTORY={out}/work",
        "-D",
        "CPACK_DEBIAN_RUNTIME_DEBUGINFO_PACKAGE=OFF",
        "-D",
        "CPACK_DEBIAN_COMPRESSION_TYPE=none",
        "-D",
        "CPACK_STRIP_FILES=ON",
        cwd=REPO / "build",
    )
    return {path.name.split("_")[0]: path for path in out.glob("*.deb")}


@pytest.fixture(scope="module")
def root(packages, tmp_path_factory):
    """Returns the directory into which both packages are unpacked."""
    directory = tmp_path_factory.mktemp("root")
    for path in packages.values():
        run("dpkg-deb", "-x", path, directory)
    return directory


def files_of(path):
    return {
        line.split(None, 5)[5].split(" -> ")[0].removeprefix(".")
        for line in run("dpkg-deb", "-c", path).splitlines()
        if not line.startswith("d")
    }


def field(path, name):
    return run("dpkg-deb", "-f", path, name).strip()


def test_what_is_installed_is_in_exactly_one_package(packages, tmp_path):
    assert set(packages) == set(NAMES)
    runtime, development = (files_of(packages[name]) for name in NAMES)
    assert not runtime & development
    run(
        "cmake",
        "--install",
        REPO / "build",
        "--prefix",
        "/usr",
        env={**os.environ, "DESTDIR": str(tmp_path)},
    )
    installed = {
        "/" + str(path.relative_to(tmp_path))
        for path in tmp_path.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    assert installed <= runtime | development
    notices = (tmp_path / "usr/share/doc/ray-runtime/copyright").read_text()
    for author in ("Niels Lohmann", "Yann Collet", "Jamie Wong", "Adobe", "FURUHASHI Sadayuki"):
        assert author in notices
    only_packed = {
        re.sub(r"ray-runtime(-dev)?", "NAME", path) for path in (runtime | development) - installed
    }
    shown = {path for path in only_packed if re.search("/NAME/(images|examples)/", path)}
    assert "/usr/share/doc/NAME/images/train-tensorboard.png" in shown
    # Only the copy in ray-runtime-dev is missing: `make install` installs the one of ray-runtime,
    # too.
    assert {path for path in only_packed - shown if not path.endswith(".md")} == {
        "/etc/ray/ray.env",
        "/usr/share/doc/NAME/changelog.Debian.gz",
        "/usr/share/doc/NAME/LICENSE",
        "/usr/share/doc/NAME/NOTICE",
        "/usr/share/doc/NAME/copyright",
        "/usr/share/lintian/overrides/NAME",
    }
    assert all(
        path.startswith(
            (
                "/usr/include/",
                "/usr/lib/cmake/",
                "/usr/lib/libray_api.so",
                "/usr/share/doc/",
                "/usr/share/lintian/",
            )
        )
        for path in development
    )


def test_what_the_packages_say_of_themselves(packages):
    needed = field(packages["ray-runtime"], "Depends")
    for name in (
        "python3 (>= 3.",
        "python3 (<< 3.",
        "python3-cloudpickle",
        "libprotobuf",
        "libsqlite3",
        "libdw1",
        "adduser",
    ):
        assert name in needed, needed
    version = field(packages["ray-runtime"], "Version")
    assert f"ray-runtime (= {version})" in field(packages["ray-runtime-dev"], "Depends")
    for path in packages.values():
        summary, *text = field(path, "Description").splitlines()
        assert summary and text and all(line.startswith(" ") for line in text)


def test_maintainer_scripts_and_configuration(packages, tmp_path):
    run("dpkg-deb", "-e", packages["ray-runtime"], tmp_path)
    for name in ("postinst", "prerm", "postrm"):
        assert os.access(tmp_path / name, os.X_OK)
        run("sh", "-n", tmp_path / name)
    assert (tmp_path / "conffiles").read_text().split() == ["/etc/ray/ray.env"]
    assert "ldconfig" in (tmp_path / "triggers").read_text()
    (entry,) = [
        line
        for line in run("dpkg-deb", "-c", packages["ray-runtime"]).splitlines()
        if line.endswith("./etc/ray/ray.env")
    ]
    assert entry.startswith("-rw-r----- root/root")


def test_nothing_in_them_knows_where_it_was_built(root):
    """Only texts are checked, because assertions in the programs name their source files."""
    told = [
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file()
        and path.suffix in (".py", ".cmake", ".service", ".conf", ".env", ".json", ".pth", ".md")
        and str(REPO).encode() in path.read_bytes()
    ]
    assert told == []


def test_a_program_uses_the_unpacked_package(root, shell):
    packages = root / "usr" / "lib" / "python3" / "dist-packages"
    assert os.readlink(packages / "ray") == "../../ray-runtime/python/ray"
    program = """
import importlib.metadata, os, ray
ray.init(num_cpus=1, object_store_memory=100_000_000)
print(importlib.metadata.version("ray").split("+")[0] == ray.__version__, ray.get(ray.remote(lambda: ray.__file__).remote()))
children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
print(*[os.path.realpath(f"/proc/{pid}/exe") for pid in children])
"""
    said = run(
        "/usr/bin/python3",
        "-c",
        program,
        env={**shell.env, "PYTHONPATH": str(packages)},
        cwd=shell.scratch,
        timeout=60,
    ).splitlines()
    assert said[0].startswith("True ") and str(root) in said[0], said
    assert set(said[1].split()) == {
        str(root / "usr" / "bin" / name)
        for name in ("ray-head", "ray-node-manager", "ray-object-store")
    }, said


def test_the_cmake_package_finds_its_files(root, tmp_path):
    run("cmake", "-S", REPO / "cpp" / "example", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={root}/usr")
    assert f"{root}/usr" in (tmp_path / "CMakeCache.txt").read_text()
