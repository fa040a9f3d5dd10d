"""Deals the ranks of a group, and tells a worker's environment about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any


# A message or a record names at most so many ranks.
MOST_RANKS_SHOWN = 20


def named_ranks(ranks: Sequence[int]) -> str:
    """Returns "rank 3" or "ranks 0, 3" for a message; of many ranks it names only the first."""
    shown = ", ".join(map(str, ranks[:MOST_RANKS_SHOWN]))
    left_out = len(ranks) - MOST_RANKS_SHOWN
    more = f" and {left_out} more" if left_out > 0 else ""
    return f"rank{'' if len(ranks) == 1 else 's'} {shown}{more}"


@dataclass(frozen=True)
class WorkerInfo:
    """One worker of a group. Its ranks are -1 until assign_ranks() has dealt them."""

    node_id: str
    node_ip: str
    pid: int
    actor_id: str
    worker_id: str
    gpu_ids: tuple[str, ...] = ()
    hostname: str = ""
    log_file_path: str = ""
    rank: int = -1
    local_rank: int = -1
    node_rank: int = -1
    local_world_size: int = 0
    actor: Any = field(default=None, compare=False, repr=False)

    def without_actor(self) -> WorkerInfo:
        """The same facts for other processes, which need no handle to the worker."""
        return replace(self, actor=None)


def _lowest_gpu(info: WorkerInfo) -> tuple:
    """Returns a key that orders the workers of one node. Numbers come before names of devices."""
    if not info.gpu_ids:
        return ()
    return min((0, int(gpu), "") if gpu.isdigit() else (1, 0, gpu) for gpu in info.gpu_ids)


def assign_ranks(infos: Sequence[WorkerInfo]) -> list[WorkerInfo]:
    """The workers in the order of their world ranks.

    infos: the workers in the order of the bundles of their placement group. Workers of one node
    follow each other; nodes come in the order of their first workers, and within a node the lowest
    GPU decides (without GPUs: the order of the bundles). Local ranks count within an address,
    because that is what processes of one machine share, also when it has several nodes.
    """
    nodes: dict[str, list[WorkerInfo]] = {}
    for info in infos:
        nodes.setdefault(info.node_id, []).append(info)
    ordered = [info for members in nodes.values() for info in sorted(members, key=_lowest_gpu)]
    at_address: dict[str, int] = {}
    ranked = []
    for rank, info in enumerate(ordered):
        local_rank = at_address.get(info.node_ip, 0)
        at_address[info.node_ip] = local_rank + 1
        node_rank = list(at_address).index(info.node_ip)
        ranked.append(replace(info, rank=rank, local_rank=local_rank, node_rank=node_rank))
    return [replace(info, local_world_size=at_address[info.node_ip]) for info in ranked]


def environment_of(info: WorkerInfo, workers: Sequence[WorkerInfo], share_gpus: bool) -> dict:
    """The environment variables of one worker that follow from its rank.

    share_gpus: CUDA_VISIBLE_DEVICES names the GPUs of all workers on the node, so that peers can
    reach each other's memory.
    """
    variables = {
        "RANK": str(info.rank),
        "WORLD_SIZE": str(len(workers)),
        "LOCAL_RANK": str(info.local_rank),
        "LOCAL_WORLD_SIZE": str(info.local_world_size),
        "NODE_RANK": str(info.node_rank),
    }
    if share_gpus and info.gpu_ids:
        near = {gpu for other in workers if other.node_id == info.node_id for gpu in other.gpu_ids}
        ordered = sorted(
            near, key=lambda gpu: (not gpu.isdigit(), int(gpu or 0) if gpu.isdigit() else 0, gpu)
        )
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(ordered)
    return variables
