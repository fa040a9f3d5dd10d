# The classes of training errors: bases, arguments, attributes, texts, pickling.
import pickle

from conform import show
from ray.train import (
    ControllerError,
    NCCLHangError,
    PreemptionError,
    PreemptionInfo,
    TrainingFailedError,
    WorkerGroupError,
)

for kind in (
    ControllerError,
    WorkerGroupError,
    NCCLHangError,
    PreemptionError,
    TrainingFailedError,
):
    show(
        kind.__name__,
        lambda: [base.__name__ for base in kind.__mro__ if base.__module__ == "ray.train"],
    )
error = WorkerGroupError("two ranks failed", {0: ValueError("a"), 1: KeyError("b")})
show("text", lambda: "two ranks failed" in str(error))
show("failures", lambda: error.worker_failures)
copy = pickle.loads(pickle.dumps(error))
show("copy", lambda: (type(copy).__name__, str(copy) == str(error), copy.worker_failures))
error = ControllerError(RuntimeError("no room"))
show("controller", lambda: ("no room" in str(error), error.controller_failure))
copy = pickle.loads(pickle.dumps(error))
show("copy", lambda: (str(copy) == str(error), copy.controller_failure))
show("no arguments", WorkerGroupError)
show("no arguments", ControllerError)
info = PreemptionInfo(5, {"node": [0, 1], "other": [2]})
show("info", lambda: info)
show("nodes", lambda: info.preempted_node_ids)
show("ranks", lambda: info.preempted_ranks)
error = PreemptionError(info, True)
show("preemption", lambda: (error.preemption_info == info, error.drain_timed_out))
copy = pickle.loads(pickle.dumps(error))
show("copy", lambda: (str(copy) == str(error), copy.preemption_info == info))
