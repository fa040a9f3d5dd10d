"""Whatever waits is in `rayctl status`, in `rayctl debug` and in the driver's log, with the name of
the setting."""

import subprocess

import pytest

import ray
from ray.util.state import list_tasks
from waiting import eventually, until

PATIENCE_S = 120


def rayctl(command, *options):
    return subprocess.run(
        ["rayctl", command, "--address", ray.get_runtime_context().gcs_address, *options],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def shown(command, *texts):
    """Waits until the page of the command has all of the texts, and returns it."""
    pages = []

    def there():
        pages.append(rayctl(command))
        return all(text in pages[-1] for text in texts)

    assert eventually(there, PATIENCE_S), pages[-1]
    return pages[-1]


@pytest.fixture
def one_node(no_cluster):
    ray.init(num_cpus=4)



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
    assert "no such node has that much, or none lives: it waits until one joins" in text
    assert "Venusian, only on a node where planet is in (venus)" in text
    ray.cancel(task)
    del actor
