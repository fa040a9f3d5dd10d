"""Every seed program runs unchanged and prints what it should (its own assertions) with exit code 0."""

import glob
import os
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


@pytest.mark.skipif(not PROGRAMS, reason=f"the seed programs are not at {SEEDS}")
@pytest.mark.parametrize("program", PROGRAMS, ids=[os.path.basename(p) for p in PROGRAMS])
def test_seed(program):
    scratch = tempfile.mkdtemp(prefix="rts-", dir="/tmp")
    env = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    env.update(
        PYTHONPATH=os.path.join(REPO, "build", "python"), RAY_TMPDIR=os.path.join(scratch, "ray")
    )
    try:
        for _ in range(3):  # some assert durations: a busy machine may need another try
            run = subprocess.run(
                [sys.executable, program],
                cwd=scratch,
                env=env,
                capture_output=True,
                text=True,
                timeout=120,
            )
            if run.returncode == 0 or "assert time.time()" not in run.stderr:
                break
        assert run.returncode == 0, run.stdout + run.stderr
        assert EXPECTED.get(os.path.basename(program), "") in run.stdout
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
