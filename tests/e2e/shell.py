"""rayctl as a person uses it, in a world of its own: a temp root, a home directory and a token."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Programs beside this file import from there, too.
sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = REPO / os.environ.get("RT_BUILD", "build")  # scripts/sanitize sets others.
BIN = BUILD / "bin"


class Shell:
    """Runs rayctl with a temp root, home directory and token of its own. stop() ends whatever it
    started."""

    def __init__(self):
        # The path must be short, because Unix sockets are made below it.
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="rte-", dir="/tmp"))
        self.root = self.scratch / "ray"
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        self.env.update(
            HOME=str(self.scratch),
            RAY_TMPDIR=str(self.root),
            RAY_NODE_IP_ADDRESS="127.0.0.1",
            PYTHONPATH=str(BUILD / "python"),
        )

    def command(self, *words):
        return [str(BIN / "rayctl"), *map(str, words)]

    def run(self, *words, timeout=60, **env):
        return subprocess.run(
            self.command(*words),
            env={**self.env, **env},
            cwd=self.scratch,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def ok(self, *words, **env):
        done = self.run(*words, **env)
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def fails(self, *words, code=1, **env):
        """Checks that a command writes one message to stderr and ends with this exit code; returns
        the message."""
        done = self.run(*words, **env)
        assert done.returncode == code, (
            f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        )
        assert done.stderr.startswith("Error: ") and done.stderr.count("Error: ") == 1, done.stderr
        return done.stderr

    def processes(self):
        """Returns the command lines of the processes that have this shell's temp root in their
        environment."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"RAY_TMPDIR={self.root}\0".encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                pass
        return [line for line in found if line]

    def stop(self):
        self.run("stop", "--force")
        shutil.rmtree(self.scratch, ignore_errors=True)
