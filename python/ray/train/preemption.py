"""PreemptionInfo: which nodes of a run are about to go away."""

from __future__ import annotations

from dataclasses import dataclass

from ray.train.public import public


@public
@dataclass(frozen=True)
class PreemptionInfo:
    """Nodes of the worker group that are being drained.

    deadline_ms: when the first of them ends, in milliseconds since the epoch; None if unknown.
    preempted_node_to_ranks: node id (hex) -> world ranks on that node.
    """

    deadline_ms: int | None
    preempted_node_to_ranks: dict[str, list[int]]

    @property
    def preempted_node_ids(self) -> list[str]:
        """The ids of the nodes, sorted."""
        return sorted(self.preempted_node_to_ranks)

    @property
    def preempted_ranks(self) -> list[int]:
        """The world ranks on all of these nodes, ascending."""
        return sorted(rank for ranks in self.preempted_node_to_ranks.values() for rank in ranks)
