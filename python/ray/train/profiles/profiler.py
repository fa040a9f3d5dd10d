"""One run of torch.profiler in the thread that calls, for any torch that has one."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

from ray.train.profiles import foreign, legacy
from ray.train.profiles.order import Order


class TorchProfiler:
    """Made, stepped and stopped in the thread that trains; exports may come from another one.

    Steps before `begin` prepare the profiler and are not recorded. Raises RuntimeError, with the
    remedy in its text, where torch cannot do it.
    """

    def __init__(self, order: Order, number: int, begin: int):
        """`number` is that of the step that begins now."""
        self._torch = torch = sys.modules["torch"]
        self._order = order
        self.has_kineto = bool(torch.autograd.kineto_available())
        self.is_recording = False
        # The names of the marks of the recorded steps, each with the moments, nanoseconds since the
        # epoch, between which it began.
        self._begun: dict[str, tuple[int, int]] = {}
        self._begin = begin
        if self.has_kineto:
            self._profile = _kineto_profile(torch, order, number, begin)
        else:
            self._profile = legacy.Profile(number, begin, order.record_shapes)
        self._mark: Any = None
        with foreign.own_calls(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._profile.start()
        self._begin_mark(number)

    def step(self, number: int) -> None:
        """Notes that the step of this number begins."""
        self._end_mark()
        with foreign.own_calls():
            self._profile.step()
        self._begin_mark(number)

    def _begin_mark(self, number: int) -> None:
        name = f"ProfilerStep#{number}"
        self._mark = self._torch.autograd.profiler.record_function(name)
        before_ns = time.time_ns()
        self._mark.__enter__()
        if number >= self._begin:
            self.is_recording = True
            self._begun[name] = (before_ns, time.time_ns())

    def _end_mark(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def stop(self) -> None:
        """Ends the recording."""
        self._end_mark()
        with foreign.own_calls(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._profile.stop()

    def export(self, path: str) -> None:
        """Writes the trace."""
        if self.has_kineto:
            self._profile.export_chrome_trace(path)
        else:
            legacy.write(self._profile.events, self._begun, path)

    def export_memory(self, path: str) -> bool:
        """Writes torch's timeline of memory by category, if it has one."""
        order = self._order
        if not hasattr(self._profile, "export_memory_timeline") or not self.has_kineto:
            return False
        if not (order.record_shapes and order.profile_memory and order.with_stack):
            return False
        device = "cuda:0" if self._torch.cuda.is_available() else "cpu"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._profile.export_memory_timeline(path, device=device)
        return True

    def notes(self) -> list[str]:
        """Returns sentences about what was asked for and this torch cannot record."""
        order, version = self._order, self._torch.__version__
        if not self.has_kineto:
            return [
                f"PyTorch {version} was built without kineto: its trace has operators and their "
                "shapes, but no Python frames, no memory, and not every collective that goes on "
                "beside operators. Install a build from pytorch.org for those."
            ]
        if not order.profile_memory:
            return []
        if not hasattr(self._profile, "export_memory_timeline"):
            return [
                f"PyTorch {version} has no memory timeline by category, which needs 2.1 or newer; "
                "the total that was allocated is shown."
            ]
        if not (order.record_shapes and order.with_stack):
            return [
                "The memory timeline by category needs shapes and stacks; without them only the "
                "total that was allocated is shown."
            ]
        return []


def _kineto_profile(torch: Any, order: Order, number: int, begin: int) -> Any:
    """Returns a profile that has not started; `number` is that of the step that begins now."""
    module = torch.profiler
    action = module.ProfilerAction

    def schedule(step: int) -> Any:
        return action.WARMUP if step < begin else action.RECORD

    activities = [module.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(module.ProfilerActivity.CUDA)
    profile = module.profile(
        activities=activities,
        schedule=schedule,
        record_shapes=order.record_shapes,
        profile_memory=order.profile_memory,
        with_stack=order.with_stack,
        **_verbose(module),
    )
    profile.step_num = number
    profile.current_action = schedule(number)
    # The step marks are our own, because they have the numbers of the run's steps, and those of
    # versions before 2.0 are one behind.
    profile.record_steps = False
    return profile


def _verbose(module: Any) -> dict[str, Any]:
    """Returns options with which kineto reports the stacks of operators, where torch has them."""
    config = getattr(module, "_ExperimentalConfig", None)
    if config is None:
        return {}
    try:
        return {"experimental_config": config(verbose=True)}
    except TypeError:
        return {}


def missing() -> str | None:
    """Returns why nothing can be profiled in this process, or None if it can."""
    torch = sys.modules.get("torch")
    if torch is None:
        return (
            "the training function has not imported torch, whose profiler records. Stacks and "
            "flame graphs need no torch: rayctl stack, rayctl profile"
        )
    if not hasattr(torch, "profiler") or not hasattr(torch.profiler, "profile"):
        version = getattr(torch, "__version__", "?")
        return (
            f"PyTorch {version} has no torch.profiler.profile. Install PyTorch 1.9 or newer on "
            "every node"
        )
    return None
