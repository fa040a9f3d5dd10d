"""ScalingConfig: how many workers a run has and what each of them needs."""

from __future__ import annotations

import dataclasses
from typing import Any

from ray.train import checks
from ray.train.public import public

_OWNER = "ScalingConfig"
_STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
# A worker takes this share of the resource `accelerator_type:X`, so that it asks only for the kind
# of node.
_ACCELERATOR_SHARE = 0.001


@public
@dataclasses.dataclass
class ScalingConfig:
    """Workers of a run and their resources.

    num_workers: an int, (min, max) for an elastic run, or 0 to run the function in this process.
    use_gpu: each worker needs one GPU, unless resources_per_worker says how many.
    resources_per_worker: resource -> amount; without it {"CPU": 1}, or {"GPU": 1} with use_gpu.
    placement_strategy: PACK, SPREAD, STRICT_PACK or STRICT_SPREAD, as for placement groups.
    accelerator_type: only nodes with this kind of accelerator.
    label_selector: one selector of nodes for all workers, or a list of one for each.
    elastic_resize_monitor_interval_s: seconds between looks for room to grow; 0 or more, where less
    than 1 counts as 1.
    use_tpu: each worker needs one TPU.

    Raises ValueError for a wrong value.
    """

    num_workers: int | tuple[int, int] = 1
    use_gpu: bool = False
    resources_per_worker: dict[str, float] | None = None
    placement_strategy: str = "PACK"
    accelerator_type: str | None = None
    label_selector: dict[str, str] | list[dict[str, str]] | None = None
    elastic_resize_monitor_interval_s: float = 60.0
    use_tpu: bool = False
    topology: str | None = None
    trainer_resources: dataclasses.InitVar[Any] = checks.NOT_GIVEN

    def __post_init__(self, trainer_resources):
        # As in Ray, None counts as not given.
        if trainer_resources is not None:
            checks.refuse_removed(
                _OWNER,
                "the process that steers a run needs no resources.",
                trainer_resources=trainer_resources,
            )
        self._check_workers()
        self._check_devices()
        self._check_resources()
        if self.placement_strategy not in _STRATEGIES:
            raise ValueError(
                f"{_OWNER}(placement_strategy={self.placement_strategy!r}): it must be one of "
                f"{', '.join(_STRATEGIES)}."
            )
        if self.accelerator_type is not None and not isinstance(self.accelerator_type, str):
            raise ValueError(
                f"{_OWNER}(accelerator_type={self.accelerator_type!r}): it must be a name."
            )
        self._check_labels()
        checks.check_seconds(
            _OWNER, "elastic_resize_monitor_interval_s", self.elastic_resize_monitor_interval_s
        )

    def _check_workers(self):
        workers = self.num_workers
        if isinstance(workers, tuple):
            if len(workers) != 2 or not all(checks.is_int(bound) for bound in workers):
                raise ValueError(
                    f"{_OWNER}(num_workers={workers!r}): a tuple must hold two ints, the fewest "
                    "and the most workers."
                )
            fewest, most = workers
            if fewest < 1 or most < fewest:
                raise ValueError(
                    f"{_OWNER}(num_workers={workers!r}): the fewest workers must be at least 1 and "
                    "no more than the most."
                )
            return
        checks.check_whole_number(
            _OWNER, "num_workers", workers, 0, "or a tuple of two: the fewest and the most"
        )

    def _check_devices(self):
        checks.check_bool(_OWNER, "use_gpu", self.use_gpu)
        checks.check_bool(_OWNER, "use_tpu", self.use_tpu)
        if self.use_gpu and self.use_tpu:
            raise ValueError(f"{_OWNER}: use_gpu=True and use_tpu=True exclude each other.")
        if self.topology is not None:
            raise NotImplementedError(
                f"{_OWNER}(topology={self.topology!r}): slices of TPUs are not in this release."
            )

    def _check_resources(self):
        given = self.resources_per_worker
        if given is None:
            return
        if not isinstance(given, dict):
            raise ValueError(
                f"{_OWNER}(resources_per_worker={given!r}): it must be a dict of resource and "
                'amount, like {"CPU": 2}.'
            )
        for name, amount in given.items():
            is_number = isinstance(amount, (int, float)) and not isinstance(amount, bool)
            if not isinstance(name, str) or not is_number or not amount >= 0:
                raise ValueError(
                    f"{_OWNER}(resources_per_worker={given!r}): {name!r} needs an amount of 0 or "
                    f"more, not {amount!r}."
                )
        for device, flag, is_on in (
            ("GPU", "use_gpu", self.use_gpu),
            ("TPU", "use_tpu", self.use_tpu),
        ):
            if given.get(device) and not is_on:
                raise ValueError(
                    f"{_OWNER}: resources_per_worker asks for {device}, but {flag} is False. Set "
                    f"{flag}=True, or take {device} out of resources_per_worker."
                )

    def _check_labels(self):
        given = self.label_selector
        if given is None:
            return
        selectors = given if isinstance(given, list) else [given]
        if not all(isinstance(selector, dict) for selector in selectors):
            raise ValueError(
                f"{_OWNER}(label_selector={given!r}): it must be a dict of labels, or a list of "
                "one dict for each worker."
            )
        if isinstance(given, list) and len(given) != self.max_workers:
            raise ValueError(
                f"{_OWNER}(label_selector=...): the list has {len(given)} entries, but there are "
                f"up to {self.max_workers} workers. Give one dict for each worker, or one for all."
            )

    @property
    def elasticity_enabled(self) -> bool:
        """Whether the number of workers may change: num_workers is a tuple."""
        return isinstance(self.num_workers, tuple)

    @property
    def min_workers(self) -> int:
        """The smallest number of workers with which the run starts."""
        return self.num_workers[0] if self.elasticity_enabled else self.num_workers

    @property
    def max_workers(self) -> int:
        """The largest number of workers that the run has."""
        return self.num_workers[1] if self.elasticity_enabled else self.num_workers

    def resources_of_worker(self) -> dict[str, float]:
        """The resources of one worker, without entries of amount 0."""
        device = "GPU" if self.use_gpu else "TPU" if self.use_tpu else None
        if self.resources_per_worker is None:
            resources = {device or "CPU": 1}
        else:
            resources = {name: n for name, n in self.resources_per_worker.items() if n}
            if device:
                resources.setdefault(device, 1)
        if self.accelerator_type:
            resources.setdefault(f"accelerator_type:{self.accelerator_type}", _ACCELERATOR_SHARE)
        return resources

    def label_selectors(self, count: int) -> list[dict[str, str]] | None:
        """The selectors of `count` workers, one each; None if there are none."""
        if self.label_selector is None:
            return None
        if isinstance(self.label_selector, list):
            return self.label_selector[:count]
        return [dict(self.label_selector) for _ in range(count)]

    @property
    def total_resources(self) -> dict[str, float]:
        """The resources of all workers together; if their number may change, of the largest
        number."""
        return {
            name: float(amount) * self.max_workers
            for name, amount in self.resources_of_worker().items()
        }

    @property
    def num_cpus_per_worker(self) -> float:
        """CPUs of one worker."""
        return self.resources_of_worker().get("CPU", 0)

    @property
    def num_gpus_per_worker(self) -> float:
        """GPUs of one worker."""
        return self.resources_of_worker().get("GPU", 0)

    @property
    def additional_resources_per_worker(self) -> dict[str, float]:
        """Resources of one worker besides CPUs and GPUs."""
        return {
            name: amount
            for name, amount in self.resources_of_worker().items()
            if name not in ("CPU", "GPU")
        }
