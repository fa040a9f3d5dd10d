"""rayctl train, HTTP and records say which rank the others wait for, and where each rank is."""

import json
import re
import time
import urllib.error

import pytest
from seeing import Background, get, history, metrics_of, rayctl, runs
from train_support import Gate
from waiting import until

import ray
import ray.train
from ray.train import collective
from ray.train.progress import Progress
from ray.train.step_times import StepTimes


def is_over(config):
    """Returns whether the test lets the function end. All ranks meet here and get the same
    answer."""
    opened = config.setdefault("opened", config["gate"].wait.remote())
    return collective.broadcast_from_rank_zero(bool(ray.wait([opened], timeout=0)[0]))


def rank_of_this():
    return ray.train.get_context().get_world_rank()


def computes(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def comes_late(config):
    while not is_over(config):
        if rank_of_this() == 1:
            computes(0.03)
        ray.train.report({"loss": 1})


def waits_for_data(config):
    """Rank 0's data come late."""
    import torch

    from ray.train.torch import prepare_data_loader

    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, at):
            if rank_of_this() == 0:
                computes(0.02)
            return torch.zeros(1)

    loader = prepare_data_loader(torch.utils.data.DataLoader(Slow()), add_dist_sampler=False)
    while not is_over(config):
        for _ in loader:
            collective.barrier()


def all_compute(config):
    while not is_over(config):
        computes(0.03)


def learns(config):
    """Trains with DistributedDataParallel over gloo; rank 1 has more to do."""
    import torch

    from ray.train.torch import prepare_model

    torch.set_num_threads(1)
    model = prepare_model(torch.nn.Linear(64, 64))
    over = torch.zeros(1)
    opened = config["gate"].wait.remote()
    while not over.item():
        loss = model(torch.randn(8, 64)).sum()
        if rank_of_this() == 1:
            computes(0.03)
        loss.backward()
        over = torch.tensor([float(bool(ray.wait([opened], timeout=0)[0]))])
        torch.distributed.broadcast(over, 0)


def look(run, seconds=1):
    """Returns the answer; before the ranks are in their function, that is only a sentence."""
    try:
        return get(f"/api/train/v2/runs/v1/{run['id']}/ranks?seconds={seconds}")
    except urllib.error.HTTPError as error:
        said = error.read().decode()
        assert "no rank could be looked at" in said, (error, said)
        return {"verdict": "UNKNOWN", "sentence": said}


def running(name):
    """Returns the run, when its ranks are there."""
    (run,) = until(
        lambda: runs(name), lambda found: [run["status"] for run in found] == ["RUNNING"]
    )
    return run


def trains(name):
    """Returns the run, when the functions of both ranks were seen."""
    run = running(name)
    until(lambda: places(run), lambda found: set(found) == {0, 1})
    return run


def places(run):
    found = get(f"/api/train/v2/runs/v1/{run['id']}/ranks")
    return {rank["world_rank"]: rank["where"] for rank in found["ranks"]}


def test_the_rank_that_is_late_is_named(train_cluster, tmp_path):
    with Background(comes_late, tmp_path, "late", places=1):
        run = trains("late")
        worker = run["attempts"][0]["workers"][1]
        # On a busy machine rank 0 may be late now and then, or still be loading the function's
        # module.
        found = until(
            lambda: look(run),
            lambda found: (
                found["verdict"] == "STRAGGLER"
                and "waiting for other ranks" in found["ranks"][0]["where"]
                and found["ranks"][1]["where"].startswith("computes (")
            ),
        )
        assert found["stragglers"] == [1]
        assert re.match(
            rf"Rank 1 on node {worker['node_id'][:12]} \({worker['node_ip']}\) is the straggler: "
            r"in 1\.0 s it waits \d+ % of the time for other ranks, in collectives and report\(\), "
            r"while rank 0 waits \d+ %. It spends \d+ % in computes \(test_stragglers\.py\)\.$",
            found["sentence"],
        ), found["sentence"]
        fast, slow = found["ranks"]
        assert fast["shares"]["for_ranks"] > 0.5 > slow["shares"]["for_ranks"]
        assert slow["pid"] == worker["pid"] and slow["samples"] >= 40
        for over_http in (False, True):
            code, out, err = rayctl("train", "stragglers", "late", over_http=over_http)
            assert code == 0 and re.search(r"^RANK +NODE +PID +STEP +COLLECTIVES", out, re.M), (
                out + err
            )
            assert re.search(rf"^1 .* {worker['pid']} .* % .*\(test_stragglers\.py:", out, re.M), (
                out
            )
        code, out, _ = rayctl(
            "train", "stragglers", run["id"][:8], "--seconds=0.5", "--format=json"
        )
        assert code == 0 and json.loads(out)["seconds"] == 0.5
        # The answer comes from one look at each rank, and rank 1 can be in report().
        until(
            lambda: rayctl("train", "show", "late")[1],
            lambda out: re.search(
                r"^RANK +WHERE IT IS NOW\n0 .*\n1 .*\(test_stragglers\.py:\d+\)", out, re.M
            ),
        )
        check_steps(run)
    (run,) = runs("late")
    code, out, err = rayctl("train", "stragglers", "late")
    assert code == 1 and "run late has no ranks that are alive: it is FINISHED" in err, err
    assert "WHERE IT IS NOW" not in rayctl("train", "show", "late")[1]
    assert get(f"/api/train/v2/runs/v1/{run['id']}/ranks")["ranks"] == []
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get("/api/train/v2/runs/v1/0123/ranks")


def check_steps(run):
    """Each report is a step of a rank. Its length is in the record, in the metrics, and in
    rayctl."""
    ranks = until(
        lambda: history(run["id"])["ranks"],
        lambda ranks: len(ranks) == 2 and all("step_s" in rank for rank in ranks),
    )
    assert all(rank["step_s"] >= 0.03 and rank["steps"] > 1 for rank in ranks), ranks
    found = until(
        lambda: metrics_of(run["id"]),
        lambda found: set(found.get("ray_train_step_time_s", ())) == {"0", "1"},
    )
    assert all(length >= 0.03 for length in found["ray_train_step_time_s"].values())
    assert set(found["ray_train_steps_total"]) == {"0", "1"}
    assert re.search(r"^1 +\d+ +0\.\d+s ", rayctl("train", "show", "late")[1], re.M)


def test_late_gradients_are_found_in_collectives(train_cluster, tmp_path):
    pytest.importorskip("torch")
    from ray.train.torch import TorchTrainer

    with Background(learns, tmp_path, "learns", places=1, trainer=TorchTrainer):
        run = trains("learns")
        # On a busy machine, rank 1 may itself be late in a collective now and then.
        found = until(
            lambda: look(run),
            lambda found: (
                found["verdict"] == "STRAGGLER"
                and found["ranks"][0]["shares"]["collective"]
                > 0.3
                > found["ranks"][1]["shares"]["collective"]
            ),
        )
        assert found["stragglers"] == [1], found
        fast, _ = found["ranks"]
        assert fast["where"].endswith("in a collective of torch.distributed"), found
        assert "in computes (test_stragglers.py)" in found["sentence"]


def test_late_data_are_the_reason(train_cluster, tmp_path):
    pytest.importorskip("torch")
    from ray.train.torch import TorchTrainer

    with Background(waits_for_data, tmp_path, "data", places=1, trainer=TorchTrainer):
        run = trains("data")
        # A look at the first second of a busy machine may find rank 0 loading the module.
        reason = r"It spends \d+ % waiting for data\.$"
        found = until(lambda: look(run), lambda found: re.search(reason, found["sentence"]))
        assert found["verdict"] == "STRAGGLER" and found["stragglers"] == [0], found
        assert found["ranks"][0]["where"].endswith(", waiting for data")


def test_nobody_is_named_when_all_are_on_time(train_cluster, tmp_path):
    with Background(all_compute, tmp_path, "even", places=1):
        run = trains("even")
        found = until(lambda: look(run), lambda found: found["verdict"] == "NONE")
        assert found["stragglers"] == [] and found["sentence"].startswith("No straggler: "), found


def test_a_rank_that_never_comes(train_cluster, tmp_path, monkeypatch):
    end = ray.remote(Gate).options(num_cpus=0).remote(1)

    def function(config):
        if rank_of_this() == 1:
            ray.get(config["gate"].wait.remote())
        ray.train.report({"loss": 1})
        ray.get(end.wait.remote())

    monkeypatch.setenv("RAY_TRAIN_COLLECTIVE_WARN_INTERVAL_S", "0.2")
    with Background(function, tmp_path, "missing", places=1) as background:
        trains("missing")
        (run,) = until(lambda: runs("missing"), lambda found: found[0]["attempts"][0]["waiting"])
        waiting = run["attempts"][0]["waiting"]
        assert waiting["missing_ranks"] == [1] and waiting["calls"] == {"0": "report"}
        assert run["start_time_ns"] < waiting["since_time_ns"] < time.time_ns()
        worker = run["attempts"][0]["workers"][1]
        in_function = r"function \(test_stragglers\.py:\d+\), "
        until(
            lambda: places(run),
            lambda found: (
                re.search(
                    rf"{in_function}in report\(\), waiting for other ranks$", found.get(0, "")
                )
                and re.search(rf"{in_function}asleep", found.get(1, ""))
            ),
        )
        out = rayctl("train", "show", "missing")[1]
        assert re.search(
            rf"^  rank 1 \({worker['node_ip']} {worker['node_id'][:12]}, process {worker['pid']}\) "
            r"has not come since \S+ \S+, for which wait: rank 0 in report\(\)$",
            out,
            re.M,
        ), out
        background.go_on()
        (run,) = until(
            lambda: runs("missing"), lambda found: not found[0]["attempts"][0]["waiting"]
        )
        assert run["status"] == "RUNNING"
        ray.get(end.arrive.remote())


@pytest.mark.parametrize("seconds", ["x", "-1", "601", "nan", ""])
def test_seconds_that_cannot_be(train_cluster, seconds):
    with pytest.raises(urllib.error.HTTPError, match="400"):
        get(f"/api/train/v2/runs/v1/0123/ranks?seconds={seconds}")


def test_words_that_cannot_be(train_cluster):
    code, _, err = rayctl("train", "stragglers", "nothing")
    assert code == 1 and "no training run has the name or id 'nothing'" in err
    for words in (["--seconds=x"], ["--seconds=0"], ["--seconds=601"]):
        code, _, err = rayctl("train", "stragglers", "nothing", *words)
        assert code == 2 and "--seconds" in err, err


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def step_times():
    clock = Clock()
    times = StepTimes(None, clock)

    def step(kind, *lengths):
        for length in lengths:
            clock.now += length
            times.step(kind)

    return times, step


def test_a_step_lasts_until_the_next_one():
    times, step = step_times()
    assert times.to_dict() == {}
    step("report", 5)
    assert times.to_dict() == {"steps": 1}
    step("report", 2, 4, 2)
    assert times.to_dict() == {"steps": 4, "step_s": 2}


def test_a_pause_between_epochs_does_not_hide_the_steps():
    times, step = step_times()
    step("batch", *[0.5] * 20, 60, *[0.5] * 20)
    assert times.to_dict() == {"steps": 41, "step_s": 0.5}
    step("batch", *[2] * 31)
    assert times.to_dict() == {"steps": 72, "step_s": 2}


def test_the_finest_steps_count():
    times, step = step_times()
    step("report", 7, 7)
    step("batch", 1, 1, 1)
    step("report", 1)
    step("batch", 1)
    assert times.to_dict() == {"steps": 4, "step_s": 1}


def test_steps_are_in_the_history():
    class Report:
        metrics = {"loss": 1}
        times = {"report_s": 0.5, "steps": 3, "step_s": 0.25}

    progress = Progress()
    progress.add((Report, Report))
    assert progress.to_dict()["ranks"][1] == {
        "world_rank": 1,
        "report_s": 0.5,
        "steps": 3,
        "step_s": 0.25,
    }
