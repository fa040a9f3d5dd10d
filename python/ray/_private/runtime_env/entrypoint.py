"""Makes the runtime environment of a submitted job's driver, then becomes its command.

The node-manager starts it as `main SESSION_DIR COMMAND`, with the environment's variables already
set. Uploaded packages come from the head at RAY_ADDRESS; the fields of the environment are those
in RAY_JOB_CONFIG_JSON_ENV_VAR.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import sys

from ray import _raylet
from ray._private.runtime_env.errors import (
    EXIT_CODE,
    FAILED,
    SetupError,
    refuse_unsupported_fields,
)
from ray._private.runtime_env.packages import Cache, Source, fetch, held_locks


def _prepend(name: str, entries: list[str]):
    known = [entry for entry in os.environ.get(name, "").split(os.pathsep) if entry]
    os.environ[name] = os.pathsep.join(
        [*entries, *(entry for entry in known if entry not in entries)]
    )


def _make(env: dict, session_dir: str):
    refuse_unsupported_fields(env)
    cache = Cache(session_dir)
    source = Source(os.environ["RAY_ADDRESS"], _raylet.auth_token(False))
    if env.get("pip"):
        from ray._private.runtime_env.pip import make_environment

        command = shlex.split(env.get("py_executable") or "")
        python = make_environment(env["pip"], cache, command[0] if command else sys.executable)
        _prepend("PATH", [os.path.dirname(python)])
        os.environ["VIRTUAL_ENV"] = os.path.dirname(os.path.dirname(python))
    paths = [
        fetch(uri, cache, source)
        for uri in ([env["working_dir"]] if env.get("working_dir") else [])
        + (env.get("py_modules") or [])
    ]
    if env.get("working_dir"):
        os.chdir(paths[0])
    if paths:
        _prepend("PYTHONPATH", paths)
    for descriptor in held_locks():
        # The command inherits the locks, since it uses the folders as long as it runs.
        fcntl.fcntl(
            descriptor, fcntl.F_SETFD, fcntl.fcntl(descriptor, fcntl.F_GETFD) & ~fcntl.FD_CLOEXEC
        )


def main():
    session_dir, command = sys.argv[1:3]
    try:
        _make(json.loads(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"])["runtime_env"], session_dir)
    except Exception as error:
        print(
            FAILED
            + (str(error) if isinstance(error, SetupError) else f"{type(error).__name__}: {error}"),
            file=sys.stderr,
            flush=True,
        )
        os._exit(EXIT_CODE)
    os.execv("/bin/sh", ["/bin/sh", "-c", command])
