"""A placement group as the options of tasks and actors need it: its id and its bundles.

ray.util.placement_group derives the public handle, which also waits for the group with a task.
"""

from __future__ import annotations

from typing import Dict, List, Optional

from ray import _raylet
from ray._private.ids import PlacementGroupID


class GroupHandle:
    """Names a placement group. Handles are equal when they mean the same group."""

    def __init__(self, id: PlacementGroupID, bundle_cache: Optional[List[Dict]] = None):
        self.id = id
        self.bundle_cache = bundle_cache

    @property
    def is_empty(self) -> bool:
        """Whether this handle means no group."""
        return self.id.is_nil()

    @property
    def bundle_specs(self) -> List[Dict]:
        """The amounts that the bundles reserve, by resource name (memory in bytes).

        Raises KeyError when the cluster does not know the group.
        """
        if self.bundle_cache is None:
            info = None if self.is_empty else _raylet.group_info(self.id.binary())
            if info is None:
                raise KeyError(
                    f"bundles: the cluster does not know placement group {self.id.hex()}; it was "
                    "never created here, or removed long ago"
                )
            self.bundle_cache = info["bundles"]
        return self.bundle_cache

    @property
    def bundle_count(self) -> int:
        """The number of bundles. Raises KeyError when the cluster does not know the group."""
        return len(self.bundle_specs)

    def check_index(self, index: int) -> None:
        """Raises ValueError for a bundle that the group does not have; -1 stands for any bundle.

        TypeError: the index is no number. KeyError: the cluster does not know the group.
        """
        if not isinstance(index, (int, float)):
            raise TypeError(f"a bundle index is a number, got {type(index).__name__}")
        if index == -1:
            return
        if self.is_empty:
            raise ValueError("If placement group is not set, the value of bundle index must be -1.")
        count = self.bundle_count
        if not 0 <= index < count:
            raise ValueError(
                f"placement group bundle index {index} is invalid. Valid placement group "
                f"indexes: 0-{count - 1}"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GroupHandle) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)
