"""The summary at the end of scripts/test: a failure, a crash and a pass without tests never count
as success."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import summary

TESTS = pathlib.Path(__file__).resolve().parents[1]
PASSED = '<testcase classname="tests.e2e.test_x" name="test_a@test_x" time="1.5"/>'
FAILED = (
    '<testcase classname="tests.e2e.test_x" name="test_b" time="2"><failure>no</failure></testcase>'
)
SKIPPED = (
    '<testcase classname="c" name="d" time="0"><skipped message="no such program"/></testcase>'
)
CPP = (
    '<testcase classname="unit" name="unit" time="3"><system-out>[ RUN      ] A.B\n'
    "/tmp/a_test.cc:56: Skipped\nonly root can mount\n\n[  SKIPPED ] A.B (0 ms)\n</system-out></testcase>"
)


def result_of(tmp_path, capsys, **passes):
    """Returns the exit code of the summary and its text. passes: the exit code and the test cases
    of each pass."""
    whole = {"ctest": (0, PASSED), "together": (0, PASSED), "alone": (0, PASSED), **passes}
    for name, (code, cases) in whole.items():
        if code is not None:
            (tmp_path / f"{name}.code").write_text(f"{code}\n")
        if cases is not None:
            (tmp_path / f"{name}.xml").write_text(f"<testsuites><s>{cases}</s></testsuites>")
    code = summary.main(tmp_path, tmp_path / "summary")
    printed = capsys.readouterr().out
    assert printed.endswith((tmp_path / "summary").read_text())
    return code, printed


def test_passes_are_added_up(tmp_path, capsys):
    code, printed = result_of(tmp_path, capsys, ctest=(0, CPP), together=(0, PASSED + SKIPPED))
    assert code == 0 and printed.endswith(
        "ctest:  1 passed, 0 failed, 0 skipped\npytest: 2 passed, 0 failed, 1 skipped\n"
        "RESULT: all tests passed\n"
    )
    assert "    3.0 s  unit\n" in printed and "    1.5 s  tests/e2e/test_x.py::test_a\n" in printed
    assert "1    no such program\n" in printed and "1    only root can mount\n" in printed


@pytest.mark.parametrize(
    "passes, said",
    [
        ({"together": (1, PASSED + FAILED)}, "together exit 1"),
        ({"together": (0, PASSED + FAILED)}, "together exit 0"),
        ({"together": (1, PASSED)}, "together exit 1"),
        ({"ctest": (8, PASSED)}, "ctest exit 8"),
        ({"alone": (5, "")}, "alone exit 5, no test ran"),
        ({"alone": (0, SKIPPED)}, "alone exit 0, no test ran"),
        ({"together": (139, None)}, "together exit 139, no test ran"),
        ({"ctest": (None, None)}, "ctest exit None, no test ran"),
    ],
)
def test_what_is_not_a_success(tmp_path, capsys, passes, said):
    code, printed = result_of(tmp_path, capsys, **passes)
    assert code == 1 and f"RESULT: FAILED ({said})\n" in printed


CRASHES = {
    "in a test": """
import os

def test_a():
    os._exit(0)
""",
    "after the tests": """
import os
import pytest

@pytest.fixture(autouse=True, scope="session")
def crashes_at_the_end():
    yield
    os._exit(0)

def test_a():
    pass
""",
}


@pytest.mark.parametrize("when", CRASHES)
def test_a_process_that_crashes_is_a_failure(tmp_path, when):
    pytest.importorskip("xdist")
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "support").symlink_to(TESTS / "support")
    (tmp_path / "test_it.py").write_text(CRASHES[when])
    # Temporary files that a crashed process leaves are then in the test's directory.
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n2", tmp_path],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 1, done.stdout + done.stderr
