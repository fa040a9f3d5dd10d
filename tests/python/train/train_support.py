"""Helpers of the tests of ray.train: what a run has left behind, and waits for events instead of
times."""

import asyncio
import os
import select
import threading


def train_processes():
    """Returns class and pid of the controllers, workers and meeting places of runs on this
    cluster."""
    from ray import _raylet

    names = ("RayTrainWorker", "TrainController", "SynchronizationActor")
    return [
        (actor["class_name"], actor["pid"])
        for actor in _raylet.list_actors(True)
        if actor["class_name"] in names and runs(actor["pid"])
    ]


def runs(pid):
    """Returns whether the process is there and has not ended; its parent may not have heard of the
    end yet."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_nothing_left():
    """Checks that no actor process and no placement group of a run is there."""
    from ray.util.placement_group import placement_group_table

    left = train_processes()
    assert left == [], left
    states = [entry["state"] for entry in placement_group_table().values()]
    assert set(states) <= {"REMOVED"}, states


def wait_for_end(pids):
    """Waits until these processes have ended."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        assert select.select([descriptor], [], [], 10)[0], f"{pid} is still there"
        os.close(descriptor)


def stay():
    """Waits until the process is killed."""
    threading.Event().wait()


class Gate:
    """An actor at which others wait until enough have arrived."""

    def __init__(self, count):
        self._missing = count
        self._open = asyncio.Event()

    async def arrive(self):
        self._missing -= 1
        if self._missing == 0:
            self._open.set()

    async def wait(self):
        await self._open.wait()
