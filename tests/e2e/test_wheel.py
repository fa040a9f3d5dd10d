"""`pip install .`: a program needs nothing but the wheel in a fresh virtual environment, and the
programs in the wheel need nothing of this build."""

import base64
import hashlib
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from shell import REPO
from ports import free_port
from waiting import eventually

OTHERS = [
    path
    for minor in range(9, 14)
    if minor != sys.version_info.minor
    for path in (
        f"/usr/bin/python3.{minor}",
        *sorted(
            str(found)
            for found in pathlib.Path(
                os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"), "versions"
            ).glob(f"3.{minor}.*/bin/python")
        ),
    )
    if os.path.exists(path)
]

PROGRAM = """
import sys
import ray

@ray.remote
def double(data):
    return data + data

@ray.remote
class Counter:
    def __init__(self):
        self.n = 0
    def add(self, k):
        self.n += k
        return self.n

with ray.init(num_cpus=2, object_store_memory=100_000_000):
    counter = Counter.remote()
    large = ray.get(double.remote(ray.put(b"x" * 1_000_000)))
    print(ray.get([double.remote(i) for i in range(3)]), len(large), ray.get(counter.add.remote(5)), "numpy" in sys.modules)
"""

MODULES = """
import importlib, pkgutil
import ray

for module in pkgutil.walk_packages(ray.__path__, "ray."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        assert not error.name.startswith("ray"), error      # of a library that is not here
    print(module.name)
"""


class Environment:
    """A virtual environment with nothing but pip and cloudpickle. Cloudpickle is taken from the
    interpreter that runs the tests."""

    def __init__(self, python, directory):
        self.directory = directory
        subprocess.run([python, "-m", "venv", directory], check=True, stdout=subprocess.DEVNULL)
        self.python = directory / "bin" / "python"
        (self.packages,) = directory.glob("lib/python3*/site-packages")
        for path in pathlib.Path(
            importlib.metadata.distribution("cloudpickle").locate_file("")
        ).glob("cloudpickle*"):
            shutil.copytree(path, self.packages / path.name)

    def pip(self, *words):
        done = subprocess.run(
            [self.python, "-m", "pip", "--disable-pip-version-check", *words],
            capture_output=True,
            text=True,
            env=bare_environment(PATH=os.environ["PATH"]),
            cwd=self.directory,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, program, env, *words):
        done = subprocess.run(
            [self.python, "-c", program, *words],
            capture_output=True,
            text=True,
            env=env,
            cwd=self.directory,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def bare_environment(**more):
    return {"HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8", **more}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, REPO / "python" / "packaging" / "backend.py", directory],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (path,) = directory.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    made = Environment(sys.executable, tmp_path_factory.mktemp("venv") / "env")
    made.pip("install", "--no-index", wheel)
    return made


def test_name_and_tags(wheel):
    version, python = r"\d+\.\d+\.\d+\+rt\.\d+\.\d+\.\d+", f"cp3{sys.version_info.minor}"
    assert re.fullmatch(rf"ray-{version}-{python}-{python}-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        head, metadata = (
            archive.read(f"{info}/{name}").decode().splitlines() for name in ("WHEEL", "METADATA")
        )
    assert (
        f"Tag: {'-'.join(wheel.stem.split('-')[2:])}" in head and "Root-Is-Purelib: false" in head
    )
    assert {"Name: ray", "Requires-Python: >=3.9"} <= set(metadata) and [
        line for line in metadata if line.startswith("Requires-Dist: cloudpickle")
    ]


def test_the_licenses_go_with_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        for name in ("LICENSE", "NOTICE"):
            assert archive.read(f"{info}/{name}") == (REPO / name).read_bytes()
        assert "License: Apache-2.0" in archive.read(f"{info}/METADATA").decode().splitlines()
    # The wheel contains these libraries of others and the headers of the C++ package, so it needs
    # their licences.
    for name in ("libprotobuf32", "libdw1", "LGPL-3", "libsqlite3-0", "libmsgpack-cxx-dev"):
        assert f"ray/lib/licenses/{name}" in names
    # These have code in headers, which is compiled into the programs.
    for name in ("nlohmann-json3-dev", "libxxhash-dev", "ray-runtime"):
        assert f"ray/lib/licenses/{name}" in names


def test_the_record_lists_every_file_and_its_hash(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = (name for name in names if name.endswith("/RECORD"))
        rows = dict(line.split(",", 1) for line in archive.read(record).decode().splitlines())
        assert sorted(rows) == sorted(names) and len(names) == len(set(names))
        for name in set(names) - {record}:
            contents = archive.read(name)
            digest = (
                base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
            )
            assert rows[name] == f"sha256={digest},{len(contents)}", name


def test_the_whole_package_is_in_it(wheel):
    source = REPO / "python"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "ray").rglob("*")
        if path.suffix in (".py", ".pyi") or path.name == "py.typed"
    }
    with zipfile.ZipFile(wheel) as archive:
        assert files - set(archive.namelist()) == set()


def test_nothing_in_it_names_the_place_it_was_built_at(environment):
    package = environment.packages / "ray"
    programs = [
        path
        for path in package.rglob("*")
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"
    ]
    assert {
        "ray-head",
        "ray-node-manager",
        "ray-object-store",
        "rayctl",
        "ray-cpp-worker",
        "libray_api.so.0",
    } <= {path.name for path in programs}
    for path in programs:
        dynamic = subprocess.run(
            ["readelf", "--dynamic", "--section-headers", path],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for entry in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic):
            assert all(part.startswith("$ORIGIN") for part in entry.split(":") if part), (
                path.name,
                entry,
            )
        assert ".debug_info" not in dynamic and ".symtab" not in dynamic, (
            f"{path.name} is not stripped"
        )
        for line in subprocess.run(
            ["ldd", path], check=True, capture_output=True, text=True
        ).stdout.splitlines():
            name = line.split()[0]
            if (
                not re.match(
                    r"(/\S*/)?(linux-vdso|ld-linux|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+|z)\.so)",
                    name,
                )
                and path.parent.name != "lib"
            ):
                assert str(package) in line, f"{path.name} takes {name} from elsewhere: {line}"
    for path in package.rglob("*.cmake"):
        assert str(REPO) not in path.read_text(), path


def test_a_program_runs_without_path_and_pythonpath(environment, shell):
    env = bare_environment(
        HOME=str(shell.scratch), RAY_TMPDIR=str(shell.root), PATH="", PYTHONPATH=""
    )
    assert environment.run(PROGRAM, env) == "[0, 2, 4] 2000000 5 False\n"
    assert "ray.exceptions" in environment.run(MODULES, env).split()
    where = environment.run(
        "import ray, importlib.metadata as m; print(ray.__file__); print(m.version('ray'), ray.__version__)",
        env,
    ).split()
    assert where[0] == str(environment.packages / "ray" / "__init__.py") and where[1].startswith(
        where[2] + "+rt."
    )
    # A program may end before its cluster has ended.
    assert eventually(lambda: not shell.processes()), shell.processes()


def test_rayctl_of_the_wheel_starts_a_cluster_of_its_interpreter(environment, shell):
    rayctl = environment.directory / "bin" / "rayctl"
    shell.command = lambda *words: [str(rayctl), *map(str, words)]
    del shell.env["PYTHONPATH"]
    shell.env["PATH"] = "/usr/bin:/bin"
    address = f"127.0.0.1:{free_port()}"
    shell.ok(
        "start",
        "--head",
        f"--port={address.rpartition(':')[2]}",
        "--num-cpus=1",
        "--object-store-memory=100000000",
    )
    program = (
        "import ray, sys; ray.init(); f = ray.remote(lambda: (sys.prefix, ray.__file__)); "
        "print(*ray.get(f.remote()))"
    )
    prefix, file = environment.run(program, {**shell.env, "RAY_ADDRESS": address}).split()
    assert prefix == str(environment.directory) and file == str(
        environment.packages / "ray" / "__init__.py"
    )
    assert "CPU" in shell.ok("status")
    assert str(environment.packages / "ray" / "__init__.py") in shell.ok(
        "job", "submit", "--", "python", "-c", "import ray; ray.init(); print(ray.__file__)"
    )
    shell.ok("stop")
    assert eventually(lambda: not shell.processes()), shell.processes()


def test_the_standard_library_comes_first_in_workers(environment, shell):
    """Workers find a module of the standard library before one of the same name in site-packages,
    as the interpreter does."""
    shadow = environment.packages / "colorsys.py"
    shadow.write_text(
        "raise RuntimeError('a module of site-packages hides the standard library')\n"
    )
    try:
        env = bare_environment(HOME=str(shell.scratch), RAY_TMPDIR=str(shell.root))
        program = "import ray; ray.init(num_cpus=1, object_store_memory=80_000_000); f = ray.remote(lambda: __import__('colorsys').__file__); print(ray.get(f.remote()))"
        assert "site-packages" not in environment.run(program, env)
    finally:
        shadow.unlink()


def test_pip_builds_and_an_editable_install_follows_the_sources(tmp_path, shell):
    made = Environment(sys.executable, tmp_path / "env")
    made.pip("install", "--no-index", "--no-build-isolation", "-e", REPO)
    env = bare_environment(
        HOME=str(shell.scratch), RAY_TMPDIR=str(shell.root), PATH="", PYTHONPATH=""
    )
    assert made.run(PROGRAM, env) == "[0, 2, 4] 2000000 5 False\n"
    assert (
        made.run("import os, ray.actor; print(os.path.realpath(ray.actor.__file__))", env)
        == f"{REPO / 'python' / 'ray' / 'actor.py'}\n"
    )
    assert (
        "version"
        in subprocess.run(
            [made.directory / "bin" / "ray", "--version"],
            env=env,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )


def test_what_cannot_be_built_says_why(tmp_path):
    def refusal(call, **env):
        program = f"import sys; sys.path.insert(0, {str(REPO / 'python' / 'packaging')!r}); import backend; backend.{call}"
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env={**os.environ, **env},
            cwd=tmp_path,
        )
        assert done.returncode == 1
        return done.stderr.splitlines()[-1]

    assert "scripts/setup installs" in refusal("build_wheel('.')", PATH="/nowhere")
    assert "unknown setting buidl-dir" in refusal("build_wheel('.', {'buidl-dir': 'x'})")
    assert "build from a checkout" in refusal("build_sdist('.')")


@pytest.mark.skipif(
    not os.environ.get("RT_SLOW"),
    reason="compiles the binding for other interpreters: set RT_SLOW=1",
)
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "python",
    OTHERS
    or [
        pytest.param(
            "", marks=pytest.mark.skip(reason="no other Python from 3.9 to 3.13 on this machine")
        )
    ],
)
def test_another_interpreter(python, tmp_path, shell):
    made = Environment(python, tmp_path / "env")
    made.pip("install", "--no-index", "--no-build-isolation", REPO)
    env = bare_environment(
        HOME=str(shell.scratch), RAY_TMPDIR=str(shell.root), PATH="", PYTHONPATH=""
    )
    assert made.run(PROGRAM, env) == "[0, 2, 4] 2000000 5 False\n"
    assert "ray.exceptions" in made.run(MODULES, env).split()
