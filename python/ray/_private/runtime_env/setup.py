"""A worker process makes its runtime environment: before user code runs, and before it registers.

The process was forked with everything imported, and most fields are applied to it: variables to
os.environ, packages to sys.path, the working directory. Some take effect only when a program
starts and need an exec of the interpreter, which takes a tenth of a second or two: another
interpreter (py_executable, pip), and variables that the loader or the interpreter reads
(common/base/start_variables.h; those of math libraries when NumPy is loaded). The process keeps its
id, logs and parent. Environments with another interpreter or with preloaded modules need none as a
rule: they have a fork server of their own, which is that interpreter and was started with these
variables (node_manager/process/fork_server_key.h).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import re
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Iterator

from ray import _raylet
from ray._private import executor, preload
from ray._private.runtime_env.errors import (
    EXIT_CODE,
    FAILED,
    SetupError,
    refuse_unsupported_fields,
)
from ray._private.runtime_env.schemes import HOOK_SCHEME

DEFAULT_TIMEOUT_S = 600
_VARIABLE = re.compile(r"\$(?:\{([^}]*)\}|(\w+))", re.ASCII)


def expand(value: str) -> str:
    """Replaces ${NAME} and $NAME in `value` by the environment's variables.

    Without such a variable ${NAME} becomes empty and $NAME stays.
    """
    return _VARIABLE.sub(
        lambda match: (
            os.environ.get(match[1], "") if match[2] is None else os.environ.get(match[2], match[0])
        ),
        value,
    )


def _needs_exec(names) -> bool:
    has_libraries = "numpy" in sys.modules
    return any(_raylet.read_at_start(name, has_libraries) for name in names)


def _apply_variables(variables: dict, applied: list[str]):
    """Sets the variables, except those in `applied`, which the fork server was started with."""
    # Variables are set in the order of their names, so that a later one may refer to an earlier
    # one.
    for name in sorted(variables):
        if name not in applied:
            os.environ[name] = expand(variables[name])
    if "TZ" in variables:
        time.tzset()


def _exec(command: list[str], args: dict, base: str):
    """Replaces this program by `command`, in the same process and with the same arguments.

    The arguments hold the token, so they are passed in memory. `base` is the interpreter on which
    pip's environment is made.
    """
    # The package may lie among the packages of another interpreter, which must come after the new
    # one's own: the directory is first on sys.path only while the package is imported.
    code = (
        f"import sys; p = {args['python_path']!r}; sys.path.insert(0, p); from "
        "ray._private.runtime_env.resume import resume; "
        "sys.path.remove(p); p in sys.path or sys.path.append(p); resume(int(sys.argv[1]))"
    )
    descriptor = os.memfd_create("ray_worker_args", 0)
    os.set_inheritable(descriptor, True)
    os.write(descriptor, json.dumps({**args, "executed": base}).encode())
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(command[0], [*command, "-c", code, str(descriptor)])
    except OSError as error:
        raise SetupError(
            f"py_executable: {' '.join(command)} cannot be started: {error.strerror}"
        ) from None


# The functions below import packages.py and pip.py where needed: that takes longer than starting a
# worker that only has variables.


def _source(args: dict):
    from ray._private.runtime_env.packages import Source

    return Source(args["head_address"], args["token"])


def _interpreter_of(env: dict) -> list[str]:
    """The command in py_executable; empty when this interpreter is to be used."""
    if not env.get("py_executable"):
        return []
    return shlex.split(env["py_executable"])


def interpreter(env: dict, session_dir: str) -> tuple[list[str], str, list[int]]:
    """Returns the command of the environment's interpreter, or an empty one if that is the one that
    runs this code; the interpreter it is based on; and descriptors of the locks that keep it.

    An environment of pip is made unless it exists. Raises SetupError if it cannot be made.
    """
    command = _interpreter_of(env)
    base = (command or [sys.executable])[0]
    if not env.get("pip"):
        return command, base, []
    python, locks = _with_pip(env["pip"], session_dir, base)
    return [python], base, locks


def _with_pip(pip: dict, session_dir: str, base: str) -> tuple[str, list[int]]:
    """Returns the interpreter that has these packages. Its environment stays while this process
    lives."""
    from ray._private.runtime_env import packages, pip as environments

    python = environments.make_environment(pip, packages.Cache(session_dir), base)
    return python, packages.held_locks()


def _add_packages(env: dict, args: dict) -> list[str]:
    """Puts working_dir and py_modules on the import path; returns the entries added."""
    from ray._private.runtime_env.packages import Cache, fetch

    cache, source, paths = Cache(args["session_dir"]), _source(args), []
    if env.get("working_dir"):
        paths.append(fetch(env["working_dir"], cache, source))
        os.chdir(paths[0])
    paths += [fetch(uri, cache, source) for uri in env.get("py_modules") or []]
    executor.environment_path = paths
    sys.path[:] = [*paths, *(entry for entry in sys.path if entry not in paths)]
    inherited = [
        entry
        for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if entry and entry not in paths
    ]
    # Programs that the tasks start find the same modules.
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *inherited])
    return paths


def _import_all(modules: list[str]):
    """Imports the modules of the preload field; SetupError names the one that fails, and why."""
    # A submitted job may come with JSON of any kind.
    if not isinstance(modules, list) or not all(isinstance(name, str) and name for name in modules):
        raise SetupError(f"preload: expected a list of names of modules, got {modules!r}")
    for name in modules:
        try:
            importlib.import_module(name)
        except SetupError:
            # The time of the environment is up.
            raise
        except BaseException as error:
            reason = f"{type(error).__name__}: {error}"
            text = f"preload: the module {name!r} cannot be imported: {reason}"
            if not preload.is_absent(name, error):
                text += "\n" + _describe(error)
            raise SetupError(text) from None


def _run_hook(hook: str, args: dict):
    if hook.startswith(HOOK_SCHEME):
        driver_path, blob = pickle.loads(_source(args).read(hook[len(HOOK_SCHEME) :]))
        added = [entry for entry in driver_path if entry and entry not in sys.path]
        sys.path.extend(added)
        try:
            pickle.loads(blob)()
        finally:
            sys.path[:] = [entry for entry in sys.path if entry not in added]
        return
    module, _, name = hook.rpartition(".")
    if not module:
        raise SetupError(
            f"worker_process_setup_hook: {hook!r} names no function of a module ('module.function')"
        )
    getattr(importlib.import_module(module), name)()


def _make(env: dict, args: dict):
    """Applies every field.

    When a field needs an exec the call does not return: the new program begins with resume.py,
    which leads here again.
    """
    refuse_unsupported_fields(env)
    # After an exec this is the `base` that was given to _exec().
    executed = args.get("executed")
    if os.environ.get("RAY_RUNTIME_ENV_PLUGINS") and not executed:
        from ray._private.runtime_env.plugin import apply_plugins

        env = apply_plugins(env)
    variables = env.get("env_vars") or {}
    applied = json.loads(args.get("applied_variables") or "[]")
    python_path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if not executed:
        _apply_variables(variables, applied)
    command: list[str] = []
    # This is a part of the identity of pip's environments, so it must survive the exec.
    base = args.get("served") or executed
    if not base:
        command, base, _ = interpreter(env, args["session_dir"])
    elif env.get("pip") and "served" not in args:
        # The call keeps the environment, as the process did before the exec.
        _with_pip(env["pip"], args["session_dir"], base)
    if not executed and (command or _needs_exec(set(variables).difference(applied))):
        _exec(command or [sys.executable], args, base)
    added: list[str] = []
    if "PYTHONPATH" in variables and not executed:
        added = [
            entry
            for entry in os.environ["PYTHONPATH"].split(os.pathsep)
            if entry and entry not in python_path
        ]
        sys.path[:0] = [entry for entry in added if entry not in sys.path]
    if any(name.startswith("OMP_NUM_THREADS") for name in variables):
        executor.keep_omp_threads()
    if env.get("working_dir") or env.get("py_modules"):
        added = [*_add_packages(env, args), *added]
    if env.get("preload"):
        # The fork server imported its modules before these entries were on its path.
        if added and not executed and preload.hides(added):
            _exec([sys.executable], args, base)
        _import_all(env["preload"])
    if env.get("worker_process_setup_hook"):
        _run_hook(env["worker_process_setup_hook"], args)


def _timeout_of(env: dict) -> int:
    seconds = (env.get("config") or {}).get("setup_timeout_seconds", DEFAULT_TIMEOUT_S)
    return seconds if isinstance(seconds, int) and seconds > 0 else 0


def _on_timeout(signum, frame):
    raise SetupError("it was not ready within config.setup_timeout_seconds")


@contextlib.contextmanager
def time_limit(env: dict) -> Iterator[None]:
    """Raises SetupError in the block when the time for the environment has passed."""
    signal.signal(signal.SIGALRM, _on_timeout)
    signal.setitimer(signal.ITIMER_REAL, _timeout_of(env))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _describe(error: BaseException) -> str:
    if isinstance(error, SetupError):
        return str(error)

    return "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()


def enter(args: dict):
    """Makes the environment in args["runtime_env"].

    A process that cannot tells the node-manager why, and ends.
    """
    env = {}
    try:
        env = json.loads(args["runtime_env"])
        if not isinstance(env, dict):
            raise SetupError("the runtime environment is not a JSON object")
        with time_limit(env):
            _make(env, args)
    except BaseException as error:
        text = _describe(error)
        print(FAILED + text, file=sys.stderr, flush=True)
        try:
            _raylet.report_setup_failure(
                args["node_manager_socket"], bytes.fromhex(args["worker_id"]), text
            )
        finally:
            os._exit(EXIT_CODE)
