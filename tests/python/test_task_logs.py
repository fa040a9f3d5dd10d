"""Log files and the lines that belong to one task, through ray.util.state."""

import os
import subprocess
import sys
import pytest
import ray
from gate import Gate
from ray.util import state
from ray.util.state.exception import RayStateApiException
from waiting import until


@ray.remote
class Speaker:
    def say(self, text):
        print(text, flush=True)
        return os.getpid()


def test_logs_are_found_by_actor_process_and_file_name(cluster):
    node = ray.get_runtime_context().get_node_id()
    actor = Speaker.remote()
    pid = ray.get(actor.say.remote("one\ntwo"))
    actor_id = actor._actor_id.hex()

    def log(**where):
        return "".join(state.get_log(**where)).splitlines()

    until(lambda: log(actor_id=actor_id), lambda lines: lines[-2:] == ["one", "two"])
    assert log(pid=pid, node_id=node, tail=1) == ["two"]
    assert log(pid=pid, node_id=node, tail=0) == []
    assert b"".join(state.get_log(actor_id=actor_id, encoding=None)).endswith(b"two\n")
    name = [
        name for name in state.list_logs(node_id=node)["worker_out"] if name.endswith(f"-{pid}.out")
    ][0]
    assert log(filename=name, node_id=node)[-1] == "two"
    assert list(state.list_logs(node_id=node, glob_filter="head*")) == ["gcs_server"]
    for where, kind in (
        ({}, ValueError),
        ({"node_id": node}, ValueError),
        ({"node_id": node, "filename": "none"}, RayStateApiException),
        ({"node_id": node, "filename": "../node_x.json"}, ValueError),
        ({"node_id": "ff" * 28, "filename": name}, RayStateApiException),
        ({"actor_id": "ff" * 16}, RayStateApiException),
        ({"task_id": "ff" * 24}, RayStateApiException),
        ({"pid": pid, "node_id": node, "suffix": "x"}, ValueError),
    ):
        with pytest.raises(kind):
            list(state.get_log(**where))
    with pytest.raises(AssertionError):
        state.list_logs()


def test_the_lines_of_one_task(cluster):
    @ray.remote(num_cpus=4)
    def speak(text):
        print(f"begin {text}")
        sys.stderr.write(f"complaint {text}\n")
        print(f"end {text}", end="")
        return ray.get_runtime_context().get_task_id()

    # One worker runs both, one after the other.
    tasks = {text: ray.get(speak.remote(text)) for text in ("one", "two", "three")}

    def lines(task, **where):
        return "".join(state.get_log(task_id=task, **where)).splitlines()

    for text, task in tasks.items():
        until(lambda: state.get_task(task))
        until(lambda: lines(task), lambda found: found == [f"begin {text}", f"end {text}"])
        until(lambda: lines(task, suffix="err"), lambda found: found == [f"complaint {text}"])
    assert lines(tasks["one"], tail=1) == ["end one"]
    with pytest.raises(RayStateApiException, match="attempt 7"):
        lines(tasks["one"], attempt_number=7)


def task_lines(task, **where):
    return "".join(state.get_log(task_id=task, **where)).splitlines()


def test_what_c_code_and_children_write_belongs_to_their_task(cluster):
    @ray.remote(num_cpus=4)
    def prints():
        print("printed")
        return ray.get_runtime_context().get_task_id()

    @ray.remote(num_cpus=4)
    def writes(text):
        os.write(1, f"{text}\n".encode())
        subprocess.run(["echo", f"child of {text}"], check=True)
        return ray.get_runtime_context().get_task_id()

    @ray.remote(num_cpus=4)
    def quiet():
        return ray.get_runtime_context().get_task_id()

    first = ray.get(writes.remote("one"))
    printed = [ray.get(prints.remote()) for _ in range(2)]
    silent = ray.get(quiet.remote())
    second, third = ray.get(writes.remote("two")), ray.get(writes.remote("three"))
    until(lambda: state.get_task(third))
    for task, text in ((first, "one"), (second, "two"), (third, "three")):
        assert task_lines(task) == [text, f"child of {text}"]
    assert [task_lines(task) for task in printed] == [["printed"]] * 2 and task_lines(silent) == []


def test_the_lines_of_threads(cluster):
    @ray.remote(num_cpus=0, max_concurrency=4)
    class Threads:
        def talk(self, text):
            for number in range(200):
                print(f"{text} {number}")
            return ray.get_runtime_context().get_task_id()

    threads = Threads.remote()
    tasks = ray.get([threads.talk.remote(text) for text in "abcd"])
    for text, task in zip("abcd", tasks):
        until(lambda: state.get_task(task))
        assert task_lines(task) == [f"{text} {number}" for number in range(200)]


def test_the_lines_of_an_earlier_attempt_and_of_one_that_runs(cluster, tmp_path):
    @ray.remote(num_cpus=1, max_retries=1, retry_exceptions=True)
    def fails_once(mark, end):
        attempt = os.path.exists(mark)
        open(mark, "w").close()
        print(f"attempt {int(attempt)}")
        if not attempt:
            raise ValueError("once")
        until(lambda: os.path.exists(end))

    ref = fails_once.remote(str(tmp_path / "mark"), str(tmp_path / "end"))
    task = ref.task_id().hex()
    until(
        lambda: [
            row
            for row in state.list_tasks(filters=[("task_id", "=", task)])
            if (row.attempt_number, row.state) == (1, "RUNNING")
        ]
    )
    assert until(lambda: task_lines(task, attempt_number=1)) == ["attempt 1"]
    (tmp_path / "end").touch()
    ray.get(ref)
    until(lambda: state.list_tasks(filters=[("task_id", "=", task)]), lambda rows: len(rows) == 2)
    assert task_lines(task) == ["attempt 0"] and task_lines(task, attempt_number=1) == ["attempt 1"]


def test_the_lines_of_calls_that_overlap(cluster):
    @ray.remote(num_cpus=0)
    class Talker:
        async def talk(self, gate, text):
            print(f"begin {text}")
            await gate.wait.remote()
            print(f"end {text}")
            return ray.get_runtime_context().get_task_id()

    gate, talker = Gate.remote(), Talker.remote()
    ray.get(talker.__ray_ready__.remote())
    calls = {text: talker.talk.remote(gate, text) for text in ("one", "two")}
    until(
        lambda: "".join(state.get_log(actor_id=talker._actor_id.hex())),
        lambda text: "begin one" in text and "begin two" in text,
    )
    ray.get(gate.open.remote())
    for text, call in calls.items():
        task = ray.get(call)
        until(lambda: state.get_task(task))
        until(
            lambda: "".join(state.get_log(task_id=task)).splitlines(),
            lambda found: found == [f"begin {text}", f"end {text}"],
        )


def test_following_a_log(cluster):
    actor = Speaker.remote()
    ray.get(actor.say.remote("first"))
    pieces = state.get_log(actor_id=actor._actor_id.hex(), follow=True, _interval=0.01)
    seen = ""
    while "first" not in seen:
        seen += next(pieces)
    ray.get(actor.say.remote("later"))
    while "later" not in seen:
        seen += next(pieces)
    pieces.close()
