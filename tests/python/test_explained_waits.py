"""Everything that waits is shown in `rayctl status`, in `rayctl debug` and in the driver's log,
with the name of the setting."""

import json
import re
import subprocess

import numpy as np
import pytest

import ray
from ray.util.state import get_task, list_tasks
from waiting import answer_of, eventually, touch, until, wait_for

PATIENCE_S = 120
MB = 1_000_000


def rayctl(command, *options):
    words = ["rayctl", command, "--address", ray.get_runtime_context().gcs_address, *options]
    return answer_of(
        lambda: subprocess.run(words, capture_output=True, text=True, check=True).stdout
    )


def shown(command, *texts):
    """Waits until the page of the command has all of the texts, and returns it."""
    pages = []

    def there():
        pages.append(rayctl(command))
        return all(text in pages[-1] for text in texts)

    assert eventually(there, PATIENCE_S), pages[-1]
    return pages[-1]


class Log:
    """Reads the lines that the driver has printed so far."""

    def __init__(self, capfd):
        self.capfd, self.text = capfd, ""

    def read(self):
        self.text += "".join(self.capfd.readouterr())
        return self.text


@pytest.fixture
def full_store(no_cluster):
    """A driver that holds most of its node's object store. `create_wait_ms` is very long."""
    ray.init(
        num_cpus=2,
        object_store_memory=80 * MB,
        _system_config={"create_wait_ms": PATIENCE_S * 1000},
    )
    held = [ray.put(np.ones(60 * MB, dtype=np.uint8))]
    yield held
    held.clear()


@pytest.fixture
def one_node(no_cluster):
    ray.init(num_cpus=4)


@ray.remote
def big(n=30 * MB):
    return np.ones(n, dtype=np.uint8)


def test_a_result_that_waits_for_room(full_store, capfd):
    log = Log(capfd)
    result = big.remote()
    task = result.task_id().hex()
    until(lambda: get_task(task).state, "PENDING_OBJ_STORE_MEM_AVAIL".__eq__)
    assert f"{PATIENCE_S * 1000} ms (create_wait_ms)" in answer_of(lambda: get_task(task)).waits_for
    text = shown("status", "Waiting for room in object stores:")
    assert "1 puts or results of tasks of worker" in text and "create_wait_ms" in text
    (node,) = json.loads(rayctl("status", "--format=json"))["store_waits"]
    assert node["create_wait_ms"] == PATIENCE_S * 1000
    assert node["waiting"][0]["kind"] == "VALUES" and node["waiting"][0]["bytes"] >= 30 * MB
    text = shown("debug", "1x big\n    waits for room for 28.61MiB of its result")
    assert "1x put or result of a task, of worker" in text
    assert re.search(r"held by the driver of job \w+ \(pid \d+\): 57.\d+MiB in 1 objects", text)
    assert eventually(lambda: "wait for room" in log.read() or "waits for room" in log.text)
    full_store.clear()
    assert ray.get(result, timeout=PATIENCE_S)[0] == 1
    assert log.read().count("for room in the object store of node") == 1
    until(lambda: rayctl("status"), lambda text: "Waiting for room" not in text)


@ray.remote
def puts(value):
    return ray.put(np.ones(value * MB, dtype=np.uint8))


def test_a_put_that_waits_for_room(full_store, capfd):
    log = Log(capfd)
    result = puts.remote(30)
    text = shown("debug", "1x put or result of a task, of worker")
    assert "(create_wait_ms)" in text and "held by the driver of job" in text
    assert answer_of(lambda: get_task(result.task_id().hex())).state == "RUNNING"
    shown("status", "1 puts or results of tasks of worker")
    assert eventually(lambda: "1 put or result of tasks waits for room" in log.read()), log.text
    full_store.clear()
    assert ray.get(ray.get(result, timeout=PATIENCE_S), timeout=PATIENCE_S)[0] == 1


def test_a_generator_that_waits_for_its_consumer(one_node):
    @ray.remote(num_returns="streaming", _generator_backpressure_num_objects=3)
    def numbers():
        yield from range(10)

    items = numbers.remote()
    (task,) = until(
        lambda: [t for t in list_tasks(detail=True) if t.name == "numbers" and t.waits_for],
        lambda found: len(found) == 1,
    )
    assert task.state == "RUNNING"
    assert "not taken 3 of its items" in task.waits_for
    assert "_generator_backpressure_num_objects" in task.waits_for
    shown("debug", "1x numbers\n    waits for its consumer")
    assert [ray.get(item) for item in items] == list(range(10))


def test_a_task_that_no_node_may_run(one_node):
    @ray.remote(label_selector={"planet": "mars"})
    def martian():
        return 1

    @ray.remote(label_selector={"planet": "venus"}, num_cpus=0)
    class Venusian:
        pass

    task, actor = martian.remote(), Venusian.remote()
    text = until(
        lambda: rayctl("status"),
        lambda text: text.count("infeasible: no such node has that much") == 2,
    )
    assert "martian, only on a node where planet is in (mars)]" in text
    assert "[Venusian, only on a node where planet is in (venus)]" in text
    text = shown("debug", "martian, only on a node where planet is in (mars)")
    assert "no node of that kind has that much, or none is alive: it waits until one joins" in text
    assert "Venusian, only on a node where planet is in (venus)" in text
    ray.cancel(task)
    del actor


def test_tasks_that_wait_for_arguments_are_counted(one_node, tmp_path):
    @ray.remote
    def first(path):
        wait_for(path)
        return 1

    @ray.remote
    def then(*args):
        return 1

    @ray.remote(num_cpus=0)
    class Made:
        def __init__(self, value):
            self.value = value

        def get(self):
            return self.value

    go = tmp_path / "go"
    waited_for = first.remote(go)
    waiting = [then.remote(waited_for, waited_for) for _ in range(20)]
    waiting.append(then.remote(waiting[0]))
    cancelled = then.remote(waited_for)
    ray.cancel(cancelled)
    actor = Made.remote(waited_for)
    shown("status", "Waiting for arguments that are not made yet:\n 22 tasks, calls or actors\n")
    touch(go)
    assert ray.get(waiting, timeout=PATIENCE_S) == [1] * 21
    assert ray.get(actor.get.remote(), timeout=PATIENCE_S) == 1

    until(lambda: rayctl("status"), lambda text: "Waiting for arguments" not in text)


def test_only_constructors_that_run_are_called_so(one_node, tmp_path):
    go = tmp_path / "go"

    @ray.remote(num_cpus=4)
    def fill():
        wait_for(go)

    @ray.remote(num_cpus=0)
    class Slow:
        def __init__(self):
            wait_for(go)

    @ray.remote(num_cpus=4)
    class Crowded:
        pass

    tasks = [fill.remote() for _ in range(2)]
    until(lambda: rayctl("debug"), lambda text: "held by 1 running" in text)
    actors = [Slow.remote(), Slow.remote()]
    # They wait for the same resources as the second task, so that one demand counts both.
    actors += [Crowded.remote(), Crowded.remote()]
    text = shown("debug", "2x actor of Slow\n    its constructor", "Crowded (2), fill (1)")
    assert (
        text.count("its constructor has not returned yet") == 1 and "actor of Crowded" not in text
    )
    # The actors would keep the node's CPUs from the second task.
    actors.clear()
    touch(go)
    ray.get(tasks)
