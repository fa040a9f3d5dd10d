"""Profiles that are asked for while a run trains, over HTTP and by rayctl."""

import json
import os
import re
import signal
import threading

import pytest
from profile_support import UnderWay, http, merged_events, profiles_of
from train_support import assert_nothing_left
from waiting import until

from ray.train import FailureConfig, ProfileConfig

pytest.importorskip("torch")


@pytest.fixture
def under_way(train_cluster, tmp_path):
    """under_way(**arguments of UnderWay) makes a run that trains while a with statement lasts."""
    yield lambda **arguments: UnderWay(tmp_path, **arguments)
    assert_nothing_left()
    for directory, names, files in os.walk(tmp_path):
        assert not [name for name in (*names, *files) if name.startswith(".unfinished")], directory


def test_the_next_steps_of_a_run(under_way, tmp_path):
    with under_way() as run:
        status, answer = run.profile(steps=2)
        assert status == 200, answer
        assert [one["status"] for one in answer["ranks"]] == ["RECORDED", "RECORDED"]
        status, second = run.profile(steps=1, ranks=[1], with_stack=False, profile_memory=False)
        assert status == 200 and [one["rank"] for one in second["ranks"]] == [1]
        shown = http(f"/api/train/v2/runs/v1/{run.run()['id']}/profiles")["profiles"]
    assert run.error is None
    assert [one["id"] for one in shown] == [answer["id"], second["id"]]
    first, _ = records = profiles_of("run")
    assert [one["status"] for one in records] == ["RECORDED", "RECORDED"]
    numbers = [[step["step"] for step in rank["steps"]] for rank in first["summary"]["ranks"]]
    assert numbers[0] == numbers[1] and numbers[0][1] == numbers[0][0] + 1 > 2
    assert answer["path"] == str(tmp_path / "run.profiles" / answer["id"])
    names = [event["name"] for event in merged_events(answer["trace"]) if event["pid"] == 2000]
    assert f"ProfilerStep#{numbers[1][1]}" in names
    with open(os.path.join(answer["path"], "summary.txt")) as file:
        assert file.read() == answer["summary"]


def test_wrong_requests(under_way):
    with under_way() as run:
        for request, words in (
            ({"ranks": [0, 7]}, "the run has no rank 7: its ranks are 0 to 1"),
            ({"steps": 0}, "steps=0"),
            ({"stepz": 1}, "stepz"),
            ({"timeout_s": -1}, "timeout_s"),
        ):
            status, text = run.profile(**request)
            assert status == 400 and words in text, (status, text)
    status, text = run.profile()
    assert status >= 400, "the run has ended"
    assert profiles_of("run") == []


def test_ranks_that_make_no_step(under_way, tmp_path):
    gate = str(tmp_path / "gate")

    def wait(rank, batch):
        from waiting import touch, wait_for

        if batch == 3:
            touch(f"{gate}-{rank}")
            if rank == 1:
                wait_for(gate)

    with under_way(act=wait, batches=20) as run:
        # Until both are there, rank 0 may still make a step.
        until(lambda: os.path.exists(f"{gate}-0") and os.path.exists(f"{gate}-1"))
        status, text = run.profile(timeout_s=0.5)
        open(gate, "w").close()
        assert status == 500 and "ranks 0, 1 made no step within 0.5 s: a step is a batch" in text
        # When the steps go on, so can a profile: nothing of the first one is left.
        assert until(lambda: run.profile(steps=1), lambda found: found[0] == 200)
    assert [one["status"] for one in profiles_of("run")][-1] == "RECORDED"


def test_one_profile_at_a_time_and_a_rank_that_is_killed_ends_it(under_way, tmp_path):
    gate = str(tmp_path / "gate")

    def wait(rank, batch):
        from waiting import wait_for

        if rank == 1 and batch == 50:
            wait_for(gate)

    def first():
        answers.append(run.profile(steps=1000))

    answers = []
    with under_way(act=wait, failure_config=FailureConfig(max_failures=1)) as run:
        asking = threading.Thread(target=first)
        asking.start()
        until(lambda: [one["status"] for one in profiles_of("run")] == ["RECORDING"])
        status, text = run.profile()
        assert status == 500 and "another profile of the run is under way" in text
        os.kill(run.run()["attempts"][0]["workers"][1]["pid"], signal.SIGKILL)
        asking.join(60)
        assert answers[0][0] == 500 and "its process has ended" in answers[0][1]
        open(gate, "w").close()
        until(lambda: run.profile(steps=1), lambda found: found[0] == 200)
    assert run.error is None
    assert not [one for one in profiles_of("run") if one["status"] == "RECORDING"]


def test_a_run_that_ends_while_it_is_profiled(under_way):
    def take_long(rank, batch):
        import select

        # The pause keeps the trace until the end small.
        select.select([], [], [], 0.02)

    answers = []
    with under_way(act=take_long) as run:
        asking = threading.Thread(target=lambda: answers.append(run.profile(steps=1000)))
        asking.start()
        until(lambda: [one["status"] for one in profiles_of("run")] == ["RECORDING"])
    asking.join(60)
    assert run.error is None
    ((status, answer),) = answers
    (record,) = profiles_of("run")
    if status == 200:
        # At least one rank had begun to record, and its steps until the end are there.
        details = {one["status"]: one["detail"] for one in answer["ranks"]}
        assert "the function ended after" in details["RECORDED"]
    else:
        assert record["status"] == "FAILED"
        assert re.search("the function ended before|its function has ended", record["detail"])


def test_a_profile_of_a_run_that_profiles_its_first_steps(under_way):
    config = ProfileConfig(skip=10**8)
    with under_way(profile=config) as run:
        status, text = run.profile()
        assert status == 500 and "another profile of the run is under way" in text
    (record,) = profiles_of("run")
    assert "the function ended before step" in record["detail"]


def test_rayctl_prints_the_summary(under_way):
    from seeing import rayctl

    with under_way() as run:
        code, out, err = rayctl("train", "profile", "run", "--steps=1", "--ranks=0")
        assert code == 0 and "compute" in out and "Rank 0" in out, out + err
        code, out, err = rayctl("train", "profile", "run", "--steps=1", "--format=json")
        answer = json.loads(out)
        assert [one["status"] for one in answer["ranks"]] == ["RECORDED", "RECORDED"]
        code, out, err = rayctl("train", "profile", "run", "--ranks=5")
        assert code == 1 and "no rank 5" in err
    assert run.error is None
