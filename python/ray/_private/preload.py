"""The preload field: modules that a fork server has imported before it forks workers.

A worker always imports the modules itself, which costs nothing where its server has them. What the
server does is therefore only a matter of time, and it leaves out every module that might make a
fork differ from a fresh process:

- One that is absent: it may come with the working_dir or py_modules of a worker.
- One whose import fails: the worker meets the failure as a first import would, and reports it
  (runtime_env/setup.py).
- One whose import leaves a thread running, which a fork would not copy, so that locks it held would
  stay locked. Libraries that prepare for forks themselves, as OpenBLAS does, are no problem.
- One whose import opens CUDA, which a forked process cannot use.

A module of the last three kinds has run already. The server then replaces itself by a new one which
is told to leave it out.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import traceback

# The first use of CUDA opens this file, but NVML does not.
_CUDA_DEVICE = "/dev/nvidia-uvm"
_NVML_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"
# A thread that has been joined is in /proc a moment longer, and the kernel does not report when it
# is gone.
_THREAD_END_TRIES, _THREAD_END_S = 20, 0.005


def _leaves_threads() -> bool:
    def more_than_one() -> bool:
        return len(os.listdir("/proc/self/task")) > 1

    if not more_than_one():
        return False
    # Libraries that prepare for forks end their threads when a process forks.
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    for _ in range(_THREAD_END_TRIES):
        if not more_than_one():
            return False
        time.sleep(_THREAD_END_S)
    return True


def _uses_cuda() -> bool:
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}") == _CUDA_DEVICE:
                return True
        except OSError:
            # This was the descriptor with which the folder was listed.
            pass
    return False


def is_absent(name: str, error: BaseException) -> bool:
    """Returns whether the import failed because the module, or a package that holds it, is not
    there."""
    return (
        isinstance(error, ModuleNotFoundError)
        and bool(error.name)
        and f"{name}.".startswith(f"{error.name}.")
    )


def load(modules: list[str], announce) -> str | None:
    """Imports the modules into a fork server; `announce` is called with each name first.

    Returns None when all is well, or the name of a module which must not be in this process: a new
    one has to be started that leaves it out.
    """
    # With this variable torch.cuda.is_available() asks NVML and does not open CUDA.
    given = os.environ.get(_NVML_CHECK)
    os.environ[_NVML_CHECK] = given or "1"
    try:
        return _load(modules, announce)
    finally:
        if given is None:
            del os.environ[_NVML_CHECK]


def _load(modules: list[str], announce) -> str | None:
    for name in modules:
        announce(name)
        try:
            importlib.import_module(name)
        except BaseException as error:
            if is_absent(name, error):
                print(f"preload: {error}: left to the workers", file=sys.stderr, flush=True)
                continue
            traceback.print_exc()
            return name
        why = (
            "leaves threads running" if _leaves_threads() else "uses CUDA" if _uses_cuda() else None
        )
        if why:
            print(
                f"preload: the import of {name} {why}: left to the workers",
                file=sys.stderr,
                flush=True,
            )
            return name
    return None


def hides(paths: list[str]) -> bool:
    """Whether a loaded module hides one of the same name in `paths`.

    The paths come first in a fresh process, so their module would have been imported.
    """
    loaded = {name.partition(".")[0] for name in sys.modules}
    loaded -= {"ray", "__main__", *sys.stdlib_module_names}
    for path in paths:
        try:
            entries = os.listdir(path)
        except OSError:
            # The entry is no folder.
            continue
        for entry in entries:
            name, _, suffix = entry.partition(".")
            if name not in loaded or (suffix and not suffix.endswith(("py", "so"))):
                continue
            where = getattr(sys.modules.get(name), "__file__", None) or ""
            if not where.startswith(os.path.join(path, "")):
                return True
    return False
