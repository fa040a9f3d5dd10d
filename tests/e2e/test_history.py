"""The history of tasks through a kill -9 of the head: nothing is lost, nothing is there twice, and what is left out is said."""
import json

import ray
from cluster import cluster, eventually
from ray.util import state


@ray.remote
def counted(number):
    return number


def total(c):
    found = json.loads(c.shell.ok("summary", "tasks", "--format=json", f"--address={c.address}"))
    return sum(found["summary"].get("counted", {}).get("state_counts", {}).values()), found


def test_a_killed_head_loses_and_repeats_no_finished_task():
    with cluster(cpus=2, connect=False) as c:
        ray.init(address=c.address, log_to_driver=False)
        assert ray.get([counted.remote(number) for number in range(500)]) == list(range(500))
        refs = [counted.remote(number) for number in range(500)]
        c.kill(c.head_node, "ray-head")                    # while events are on their way to it
        assert ray.get(refs) == list(range(500))
        assert ray.get([counted.remote(number) for number in range(500)]) == list(range(500))       # and while it is away
        c.shell.ok("start", "--head", f"--port={c.port}")
        assert eventually(lambda: total(c)[0] == 1500, 30), total(c)
        rows = state.list_tasks(limit=10_000, filters=[("name", "=", "counted")])
        assert len({row.task_id for row in rows}) == len(rows) == 1500 and {row.state for row in rows} == {"FINISHED"}


def test_what_the_history_could_not_keep_is_counted_and_said():
    with cluster(cpus=2, connect=False, settings={"task_events_max_bytes": 4_000}) as c:
        ray.init(address=c.address, log_to_driver=False)
        for _ in range(10):
            ray.get([counted.remote(number) for number in range(500)])

        def warned():
            done = c.shell.run("list", "tasks", "--format=json", "--limit=10000", f"--address={c.address}")
            return len(json.loads(done.stdout)), done.stderr

        def whole():
            rows, said = warned()
            missing = [int(word) for word in said.split() if word.isdigit()]
            return bool(missing) and rows + missing[0] == 5000
        assert eventually(whole, 30), warned()
