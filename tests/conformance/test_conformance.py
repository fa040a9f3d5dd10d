"""Runs the programs on this project and compares with the stored outputs of Ray.

Ray itself is not needed; `make conformance` runs both sides.
"""

import difflib
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import programs
import run
from programs import discover, execute

_listed = {**run.known_differences(), **run.explained()}
_compared = [
    program for program in discover() if program.name not in _listed and program.expected.exists()
]


@pytest.mark.parametrize("program", _compared, ids=lambda program: program.name)
def test_program(program):
    if program.missing:
        pytest.skip(f"needs {program.missing}")
    output, errors = execute(program, sys.executable, True)
    expected = program.expected.read_text()
    assert output == expected, "\n".join(
        [
            program.behaviour,
            *difflib.unified_diff(
                expected.split("\n"), output.split("\n"), "ray", "ours", lineterm=""
            ),
            errors[-3000:],
        ]
    )


def test_lists_name_programs():
    names = {program.name for program in discover()}
    assert not set(_listed) - names
    assert len(names) >= 200
    assert not [
        name
        for name in names
        if name not in _listed and not (run.HERE / "expected" / f"{name}.txt").exists()
    ]


def test_without_torch_its_programs_are_skipped(monkeypatch):
    (program,) = discover("^train/torch_model$")
    monkeypatch.setattr(programs.importlib.util, "find_spec", lambda name: None)
    assert "PyTorch" in program.missing
    (program,) = discover("^train/report_metrics$")
    assert not program.missing


def test_training_runs_on_ray_need_an_interpreter_of_their_own(monkeypatch, capsys):
    monkeypatch.setattr(run.compare, "install_ray", lambda version: pytest.fail("installs Ray"))
    monkeypatch.delenv("RAY_TRAIN_PYTHON", raising=False)
    monkeypatch.setattr(sys, "argv", ["run.py", "--ray", "--only", "^train/scaling_defaults$"])
    assert run.main() == 0
    output, notes = capsys.readouterr()
    assert output.startswith("0 programs on Ray") and "--train-python" in notes
    # With both sides, the stored output stands for Ray's.
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "^train/scaling_defaults$"])
    assert run.main() == 0
    assert "1 programs, 1 agree" in capsys.readouterr().out


def test_without_ray_its_stored_outputs_stand_for_it(monkeypatch, capsys):
    def no_network(version):
        raise subprocess.CalledProcessError(1, ["pip", "install"])

    monkeypatch.setattr(run.compare, "install_ray", no_network)
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "^tasks/return_none$"])
    assert run.main() == 0
    output, notes = capsys.readouterr()
    assert (
        output.strip().splitlines()[-1]
        == "1 programs, 1 agree, 0 differ and are explained, "
        "0 wait for a feature or a correction, 0 differ unexplained"
        and "stored" in notes
    )
