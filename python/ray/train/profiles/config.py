"""ProfileConfig: which steps of a run are profiled, and how thoroughly."""

from __future__ import annotations

import dataclasses
from typing import Any

from ray.train import checks
from ray.train.public import public

# One profile records at most so many steps.
MOST_STEPS = 1000


@public
@dataclasses.dataclass
class ProfileConfig:
    """Profiles the first steps of a run, on all ranks at once.

    steps: how many are recorded, 1 to 1000. skip: how many pass before. warmup: how many after
    those go through a profiler whose results are thrown away, since its first step is slower.
    ranks: the world ranks that record; None for all.
    record_shapes, profile_memory, with_stack: of torch.profiler: shapes of operators' inputs,
    allocations, Python frames.

    A step is a batch of a loader made by prepare_data_loader(); for a function without one, a call
    of step() of its own torch.profiler; for one without either, a report().

    Raises ValueError for a wrong value.
    """

    steps: int = 3
    skip: int = 1
    warmup: int = 1
    ranks: list[int] | None = None
    record_shapes: bool = True
    profile_memory: bool = True
    with_stack: bool = True

    def __post_init__(self):
        owner = "ProfileConfig"
        checks.check_whole_number(owner, "steps", self.steps, 1)
        if self.steps > MOST_STEPS:
            raise ValueError(f"{owner}(steps={self.steps}): it must be at most {MOST_STEPS}.")
        for name in ("skip", "warmup"):
            checks.check_whole_number(owner, name, getattr(self, name), 0)
        check_ranks(owner, self.ranks)
        for name in ("record_shapes", "profile_memory", "with_stack"):
            checks.check_bool(owner, name, getattr(self, name))


def check_ranks(owner: str, ranks: Any) -> None:
    """Raises ValueError unless `ranks` is None or a list of different ranks."""
    if ranks is None:
        return
    if (
        not isinstance(ranks, (list, tuple))
        or not ranks
        or not all(checks.is_int(rank) and rank >= 0 for rank in ranks)
        or len(set(ranks)) != len(ranks)
    ):
        raise ValueError(
            f"{owner}(ranks={ranks!r}): it must be None for all ranks, or a list of different "
            "world ranks such as [0, 1]."
        )
