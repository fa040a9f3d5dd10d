"""How the record of a run is published, without a cluster: bounds, coalescing, old runs."""

import asyncio
import json
import threading

from ray.train import records
from ray.train.progress import Progress, numbers_in
from ray.train.reported import TrainingReport


class Store:
    """The key-value store as the writer sees it."""

    def __init__(self, actors=()):
        names = (records.RUNS, records.METRICS, records.PROFILES, records.VIEWERS)
        self.spaces = {name: {} for name in names}
        self.actors = actors
        self.puts = []

    def kv_put(self, space, key, value, overwrite, outlives_job):
        self.spaces[space][key] = value
        self.puts.append((space, json.loads(value)))

    def kv_get(self, space, key):
        return self.spaces[space].get(key)

    def kv_list(self, space, prefix):
        return list(self.spaces[space])

    def kv_delete(self, space, key):
        self.spaces[space].pop(key, None)

    def list_actors(self, everywhere):
        return [{"actor_id": name.encode(), "state": state} for name, state in self.actors]


async def turn():
    """Lets the event loop run everything that can run now."""
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_soon(passed.set_result, None)
    await passed


class Record:
    """A RunRecord that only counts its changes."""

    version = 0

    def to_dict(self):
        return {"id": "r", "version": self.version, "attempts": []}


def test_many_changes_are_few_writes_and_the_last_one_is_among_them(monkeypatch):
    store = Store()
    monkeypatch.setattr(records, "_raylet", store)
    monkeypatch.setattr(records, "_make_room", lambda: None)

    async def main():
        record = Record()
        writer = records.RecordWriter("r", record)
        writer.look()
        for version in range(1, 500):
            record.version = version
            writer.look()
            await turn()
        await writer.finish()

    asyncio.run(main())
    written = [value["version"] for space, value in store.puts]
    assert written[-1] == 499 and len(written) <= 3, written


def test_a_change_while_the_one_before_is_written_follows_by_itself(monkeypatch):
    async def main():
        loop = asyncio.get_running_loop()
        written = asyncio.Queue()

        class Telling(Store):
            def kv_put(self, space, key, value, overwrite, outlives_job):
                asyncio.run_coroutine_threadsafe(change(json.loads(value)), loop).result(10)

        async def change(value):
            written.put_nowait(value["version"])
            if value["version"] == 0:
                record.version = 1
                writer.look()

        monkeypatch.setattr(records, "_raylet", Telling())
        monkeypatch.setattr(records, "_make_room", lambda: None)
        record = Record()
        writer = records.RecordWriter("r", record)
        writer.look()
        assert [await asyncio.wait_for(written.get(), 10) for _ in range(2)] == [0, 1]

    asyncio.run(main())


def test_reports_alone_do_not_write_the_record(monkeypatch):
    store = Store()
    monkeypatch.setattr(records, "_raylet", store)
    monkeypatch.setattr(records, "_make_room", lambda: None)

    async def main():
        writer = records.RecordWriter("r", Record())
        writer.look()
        await writer.finish()
        del store.puts[:]
        for number in range(1000):
            writer.look()
            writer.reported((TrainingReport({"loss": number}),))
            await turn()
        assert len(store.puts) <= 1
        await writer.finish()

    asyncio.run(main())
    assert [space for space, _ in store.puts] == [records.METRICS] * len(store.puts)
    assert store.puts[-1][1]["metrics"]["loss"][-1] == 999
    assert store.puts[-1][1]["reports"][-1] == 1000


def test_a_store_that_fails_does_not_harm_the_run(monkeypatch):
    tried = threading.Event()

    class Broken(Store):
        def kv_put(self, *arguments):
            tried.set()
            raise OSError("the disk is full")

    monkeypatch.setattr(records, "_raylet", Broken())
    monkeypatch.setattr(records, "_make_room", lambda: None)

    async def main():
        writer = records.RecordWriter("r", Record())
        writer.look()
        await writer.finish()

    asyncio.run(main())
    assert tried.is_set()


def test_the_oldest_ended_runs_go():
    store = Store(actors=[(b"\xaa".decode("latin1"), 2), ("dead", 3)])
    living = store.list_actors(True)[0]["actor_id"].hex()
    runs = {
        "ended-1": ("FINISHED", 1, living),
        "lives": ("RUNNING", 2, living),
        "ended-3": ("ERRORED", 3, "x"),
        "killed": ("RUNNING", 4, b"dead".hex()),
        "ended-5": ("ABORTED", 5, "x"),
    }
    for name, (status, start, actor) in runs.items():
        entry = {"status": status, "start_time_ns": start, "controller_actor_id": actor}
        store.spaces[records.RUNS][name.encode()] = json.dumps(entry).encode()
        store.spaces[records.METRICS][name.encode()] = b"{}"
        store.spaces[records.PROFILES][name.encode()] = b"[]"
        store.spaces[records.VIEWERS][name.encode()] = b"{}"
    records.remove_oldest(5, store)
    assert len(store.spaces[records.RUNS]) == 5
    records.remove_oldest(2, store)
    assert set(store.spaces[records.RUNS]) == {b"lives", b"ended-5"}
    assert set(store.spaces[records.METRICS]) == {b"lives", b"ended-5"}
    assert set(store.spaces[records.PROFILES]) == {b"lives", b"ended-5"}
    assert set(store.spaces[records.VIEWERS]) == {b"lives", b"ended-5"}
    records.remove_oldest(0, store)
    assert set(store.spaces[records.RUNS]) == {b"lives"}


def test_room_is_made_for_several_runs_at_once(monkeypatch):
    store = Store()
    monkeypatch.setattr(records, "_raylet", store)
    for number in range(99):
        entry = {"status": "FINISHED", "start_time_ns": number}
        store.spaces[records.RUNS][f"{number}".encode()] = json.dumps(entry).encode()
    records._make_room()
    assert len(store.spaces[records.RUNS]) == 99
    store.spaces[records.RUNS][b"broken"] = b"{"
    records._make_room()
    assert set(store.spaces[records.RUNS]) == {f"{number}".encode() for number in range(9, 99)}


def test_a_record_is_small():
    worker = {"world_rank": 0, "log_file_path": "x" * 100}
    attempts = [{"attempt_id": f"r_{n}", "workers": [dict(worker)] * 2} for n in range(100)]
    record = {"id": "r", "status_detail": "x" * 100_000, "attempts": attempts}
    shown = records.published(record)
    assert len(json.dumps(shown)) < 10_000
    assert shown["attempts"][-1]["attempt_id"] == "r_99"
    assert [bool(one["workers"]) for one in shown["attempts"][-6:]] == [False] + [True] * 5


def test_numbers_of_metrics():
    found = numbers_in(
        {
            "loss": 0.5,
            "epoch": 3,
            "eval": {"acc": 1, "name": "x"},
            "nan": float("nan"),
            "huge": 10**400,
            "list": [1],
            "done": True,
        }
    )
    assert found == {"loss": 0.5, "epoch": 3.0, "eval/acc": 1.0, "done": 1.0}
    assert len(numbers_in({str(n): n for n in range(1000)})) == 20


def test_history_is_bounded_and_keeps_its_ends():
    progress = Progress()
    for number in range(1, 1001):
        progress.add((TrainingReport({"loss": number}, times={"report_s": number}),))
        history = progress.to_dict()
    assert len(history["time_ms"]) <= 200
    assert history["reports"][-1] == 1000 and history["metrics"]["loss"][-1] == 1000
    assert history["reports"][0] < 200
    assert history["ranks"] == [{"world_rank": 0, "report_s": 1000}]
    assert progress.to_dict() == history, "asking adds nothing"
