"""Computes how many workers of a run the nodes have room for, by free resources, labels and the
strategy."""

from __future__ import annotations

import math
from collections import deque

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
    if not selectors:
        return min(most, max(rooms, default=0) if strategy == "STRICT_PACK" else sum(rooms))
    suit = _suiting(living, selectors[:most])
    if strategy == "STRICT_PACK":
        return max((_on_one_node(place, room, suit) for place, room in enumerate(rooms)), default=0)
    return _on_all_nodes(rooms, suit)


def _suiting(nodes: list[dict], selectors: list[dict[str, str]]) -> list[dict[int, None]]:
    """Returns the places of the nodes that suit each worker, in order. Workers with equal selectors
    share one dict."""
    known: dict[tuple, dict[int, None]] = {}
    found = []
    for selector in selectors:
        key = tuple(sorted(selector.items()))
        if key not in known:
            rules = rules_of(selector)
            suiting = (at for at, node in enumerate(nodes) if matches(node["Labels"], rules))
            known[key] = dict.fromkeys(suiting)
        found.append(known[key])
    return found


def _room(free: dict, resources: dict, most: int) -> int:
    """Returns the number of workers for which a node has free resources."""
    rooms = (math.floor(free.get(name, 0) / amount + 1e-6) for name, amount in resources.items())
    return min((*rooms, most))


def _on_one_node(place: int, room: int, suit: list[dict[int, None]]) -> int:
    """Returns how many of the first workers, without a gap, this node can take."""
    unsuited = (worker for worker, places in enumerate(suit) if place not in places)
    return min(room, next(unsuited, len(suit)))


def _on_all_nodes(rooms: list[int], suit: list[dict[int, None]]) -> int:
    """The greatest n for which each of the first n workers gets room on a node that suits it.

    Workers take their places in order. When the nodes that suit one are full, those that are there
    move to others that suit them, if that makes room (augmenting paths of a bipartite matching,
    searched without recursion: a path may lead through every node of the cluster).
    """
    # The workers on each node.
    taken: list[list[int]] = [[] for _ in rooms]

    def takes_a_place(worker: int) -> bool:
        # Maps a place to the worker that would move there, and from where.
        came: dict[int, tuple[int, int | None]] = {}
        asked: set[int] = set()
        waiting: deque[tuple[int, int | None]] = deque([(worker, None)])
        while waiting:
            mover, origin = waiting.popleft()
            if id(suit[mover]) in asked:
                continue
            asked.add(id(suit[mover]))
            for place in suit[mover]:
                if place in came:
                    continue
                came[place] = (mover, origin)
                if len(taken[place]) < rooms[place]:
                    move(place, came)
                    return True
                waiting.extend((other, place) for other in taken[place])
        return False

    def move(place: int | None, came: dict[int, tuple[int, int | None]]) -> None:
        while place is not None:
            mover, origin = came[place]
            taken[place].append(mover)
            if origin is not None:
                taken[origin].remove(mover)
            place = origin

    for worker in range(len(suit)):
        if not takes_a_place(worker):
            return worker
    return len(suit)
