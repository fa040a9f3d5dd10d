"""How many workers of a run the nodes have room for: free resources, labels, and the strategy."""

from __future__ import annotations

import math

from ray._private.constraints import matches, rules_of


def possible_workers(
    nodes: list[dict],
    resources: dict,
    strategy: str,
    most: int,
    held: dict[str, int],
    selectors: list[dict[str, str]] | None = None,
) -> int:
    """How many workers could run now, at most `most`.

    nodes: as _raylet.nodes() describes them. held: node id -> workers that the run has there, whose
    room counts as free. selectors: the label selectors of the `most` workers; fewer workers have
    the first of them.
    """
    living = [node for node in nodes if node["Alive"]]
    rooms = [
        _room(node["_available"], resources, most) + held.get(node["NodeID"], 0) for node in living
    ]
    if strategy == "STRICT_SPREAD":
        rooms = [min(room, 1) for room in rooms]
    rules = [rules_of(selector) for selector in selectors or [{}] * most]
    suit = [
        [place for place, node in enumerate(living) if matches(node["Labels"], rules[worker])]
        for worker in range(most)
    ]
    if strategy == "STRICT_PACK":
        return max((_on_one_node(place, room, suit) for place, room in enumerate(rooms)), default=0)
    return _on_all_nodes(rooms, suit)


def _room(free: dict, resources: dict, most: int) -> int:
    """The number of workers for which a node has free resources."""
    rooms = (math.floor(free.get(name, 0) / amount + 1e-6) for name, amount in resources.items())
    return min((*rooms, most))


def _on_one_node(place: int, room: int, suit: list[list[int]]) -> int:
    """How many of the first workers, one after another, this node can take."""
    unsuited = (worker for worker, places in enumerate(suit) if place not in places)
    return min(room, next(unsuited, len(suit)))


def _on_all_nodes(rooms: list[int], suit: list[list[int]]) -> int:
    """The greatest n for which each of the first n workers gets room on a node that suits it.

    Workers take their places in order. When the nodes that suit one are full, those that are there
    move to others that suit them, if that makes room (augmenting paths of a bipartite matching).
    """
    taken: list[list[int]] = [[] for _ in rooms]  # The workers on each node.

    def takes_a_place(worker: int, seen: set[int]) -> bool:
        for place in suit[worker]:
            if place in seen:
                continue
            seen.add(place)
            if len(taken[place]) < rooms[place]:
                taken[place].append(worker)
                return True
            for other in list(taken[place]):
                if takes_a_place(other, seen):
                    taken[place].remove(other)
                    taken[place].append(worker)
                    return True
        return False

    for worker in range(len(suit)):
        if not takes_a_place(worker, set()):
            return worker
    return len(suit)
