"""Every seed program runs unchanged and prints what it should (its own assertions) with exit code
0."""

import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SEEDS = os.path.join(os.path.dirname(REPO), "shared", "seeds", "programs")
PROGRAMS = sorted(glob.glob(os.path.join(SEEDS, "*.py")))
EXPECTED = {
    "squares.py": "[0, 1, 4, 9]",
    "counters.py": "[1, 1, 1, 1]",
    "matrices.py": "(1000, 1000)",
    "pythonpath.py": "abc",
    "timeline.py": "6 spans",
}
ASSERTS_DURATIONS = re.compile(r"assert.*time\.time\(\)")
MEASURES = pytest.mark.alone("the program asserts how long its steps take")


@pytest.mark.skipif(not PROGRAMS, reason=f"the seed programs are not at {SEEDS}")
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            path,
            id=os.path.basename(path),
            marks=[MEASURES] if ASSERTS_DURATIONS.search(pathlib.Path(path).read_text()) else [],
        )
        for path in PROGRAMS
    ],
)
def test_seed(program):
    scratch = tempfile.mkdtemp(prefix="rts-", dir="/tmp")
    env = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    env.update(
        PYTHONPATH=os.path.join(REPO, "build", "python"), RAY_TMPDIR=os.path.join(scratch, "ray")
    )
    try:
        # The program asserts durations, so that a busy machine may need another try.
        for _ in range(3):
            run = subprocess.run(
                [sys.executable, program],
                cwd=scratch,
                env=env,
                capture_output=True,
                text=True,
                timeout=120,
            )
            if run.returncode == 0 or not ASSERTS_DURATIONS.search(run.stderr):
                break
        assert run.returncode == 0, run.stdout + run.stderr
        assert EXPECTED.get(os.path.basename(program), "") in run.stdout
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
