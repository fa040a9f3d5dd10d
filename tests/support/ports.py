"""Ports for a test's own listeners, which no other test that runs at the same time takes."""

import itertools
import os
import random
import socket

# Below the range from which the kernel takes ports for connections (32768 to 60999): a port that is
# free stays free until it is used, also between a head's death and its next start. Each process of
# pytest-xdist takes from a range of its own.
FIRST, PER_PROCESS, PROCESSES = 15000, 1000, 16


def _process_number():
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return int(name.removeprefix("gw")) % PROCESSES


_next = itertools.count(random.randrange(PER_PROCESS))


def free_port():
    for _ in range(PER_PROCESS):
        port = FIRST + _process_number() * PER_PROCESS + next(_next) % PER_PROCESS
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise AssertionError("no port is free")
