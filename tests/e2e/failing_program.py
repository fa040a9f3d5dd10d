"""Runs programs that end with an exception, and returns its last line."""

import subprocess
import sys


def program(shell, code, timeout=60, **env):
    """Runs Python code; returns the exit code and the exception's last line (class: text)."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**shell.env, **env},
        cwd=shell.scratch,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.count("Traceback") == 1, done.stderr
    return done.stderr[done.stderr.rindex("\n  ") :].split("\n", 2)[2].strip()


def init_fails(shell, arguments="", **env):
    return program(shell, f"import ray; ray.init({arguments})", **env)
