"""The connection of this process: whether there is one, what it tells, how it begins and ends.

This is the bottom of the package: it needs no modules but ids.py and interrupts.py, which need
none, so that every other one can import it at its top. Functions that lie above it are given to it:
the one that connects a program which has not called `ray.init()`, and the one that ends the cluster
that a program has started.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading

from ray import _raylet

# absent.py says why this is not typing.TYPE_CHECKING.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# This text describes the runtime to peers, which may run another one.
RUNTIME = "Python {}.{}.{}".format(*sys.version_info[:3])
SCRIPT_MODE, WORKER_MODE, SPILL_WORKER_MODE, RESTORE_WORKER_MODE = 0, 1, 2, 3


def _ids():
    """Returns the module of ids, which few programs use and `import ray` leaves out."""
    from ray._private import ids

    return ids


class Worker:
    """Holds what Python keeps about the connection; one per process, `global_worker`."""

    def __init__(self):
        self.context: dict = {}
        self.mode = None
        self.namespace = ""
        self.default_actor_lifetime = None
        # The paths from which this process's job loads code.
        self.code_search_path: list = []
        # The environment as JSON: in a driver the job's, in a worker the one that the process was
        # started for.
        self.runtime_env = ""
        self.log_printer = None
        # The node that this process started, if any.
        self.node: dict | None = None
        # Ends that node; with True it waits for the end.
        self.stop_node: Callable[[bool], None] | None = None
        self.address_info: dict = {}
        self.pid = 0
        # The package sets these.
        self.ray_version = self.ray_commit = ""

    @property
    def connected(self) -> bool:
        return _raylet.session() != 0

    def check_connected(self):
        if not self.connected:
            raise RuntimeError("Ray has not been started yet: call ray.init() first.")

    def start(self, options: dict):
        _raylet.start({"runtime": RUNTIME, **options})
        self.context = _raylet.context()
        self.namespace = self.context["namespace"]
        self.pid = os.getpid()
        self.mode = SCRIPT_MODE if self.context["is_driver"] else WORKER_MODE

    @property
    def current_job_id(self):
        return _ids().JobID(self.context["job_id"])

    @property
    def node_id(self) -> str:
        return self.context["node_id"].hex()

    @property
    def current_node_id(self):
        return _ids().NodeID(self.context["node_id"])

    @property
    def node_ip_address(self) -> str:
        return self.context["node_ip"]

    @property
    def worker_id(self) -> bytes:
        return self.context["worker_id"]


global_worker = Worker()
# This lock is held while the process connects or disconnects.
lock = threading.RLock()
# The shutdown at exit sets this: code that runs later must not start a cluster implicitly.
_exited = False
_connect: Callable[[], None] | None = None


def connect_with(connect: Callable[[], None]):
    """Sets the function that connects a program which has not called ray.init()."""
    global _connect
    _connect = connect


def ensure_connected():
    if not _raylet.session():
        _connect()


def check_not_forked():
    """Raises RuntimeError in a forked child of a connected process.

    The connection and its threads belong to the parent.
    """
    if _raylet.is_forked():
        raise RuntimeError(
            "This process was forked from one that was connected to Ray, so it cannot use Ray. "
            "Start processes with multiprocessing's 'spawn' method (ray.init() works "
            "there), or fork before ray.init()."
        )


def check_not_exiting():
    """Raises RuntimeError once the interpreter is finalizing.

    No thread can start then, so that connecting would wait for ever.
    """
    if sys.is_finalizing():
        raise RuntimeError("The interpreter is exiting: ray cannot be used any more.")


def check_may_connect():
    """Raises RuntimeError where a program must not be connected without its own ray.init()."""
    check_not_forked()
    check_not_exiting()
    if _exited:
        raise RuntimeError(
            "The interpreter is exiting and ray was shut down: it cannot be used any more."
        )
    if global_worker.mode == WORKER_MODE:
        raise RuntimeError("this worker was disconnected from its cluster")


def is_initialized() -> bool:
    """Whether this process is connected to a cluster."""
    return global_worker.connected


def current_task_info() -> dict | None:
    """Describes the running task, also inside coroutines of asyncio actors. None on drivers.

    In other threads it describes the process: its actor, its job, the resources and the id of the
    task that began last, without names.
    """
    info = _raylet.task_info()
    if info is None and "ray._private.async_actor" in sys.modules:
        call = sys.modules["ray._private.async_actor"].current_call.get()
        if call is not None:
            return call.info()
    return info or _raylet.process_info()


def current_namespace() -> str:
    task = current_task_info() if global_worker.mode == WORKER_MODE else None
    return (task or {}).get("namespace") or global_worker.namespace


def shutdown(*, wait_for_processes: bool = False, _exiting_interpreter: bool = False):
    """Disconnects, and ends the cluster if ray.init() started it.

    It may be called at any time, and more than once.
    """
    from ray._private.interrupts import deferred_interrupts

    global _exited
    _exited = _exited or _exiting_interpreter
    worker = global_worker
    if worker.mode == WORKER_MODE or (worker.pid and worker.pid != os.getpid()):
        return  # A forked child must not touch its parent's connection.
    with lock, deferred_interrupts():
        printer, worker.log_printer = worker.log_printer, None
        if printer and worker.connected:
            printer.settle()
        _raylet.stop()
        if "ray._private.futures" in sys.modules:
            sys.modules["ray._private.futures"].end_session()
        # Whatever printing raises, the cluster must not outlive its driver.
        try:
            if printer:
                printer.stop()
        finally:
            stop_node, worker.stop_node, worker.node = worker.stop_node, None, None
            if stop_node:
                stop_node(wait_for_processes)
            worker.mode = None
            worker.context, worker.address_info = {}, {}


# This is registered at import and not by init(): exit functions that the program registers later
# run earlier, while the cluster is still there.
atexit.register(shutdown, _exiting_interpreter=True)
