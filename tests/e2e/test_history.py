"""The head is killed with kill -9, and the history of tasks stays complete: nothing is lost,
nothing is there twice, and answers say what they leave out."""

import json
import os
import signal

import ray
from cluster import cluster, unread
from waiting import eventually
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
        # Events of tasks are on their way to the head.
        c.kill(c.head_node, "ray-head")
        assert ray.get(refs) == list(range(500))
        # More events arise while the head is away.
        assert ray.get([counted.remote(number) for number in range(500)]) == list(range(500))
        c.shell.ok("start", "--head", f"--port={c.port}")
        assert eventually(lambda: total(c)[0] == 1500), total(c)
        rows = state.list_tasks(limit=10_000, filters=[("name", "=", "counted")])
        assert len({row.task_id for row in rows}) == len(rows) == 1500 and {
            row.state for row in rows
        } == {"FINISHED"}


def test_what_was_on_its_way_to_a_killed_head_is_sent_again():
    """The head is stopped before it is killed, so that the events are in its sockets and otherwise
    only with the node-manager, which keeps them until the head has answered."""
    with cluster(cpus=1, connect=False) as c:
        ray.init(address=c.address, log_to_driver=False)
        # The one worker gets the function.
        assert ray.get(counted.remote(0)) == 0
        os.kill(c.pid(c.head_node, "ray-head"), signal.SIGSTOP)
        # These names are larger than everything else that a node sends in this time.
        names = [os.urandom(500).hex() for _ in range(200)]
        assert ray.get([counted.options(name=name).remote(1) for name in names]) == [1] * 200
        assert eventually(lambda: unread(c.port) > 60_000), unread(c.port)
        c.kill(c.head_node, "ray-head")
        c.shell.ok("start", "--head", f"--port={c.port}")

        def kept():
            return sorted(
                row.name for row in state.list_tasks(limit=10_000) if row.state == "FINISHED"
            )

        assert eventually(lambda: kept() == sorted([*names, "counted"])), len(kept())


def listed(c):
    """Returns rows of tasks, how many events the answer says it lacks, and its words about that."""
    done = c.shell.run("list", "tasks", "--format=json", "--limit=10000", f"--address={c.address}")
    return (
        len(json.loads(done.stdout)),
        sum([int(word) for word in done.stderr.split() if word.isdigit()][:1]),
        done.stderr,
    )


def test_what_a_killed_process_had_not_sent_is_counted_and_said():
    @ray.remote(max_retries=0)
    def doomed(number):
        if number < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with cluster(cpus=1, connect=False) as c:
        ray.init(address=c.address, log_to_driver=False)
        assert ray.get([doomed.remote(number) for number in range(300)]) == list(range(300))
        try:
            ray.get(doomed.remote(-1))
        except ray.exceptions.WorkerCrashedError:
            pass
        assert eventually(lambda: sum(listed(c)[:2]) == 301), listed(c)
        # This task runs in another process, whose own count begins at zero.
        assert ray.get(doomed.remote(1)) == 1
        assert eventually(lambda: sum(listed(c)[:2]) == 302), listed(c)
        rows, lost, words = listed(c)
        assert not lost or "killed before" in words


def test_what_the_history_could_not_keep_is_counted_and_said():
    with cluster(cpus=2, connect=False, settings={"task_events_max_bytes": 4_000}) as c:
        ray.init(address=c.address, log_to_driver=False)
        for _ in range(10):
            ray.get([counted.remote(number) for number in range(500)])

        assert eventually(lambda: listed(c)[1] and sum(listed(c)[:2]) == 5000), listed(c)
