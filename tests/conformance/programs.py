"""Finds and runs the programs.

The first line of a program says which behaviour it shows. The lines `# word: value` after it are
directives:

# compare: stderr      The output to stderr is compared as well.
# env: NAME=VALUE      Sets a variable of the program's environment.
# timeout: SECONDS     The limit of a run, instead of 180; on Ray it is RAY_PATIENCE times as much.
# needs: extras        The packages of build/ray-extras, which run.py installs, are importable.
# needs: torch         PyTorch is importable; where it is not, the program is skipped.
# needs: alone         No other program runs meanwhile, because Ray's "auto" finds any Ray cluster
#                      of the machine.
"""

import dataclasses
import importlib.util
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from normalise import normalise

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
GROUPS = ("tasks", "actors", "objects", "errors", "drivers", "util", "groups", "train")
EXTRAS = PROJECT / "build" / "ray-extras"
# On a busy machine, Ray alone takes a minute for training runs that take it 15 s on an idle one.
RAY_PATIENCE = 2
sys.path.append(str(PROJECT / "bench"))
# A shell ignores SIGINT in the programs that it starts in the background; the programs of this
# directory must not inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The virtual environment with Ray and the environments of runs are those of the benchmarks.
import compare  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Program:
    name: str  # As "tasks/closures".
    path: pathlib.Path
    behaviour: str  # The first line, without the "#".
    stderr: bool = False
    timeout_s: float = 180
    extras: bool = False
    alone: bool = False
    torch: bool = False
    env: tuple = ()

    @property
    def group(self):
        return self.path.parent.name

    @property
    def missing(self):
        """Names what a run on this project needs and this machine lacks; empty if nothing."""
        if self.extras and not EXTRAS.exists():
            return "the packages that `make conformance` installs"
        if self.torch and not importlib.util.find_spec("torch"):
            return "PyTorch (Debian: python3-torch)"
        return ""

    @property
    def expected(self):
        return HERE / "expected" / (self.name + ".txt")


def discover(pattern=""):
    """The programs in which the regular expression `pattern` finds a match, sorted by name."""
    found = []
    for path in sorted(path for group in GROUPS for path in (HERE / group).glob("*.py")):
        name = f"{path.parent.name}/{path.stem}"
        if re.search(pattern, name):
            found.append(_read(name, path))
    return found


def _read(name, path):
    lines = path.read_text().split("\n")
    directives = []
    for line in lines[1:]:
        match = re.fullmatch(r"# (compare|env|timeout|needs): (.*)", line)
        if not match:
            break
        directives.append(match.groups())
    values = dict(directives)
    needs = {value for word, value in directives if word == "needs"}
    return Program(
        name,
        path,
        lines[0].lstrip("# "),
        stderr=values.get("compare") == "stderr",
        timeout_s=float(values.get("timeout", 180)),
        extras="extras" in needs,
        alone="alone" in needs,
        torch="torch" in needs,
        env=tuple(value for word, value in directives if word == "env"),
    )


def execute(program, python, ours):
    """Runs a program with a temporary root of its own, and ends all processes it leaves behind.

    Args:
        program: the Program.
        python: the interpreter to run it with.
        ours: True for this project, False for Ray.

    Returns:
        The normalised output and the raw text of stderr.
    """
    for _ in range(3):
        output, errors = _execute(program, python, ours)
        # On a loaded machine, Ray may fail to start; such a run is repeated.
        if ours or "The current node timed out during startup" not in errors:
            break
    return output, errors


def _execute(program, python, ours):
    # The paths of the Unix sockets below it must not become too long.
    root = pathlib.Path(tempfile.mkdtemp(prefix="cf-", dir="/tmp"))
    try:
        (root / "tmp").mkdir()
        env = compare.environment(root, ours)
        paths = [
            env.pop("PYTHONPATH", ""),
            str(HERE / "support"),
            str(EXTRAS) if program.extras else "",
        ]
        env.update(
            PYTHONPATH=":".join(path for path in paths if path),
            TMPDIR=str(root / "tmp"),
            PYTHONDONTWRITEBYTECODE="1",
            PYTHONHASHSEED="0",
        )
        env.update(value.split("=", 1) for value in program.env)
        with open(root / "out", "w+") as out, open(root / "err", "w+") as err:
            process = subprocess.Popen(
                [python, str(program.path)],
                env=env,
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                limit_s = program.timeout_s * (1 if ours else RAY_PATIENCE)
                end = f"[exit {process.wait(limit_s)}]\n"
            except subprocess.TimeoutExpired:
                end = "[timeout]\n"
                process.kill()
                process.wait()
            left = _end_leftover_processes(root)
        output = (root / "out").read_text(errors="replace")
        errors = (root / "err").read_text(errors="replace")
        if program.stderr:
            output = output.rstrip("\n") + "\n--- stderr\n" + errors
        if end != "[exit 0]\n":
            output = output.rstrip("\n") + "\n" + end
        if left and ours:
            output = output.rstrip("\n") + "\n" + f"[processes left: {left}]\n"
        return normalise(output, root, PROJECT).lstrip("\n"), errors
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _end_leftover_processes(root, patience_s=10.0):
    """Ends the processes that the program left behind.

    They are found by their directory, command line and environment. Returns the number of those
    that did not end by themselves within `patience_s` seconds.
    """
    deadline = time.monotonic() + patience_s
    while (left := _processes_of(str(root))) and _await_end(left, deadline):
        pass
    names = len(_processes_of(str(root)))
    while left := _processes_of(str(root)):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        _await_end(left, time.monotonic() + patience_s)
    return names


def _await_end(pids, deadline):
    """Waits for the end of these processes. Returns whether all have ended by the deadline."""
    for pid in pids:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            left_s = max(0, deadline - time.monotonic())
            if not select.select([process], [], [], left_s)[0]:
                return False
        finally:
            os.close(process)
    return True


def _processes_of(root):
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if open(f"/proc/{entry.name}/stat").read().rsplit(")", 1)[1].split()[0] == "Z":
                continue
            if os.readlink(f"/proc/{entry.name}/cwd").startswith(root) or any(
                root.encode() in open(f"/proc/{entry.name}/{file}", "rb").read()
                for file in ("cmdline", "environ")
            ):
                found.append(int(entry.name))
        except OSError:
            pass
    return found
