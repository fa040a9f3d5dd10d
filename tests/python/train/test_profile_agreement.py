"""Ranks agree on the step at which a profile begins, and the controller makes a profile of their
results."""

import asyncio
import json
import pathlib
import types

import pytest

from ray.exceptions import ActorDiedError
from ray.train import ProfileConfig, RunConfig
from ray.train.profiles import agreement, command, coordinator, store
from ray.train.profiles.coordinator import Profiles
from ray.train.profiles.digest import empty
from ray.train.profiles.order import Order
from ray.train.profiles.steps import BATCH, OWN, REPORT
from ray.train.ranks import WorkerInfo
from ray.train.storage import StorageContext

ORDER = Order("p", "/nowhere", 0, 3, warmup=1)


class Ranks:
    """Ranks that make steps whenever they are asked something.

    counts: where each is. a_question: steps that a rank makes while it is asked something.
    """

    def __init__(self, *counts, a_question=0, kind=BATCH):
        self.counts = list(counts)
        self.a_question = a_question
        self.kind = kind
        self.armed = {}
        self.calls = []
        self.problems = {}

    async def ask(self, rank, method, *arguments):
        self.calls.append((rank, method))
        if rank in self.problems:
            return {"problem": self.problems[rank]}
        self.counts[rank] += self.a_question
        counts = {BATCH: 0, OWN: 0, REPORT: 0, self.kind: self.counts[rank]}
        if method == "cancel":
            self.armed.pop(rank, None)
            return True
        if method == "look":
            return {"counts": counts, "problem": None}
        (order,) = arguments
        late = order.begin is not None and self.counts[rank] >= order.begin - order.warmup
        if not late or (order.kind is None and not self.counts[rank]):
            self.armed[rank] = order
        return {"counts": counts, "problem": None, "armed": rank in self.armed}


def agree(ranks, order=ORDER):
    return asyncio.run(agreement.arm_all(ranks.ask, list(range(len(ranks.counts))), order))


@pytest.mark.parametrize("counts", [(100, 100), (100, 101), (7, 7, 8, 7)])
def test_slow_steps_begin_with_the_next_that_nobody_has_reached(counts):
    ranks = Ranks(*counts)
    assert agree(ranks) == ({}, [])
    for rank in range(len(counts)):
        assert ranks.armed[rank] == ORDER.at(BATCH, max(counts) + 1 + ORDER.warmup)
    assert not [call for call in ranks.calls if call[1] == "cancel"]


@pytest.mark.parametrize("a_question", [1, 3, 50])
def test_fast_steps_are_aimed_at_ahead(a_question):
    ranks = Ranks(100, 102, 99, a_question=a_question, kind=REPORT)
    assert agree(ranks) == ({}, [])
    begins = {order.begin for order in ranks.armed.values()}
    assert len(ranks.armed) == 3 and len(begins) == 1
    assert begins.pop() - ORDER.warmup > max(ranks.counts)


def test_a_step_that_was_missed_is_chosen_anew():
    ranks = Ranks(100, 100)
    asked = ranks.ask

    async def ask(rank, method, *arguments):
        if (rank, method) == (1, "arm") and (1, "arm") not in ranks.calls:
            # The rank makes two more steps just before it is armed.
            ranks.counts[1] += 2
        return await asked(rank, method, *arguments)

    ranks.ask = ask
    assert agree(ranks) == ({}, [])
    assert (0, "cancel") in ranks.calls
    assert ranks.armed[0] == ranks.armed[1] and ranks.armed[0].begin > 103


def test_ranks_that_have_not_begun_count_from_their_first_step():
    ranks = Ranks(0, 0)
    agree(ranks)
    assert ranks.armed == {0: ORDER.at(None, 2), 1: ORDER.at(None, 2)}


def test_ranks_that_are_not_in_step_begin_as_they_can():
    ranks = Ranks(10, 5000)
    problems, notes = agree(ranks)
    assert problems == {} and "not at the same step" in notes[0]
    assert {order.begin for order in ranks.armed.values()} == {None}


def test_steps_faster_than_any_message_end_in_each_rank_s_own_step():
    ranks = Ranks(0, 0)
    growth = iter(4**power for power in range(40))
    asked = ranks.ask

    async def ask(rank, method, *arguments):
        ranks.counts[rank] += next(growth)
        return await asked(rank, method, *arguments)

    ranks.ask = ask
    problems, notes = agree(ranks)
    assert problems == {} and notes and len(ranks.armed) == 2


def test_a_rank_with_a_problem_does_not_keep_the_others():
    ranks = Ranks(5, 5, 5)
    ranks.problems = {1: "its function has ended"}
    assert agree(ranks) == ({1: "its function has ended"}, [])
    assert sorted(ranks.armed) == [0, 2]
    ranks.problems = dict.fromkeys(range(3), "gone")
    assert agree(ranks) == (ranks.problems, [])


# ---- the controller


def done(rank, **more):
    fields = {"status": "RECORDED", "detail": None, "trace": f"/t{rank}", "memory": None}
    digest = {**empty("a note"), "steps": [], "operators": []}
    return {**fields, "digest": digest, "fragment": b"", "kind": BATCH, "begin": 2, **more}


class Controller:
    """Profiles with workers that answer what `results` say, and the store as a dict."""

    def __init__(self, tmp_path, monkeypatch, results, profile=None):
        self.stored = []
        monkeypatch.setattr(store, "publish", self._publish)
        monkeypatch.setattr(store, "keep_trace", lambda run_id, profile_id, path: "train/x")
        spec = types.SimpleNamespace(
            run_id="r",
            name="run",
            node_id="n",
            run_config=RunConfig(name="run", profile=profile),
            storage=StorageContext(str(tmp_path), "run"),
        )
        self.profiles = Profiles(spec)
        self.ranks = Ranks(*[5] * len(results))
        workers = [
            WorkerInfo("node", "1.2.3.4", 40 + rank, "a", "w", rank=rank, actor=self._actor(rank))
            for rank in range(len(results))
        ]
        self.results = results
        self.attempt = types.SimpleNamespace(
            group=types.SimpleNamespace(workers=workers), phases=[("start", 0, 1)]
        )

    def _publish(self, run_id, records):
        self.stored.append(json.loads(store.bounded(records)))

    def _actor(self, rank):
        async def call(method, *arguments):
            if method != "result":
                return await self.ranks.ask(rank, method, *arguments)
            result = self.results[rank]
            if isinstance(result, BaseException):
                raise result
            return await result if asyncio.iscoroutine(result) else result

        return types.SimpleNamespace(profile=types.SimpleNamespace(remote=call))

    async def request(self, **options):
        self.profiles.started(self.attempt)
        return await self.profiles.request(ProfileConfig(**options), 5.0)


def test_a_profile_of_all_ranks(tmp_path, monkeypatch):
    controller = Controller(tmp_path, monkeypatch, [done(0), done(1)])
    answer = asyncio.run(controller.request(steps=3))
    assert [one["status"] for one in answer["ranks"]] == ["RECORDED", "RECORDED"]
    assert answer["ranks"][1]["pid"] == 41 and answer["ranks"][1]["trace"] == "/t1"
    folder = tmp_path / "run.profiles" / answer["id"]
    assert answer["path"] == str(folder)
    assert {one.name for one in folder.iterdir()} == {
        "merged.trace.json.gz",
        "summary.json",
        "summary.txt",
    }
    assert (folder / "summary.txt").read_text() == answer["summary"]
    assert [one["status"] for (one,) in controller.stored] == ["RECORDING", "RECORDED"]
    record = controller.stored[-1][0]
    assert record["log_file"] == "train/x" and record["summary"]["notes"] == ["a note"]
    assert record["trace"] == answer["trace"] == str(folder / "merged.trace.json.gz")


def test_one_rank_that_dies_leaves_what_the_others_have(tmp_path, monkeypatch):
    async def die_while_it_writes():
        unfinished = pathlib.Path(controller.stored[-1][0]["path"], ".unfinished-rank1")
        unfinished.mkdir(parents=True)
        (unfinished / "half.pt.trace.json").touch()
        raise ActorDiedError("it was killed")

    controller = Controller(tmp_path, monkeypatch, [done(0), die_while_it_writes()])
    answer = asyncio.run(controller.request())
    names = {one.name for one in pathlib.Path(answer["path"]).iterdir()}
    assert names == {"merged.trace.json.gz", "summary.json", "summary.txt"}
    assert [one["status"] for one in answer["ranks"]] == ["RECORDED", "FAILED"]
    assert "Rank 1 was not recorded: its process has ended." in answer["summary"]
    record = controller.stored[-1][0]
    assert record["status"] == "FAILED" and record["detail"] == "rank 1: its process has ended"


def test_nothing_is_left_when_no_rank_recorded(tmp_path, monkeypatch):
    stuck = {"status": "FAILED", "detail": "x", "stuck": True}
    controller = Controller(tmp_path, monkeypatch, [stuck, dict(stuck)])
    with pytest.raises(RuntimeError, match="ranks 0, 1 made no step within 5 s: a step is a batch"):
        asyncio.run(controller.request())
    assert not (tmp_path / "run.profiles").exists()
    assert controller.stored[-1][0]["status"] == "FAILED"
    occupied = {"status": "FAILED", "detail": "its own"}
    controller.results = [occupied, occupied]
    with pytest.raises(RuntimeError, match="^ranks 0, 1: its own$"):
        asyncio.run(controller.request())
    assert len(controller.stored[-1]) == 2


def test_wrong_requests(tmp_path, monkeypatch):
    controller = Controller(tmp_path, monkeypatch, [done(0)])
    with pytest.raises(RuntimeError, match="no workers that train at the moment"):
        asyncio.run(controller.profiles.request(ProfileConfig(), 5))
    with pytest.raises(ValueError, match="no ranks 1, 7: its ranks are 0 to 0"):
        asyncio.run(controller.request(ranks=[7, 0, 1]))
    assert controller.stored == []


def test_one_profile_at_a_time(tmp_path, monkeypatch):
    async def main():
        gate, asked = asyncio.get_running_loop().create_future(), asyncio.Event()

        async def wait():
            asked.set()
            return await gate

        controller = Controller(tmp_path, monkeypatch, [wait()])
        first = asyncio.ensure_future(controller.request())
        await asked.wait()
        with pytest.raises(RuntimeError, match="another profile of the run is under way .profile_"):
            await controller.request()
        gate.set_result(done(0))
        assert (await first)["ranks"][0]["status"] == "RECORDED"
        assert not controller.profiles.is_busy
        controller.results = [done(0)]
        second = await controller.request()
        assert second["id"] != (await first)["id"]

    asyncio.run(main())


def test_a_configured_profile_is_repeated_until_it_has_been_recorded(tmp_path, monkeypatch):
    async def main():
        lost = ActorDiedError("killed")
        config = ProfileConfig(steps=4, skip=5, warmup=2, ranks=[0])
        controller = Controller(tmp_path, monkeypatch, [lost, lost], profile=config)
        profiles = controller.profiles
        order = profiles.order_for_attempt()
        assert (order.kind, order.begin, order.warmup, order.steps) == (None, 8, 2, 4)
        profiles.started(controller.attempt)
        await profiles.settle()
        assert controller.stored[-1][-1]["status"] == "FAILED"
        profiles.ended()
        controller.results = [done(0), lost]
        assert profiles.order_for_attempt() is not None
        profiles.started(controller.attempt)
        await profiles.settle()
        assert controller.stored[-1][-1]["status"] == "RECORDED"
        assert [one["rank"] for one in controller.stored[-1][-1]["ranks"]] == [0]
        assert profiles.order_for_attempt() is None, "one recorded profile is enough"
        assert not controller.ranks.armed, "the ranks were told when they started"

    asyncio.run(main())


def test_a_failure_of_the_profile_itself_is_told_and_ends_it(tmp_path, monkeypatch):
    controller = Controller(tmp_path, monkeypatch, [done(0)])
    monkeypatch.setattr(coordinator.assembly, "assemble", lambda parts: 1 / 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        asyncio.run(controller.request())
    assert controller.stored[-1][0]["status"] == "FAILED" and not controller.profiles.is_busy


# ---- the command


@pytest.mark.parametrize(
    "request_, message",
    [
        ("{", "no JSON"),
        ("[]", "must be a JSON object"),
        ({"run_id": "other"}, "controls the run r, not other"),
        ({"stepz": 3}, "unknown fields: stepz"),
        ({"steps": 0}, "steps=0"),
        ({"steps": 1001}, "at most 1000"),
        ({"steps": True}, "steps=True"),
        ({"ranks": []}, "ranks="),
        ({"ranks": [0, 0]}, "ranks="),
        ({"ranks": "0"}, "ranks='0'"),
        ({"with_stack": 1}, "with_stack=1"),
        ({"timeout_s": 0}, "timeout_s=0"),
        ({"timeout_s": "5"}, "timeout_s='5'"),
        ({"timeout_s": 1e9}, "at most 86400"),
    ],
)
def test_wrong_commands(request_, message):
    text = request_ if isinstance(request_, str) else json.dumps(request_)
    with pytest.raises(ValueError, match=message):
        command.parsed(text.encode(), "r")


def test_a_command_with_and_without_everything():
    config, timeout_s = command.parsed(b"", "r")
    assert config == ProfileConfig() and timeout_s == 120
    config, timeout_s = command.parsed(
        json.dumps(
            {
                "run_id": "r",
                "steps": 7,
                "ranks": [1],
                "record_shapes": False,
                "profile_memory": False,
                "with_stack": False,
                "timeout_s": 2.5,
            }
        ).encode(),
        "r",
    )
    assert timeout_s == 2.5
    assert config == ProfileConfig(
        steps=7, ranks=[1], record_shapes=False, profile_memory=False, with_stack=False
    )


def test_configurations():
    assert RunConfig().profile is None and RunConfig(profile=False).profile is None
    assert RunConfig(profile=True).profile == ProfileConfig()
    with pytest.raises(ValueError, match="ProfileConfig"):
        RunConfig(profile={"steps": 3})
    for wrong in ({"skip": -1}, {"warmup": 1.5}, {"ranks": [-1]}, {"steps": "3"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ProfileConfig(**wrong)
    assert ProfileConfig.__module__ == "ray.train"


def test_the_last_traces_of_a_run_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(store.logs, "directory", lambda: str(tmp_path / "logs"))
    (tmp_path / "trace").write_text("")
    counts = []
    for index in range(7):
        assert store.keep_trace("run", f"profile_{index}", str(tmp_path / "trace"))
        counts.append(len(list((tmp_path / "logs").iterdir())))
    assert counts == [1, 2, 3, 4, 5, 5, 5]
