"""mypy --strict accepts a typical program and finds its mistakes. The tests run where mypy can be
imported or is a program on the PATH."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import ray

PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "typing"
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(ray.__file__)))
MYPY = (
    [sys.executable, "-m", "mypy"]
    if importlib.util.find_spec("mypy")
    else [shutil.which("mypy")]
    if shutil.which("mypy")
    else None
)

# mypy 1.4 infers nothing through the overloads of ray.remote.
OLDEST = (1, 8)


def mypy(program, tmp_path):
    if MYPY is None:
        pytest.skip("mypy is not installed here (pip install mypy)")
    version = subprocess.run(
        [*MYPY, "--version"], capture_output=True, text=True, timeout=60
    ).stdout
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST:
        pytest.skip(
            f"{version.strip()} does not know what the annotations use, {'.'.join(map(str, OLDEST))} does (pip install mypy)"
        )
    return subprocess.run(
        [
            *MYPY,
            "--strict",
            "--no-error-summary",
            "--follow-imports=silent",
            "--python-version",
            "3.11",
            "--cache-dir",
            str(tmp_path),
            str(program),
        ],
        env={**os.environ, "MYPYPATH": PACKAGE},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=170,
    )


def test_a_typical_program_is_accepted(tmp_path):
    done = mypy(PROGRAMS / "client.py", tmp_path)
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr


def test_mistakes_are_found(tmp_path):
    program = PROGRAMS / "mistakes.py"
    meant = {
        number
        for number, line in enumerate(program.read_text().split("\n"), 1)
        if line.endswith("# error")
    }
    done = mypy(program, tmp_path)
    found = {int(number) for number in re.findall(r"mistakes\.py:(\d+): error", done.stdout)}
    assert found == meant, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    assert os.path.exists(os.path.join(os.path.dirname(ray.__file__), "py.typed"))


def test_the_program_runs_as_it_is_annotated(no_cluster):
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "client.py")],
        env={**os.environ, "PYTHONPATH": PACKAGE},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_generic_classes_can_be_subscribed():
    from ray.actor import ActorClass, ActorHandle, ActorMethod, ActorProxy
    from ray.remote_function import RemoteFunction

    for kind in (
        ray.ObjectRef,
        ray.ObjectRefGenerator,
        ActorClass,
        ActorHandle,
        ActorMethod,
        ActorProxy,
        RemoteFunction,
    ):
        assert kind[int] is not None


@pytest.mark.parametrize("module", ["__init__", "actor", "remote_function", "_raylet"])
def test_stubs_name_what_is_there(module):
    """A public name of a stub is one of the module, too."""
    import ast
    import importlib

    stub = ast.parse(open(os.path.join(os.path.dirname(ray.__file__), module + ".pyi")).read())
    real = ray if module == "__init__" else importlib.import_module(f"ray.{module}")
    names = [node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    names += [
        alias.asname
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    ]
    missing = [name for name in names if not name.startswith("_") and not hasattr(real, name)]
    assert set(missing) <= {"RemoteGenerator", "RemoteFunctionOfMany"}, "of type checkers only"
