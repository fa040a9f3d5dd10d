"""ray.experimental: internal_kv and tqdm_ray."""

import json
import logging
import sys
import types

import pytest

import ray
from ray.experimental import internal_kv as kv
from ray.experimental import tqdm_ray
from waiting import until

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(autouse=True)
def empty_store(cluster):
    yield
    for namespace in (None, "other"):
        kv._internal_kv_del("", del_by_prefix=True, namespace=namespace)


def test_put_and_get():
    assert kv._internal_kv_initialized()
    # The result says whether the key was there.
    assert kv._internal_kv_put("a", "1") is False
    assert (
        kv._internal_kv_put(b"a", b"2", overwrite=False) is True
        and kv._internal_kv_get("a") == b"1"
    )
    assert kv._internal_kv_put("a", b"3") is True and kv._internal_kv_get(b"a") == b"3"
    assert kv._internal_kv_get("b") is None
    assert kv._internal_kv_exists("a") and not kv._internal_kv_exists("b")
    assert (
        kv._internal_kv_put("empty", b"") is False
        and kv._internal_kv_get("empty") == b""
        and kv._internal_kv_exists("empty")
    )
    assert (
        kv._internal_kv_put(b"\xff\x00", b"\x00\xff") is False
        and kv._internal_kv_get(b"\xff\x00") == b"\x00\xff"
    )


def test_namespaces():
    kv._internal_kv_put("a", "1", namespace="other")
    assert kv._internal_kv_get("a") is None and kv._internal_kv_get("a", namespace=b"other") == b"1"
    assert kv._internal_kv_list("", namespace="other") == [b"a"] and kv._internal_kv_list("") == []


def test_list_and_delete():
    for key in ("a", "ab", "ac", "b"):
        kv._internal_kv_put(key, "1")
    assert sorted(kv._internal_kv_list("a")) == [b"a", b"ab", b"ac"]
    assert kv._internal_kv_del("ab") == 1 and kv._internal_kv_del("ab") == 0
    assert kv._internal_kv_del("a", del_by_prefix=True) == 2 and kv._internal_kv_list("") == [b"b"]


def test_wrong_types():
    for call in (
        lambda: kv._internal_kv_put(3, "x"),
        lambda: kv._internal_kv_put("x", 3),
        lambda: kv._internal_kv_get(3),
    ):
        with pytest.raises(AssertionError):
            call()
    with pytest.raises(TypeError):
        kv._internal_kv_get("a", namespace=3)


def test_tasks_see_the_same_store():
    ray.get(ray.remote(lambda: kv._internal_kv_put("from a task", "x")).remote())
    assert kv._internal_kv_get("from a task") == b"x"


def test_absent_parts_raise_errors():
    with pytest.raises(DeprecationWarning):
        ray.experimental.set_resource("a", 1)
    with pytest.raises(NotImplementedError, match="channel"):
        ray.experimental.channel
    with pytest.raises(AttributeError):
        ray.experimental.nonsense


class Bar:
    """Stands in for tqdm.tqdm, which the machine may not have."""

    made = []

    def __init__(self, **options):
        self.options, self.states, self.closed = options, [], False
        Bar.made.append(self)

    def set_description(self, text, refresh):
        self.description = text

    def refresh(self):
        self.states.append((self.n, self.total, self.description))

    def clear(self):
        pass

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))
    Bar.made = []
    return Bar.made


def test_bar_of_the_driver(bars):
    assert list(tqdm_ray.tqdm(range(3), desc="mine", unit="apples", flush_interval_s=0)) == [
        0,
        1,
        2,
    ]
    (bar,) = bars
    assert (
        [state[0] for state in bar.states] == [0, 1, 2, 3, 3]
        and bar.closed
        and bar.options["unit"] == "apples"
        and bar.options["total"] == 3
    )


def test_bar_by_hand(bars):
    bar = tqdm_ray.tqdm(total=5, flush_interval_s=3600)
    bar.update(2)
    assert (bar.n, bar.total) == (2, 5) and [state[0] for state in bars[0].states] == [0]
    bar.set_description("other")
    bar.refresh()
    assert bars[0].states[-1] == (2, 5, "other")
    bar.close()
    bar.close()
    bar.update(1)
    assert bars[0].closed
    with pytest.raises(ValueError):
        list(tqdm_ray.tqdm(total=2))


def test_states_of_workers(bars):
    state = {
        "uuid": "u",
        "desc": "theirs",
        "x": 1,
        "total": 4,
        "unit": "it",
        "pos": 0,
        "pid": 1,
        "closed": False,
    }
    assert tqdm_ray.receive(tqdm_ray.RAY_TQDM_MAGIC + json.dumps(state))
    assert tqdm_ray.receive(tqdm_ray.RAY_TQDM_MAGIC + json.dumps({**state, "x": 4, "closed": True}))
    assert [each[0] for each in bars[0].states] == [1, 4] and bars[0].closed
    assert (
        not tqdm_ray.receive("a line")
        and not tqdm_ray.receive(tqdm_ray.RAY_TQDM_MAGIC + "{")
        and not tqdm_ray.receive(tqdm_ray.RAY_TQDM_MAGIC + "{}")
    )


def test_without_tqdm(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(tqdm_ray, "_bars", tqdm_ray._Bars())
    with caplog.at_level(logging.WARNING, "ray"):
        assert list(tqdm_ray.tqdm(range(2))) == [0, 1] and list(tqdm_ray.tqdm(x for x in "ab")) == [
            "a",
            "b",
        ]
    assert caplog.text.count("tqdm is not installed") == 1


def test_bars_of_workers_reach_the_driver_and_are_no_output(bars, capfd):
    @ray.remote
    def work():
        for _ in tqdm_ray.tqdm(range(3), desc="far"):
            pass
        print("the task's own line")

    ray.get(work.remote())
    printer = ray._private.worker.global_worker.log_printer
    until(lambda: printer.settle() or (bars and bars[0].closed))
    assert bars[0].states[-1] == (3, 3, "far")
    assert "magic" not in capfd.readouterr().out
