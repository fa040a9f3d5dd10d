"""ray.put, ray.get and ray.wait keep their promises, and references keep their objects alive."""

import asyncio
import gc
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

import ray
from waiting import touch, until, wait_for

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
def slow(seconds, value=None):
    time.sleep(seconds)
    return value


@ray.remote
def gated(gate, value=None):
    wait_for(gate)
    return value


@ray.remote
def boom():
    raise ValueError("boom")


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        "text",
        b"bytes",
        [1, {"a": (2, 3)}],
        b"x" * 1_000_000,
        "y" * 1_000_000,
        list(range(100_000)),
    ],
)
def test_put_and_get(value):
    ref = ray.put(value)
    assert ray.get(ref) == value and ray.get([ref, ref]) == [value, value]


def test_arrays_are_views_that_outlive_their_reference():
    array = np.random.rand(500_000)
    view = ray.get(ray.put(array))
    gc.collect()
    ray.get([ray.put(np.random.rand(500_000)) for _ in range(5)])
    assert (view == array).all() and not view.flags.writeable


def test_get_arguments():
    ref = ray.put(1)
    assert ray.get([]) == []
    for bad in ((ref,), {ref}, "x", 3, None):
        with pytest.raises(ValueError):
            ray.get(bad)
    for bad in ([ref, 3], [[ref]]):
        with pytest.raises(TypeError):
            ray.get(bad)
    with pytest.raises(TypeError):
        ray.get(ref, 3)
    with pytest.raises(TypeError):
        ray.get()
    with pytest.raises(TypeError):
        ray.put(ref)
    with pytest.raises(ValueError):
        ray.get(ray.ObjectRef(b"\1" * 28))


def test_get_timeout(tmp_path):
    ref = gated.remote(tmp_path / "gate", "late")
    for timeout in (0, 0.1):
        with pytest.raises(ray.exceptions.GetTimeoutError):
            ray.get(ref, timeout=timeout)
    with pytest.raises(TimeoutError):
        ray.get([ray.put(1), ref], timeout=0)
    touch(tmp_path / "gate")
    assert ray.get(ref, timeout=-1) == "late" and ray.get(ref, timeout=0) == "late"


def test_wait(tmp_path):
    fast, late = ray.put(1), gated.remote(tmp_path / "gate", "late")
    assert ray.wait([late, fast]) == ([fast], [late])
    assert ray.wait([late, fast], num_returns=2, timeout=0.05) == ([fast], [late])
    touch(tmp_path / "gate")
    ready, rest = ray.wait([late, fast], num_returns=2, timeout=120)
    assert ready == [late, fast] and rest == []
    failed = boom.remote()
    assert ray.wait([failed]) == ([failed], [])
    assert ray.wait([]) == ([], [])
    several = [ray.put(i) for i in range(5)]
    assert ray.wait(several, num_returns=2) == (several[:2], several[2:])
    assert ray.wait(several, num_returns=2, fetch_local=False)[0] == several[:2]


def test_wait_arguments():
    a, b = ray.put(1), ray.put(2)
    for bad, error in (
        ((a,), TypeError),
        (a, TypeError),
        ([a, 1], TypeError),
        ([a, a], ValueError),
    ):
        with pytest.raises(error):
            ray.wait(bad)
    for options in ({"num_returns": 0}, {"num_returns": 3}, {"timeout": -1}):
        with pytest.raises(ValueError):
            ray.wait([a, b], **options)


def test_many_waits():
    refs = [ray.put(i) for i in range(1000)]
    # This counts the time of this process alone, because others may have the CPU meanwhile.
    start = time.process_time()
    while refs:
        ready, refs = ray.wait(refs, fetch_local=False)
    assert time.process_time() - start < 1


def test_references_out_of_band():
    ref = ray.put("value")
    copy = pickle.loads(pickle.dumps(ref))
    assert copy == ref and ray.get(copy) == "value"


def test_references_inside_objects_keep_them_alive():
    outer = ray.put({"inner": ray.put("alive")})
    gc.collect()
    assert ray.get(ray.get(outer)["inner"]) == "alive"


def test_futures():
    assert ray.put(3).future().result(10) == 3
    assert slow.remote(0.2, "x").future().result(10) == "x"
    with pytest.raises(ValueError):
        boom.remote().future().result(10)
    seen = []
    slow.remote(0.1, 5)._on_completed(seen.append)
    assert until(lambda: seen) == [5]


def test_await():
    async def main():
        assert await ray.put(1) == 1
        assert await asyncio.gather(*[slow.remote(0.2, i) for i in range(4)]) == [0, 1, 2, 3]
        with pytest.raises(ValueError):
            await boom.remote()
        assert await asyncio.wait_for(slow.remote(0.1, "y").as_future(), 10) == "y"
        assert (
            await asyncio.wait_for(asyncio.wrap_future(slow.remote(0.1, "z").future()), 10) == "z"
        )

    asyncio.run(main())
    asyncio.run(main())


def test_interrupt_reaches_a_waiting_program(tmp_path):
    import signal
    import threading

    def interrupt():
        time.sleep(0.3)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        # On a busy machine the thread may be done before this one goes on.
        threading.Thread(target=interrupt).start()
        ray.get(gated.remote(tmp_path / "gate"))
    touch(tmp_path / "gate")


def test_threads():
    import threading

    results = []

    def work(n):
        results.append(sum(ray.get([slow.remote(0, i) for i in range(n)])))

    threads = [threading.Thread(target=work, args=(50,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [1225] * 4


def test_a_large_argument_given_again_is_stored_once():
    @ray.remote
    class Reader:
        def place_and_first(self, array):
            return array.__array_interface__["data"][0], array[0]

        def another(self):
            return np.ones(400_000)

    reader, argument = Reader.remote(), np.arange(400_000.0)
    ray.get(reader.place_and_first.remote(argument))
    while True:
        started = time.monotonic()
        before, _ = ray.get(reader.place_and_first.remote(argument))
        other = reader.another.remote()
        # A new object would be stored in the place of the argument, if that were free.
        ray.wait([other])
        after, _ = ray.get(reader.place_and_first.remote(argument))
        if time.monotonic() - started < 0.4:
            # A stored argument is kept for half a second.
            break
    assert after == before
    argument[0] = 7
    assert ray.get(reader.place_and_first.remote(argument))[1] == 7


def test_refs_of_a_session_that_was_shut_down():
    """References of an ended session raise an error wherever they are used, and are never taken for
    those of the next session."""
    program = """
import numpy as np, ray

def said(f):
    try:
        return f()
    except Exception as error:
        return type(error).__name__, "shut down" in str(error) or "owner does not know it" in str(error)

def start():
    ray.init(num_cpus=2, log_to_driver=False)
    return [ray.put("old"), ray.put(np.ones(10**6)), ray.remote(lambda: "done").remote()]

old = start()
ray.get(old)
ray.shutdown()
new = start()
ray.get(new)
assert not set(old) & set(new)

@ray.remote
def take(value):
    return value

@ray.remote
class Reader:
    def read(self, refs):
        return ray.get(refs[0])

for ref in old:
    print(said(lambda: ray.get(ref)), said(lambda: ray.get(take.remote(ref))), said(lambda: ray.get(Reader.remote().read.remote([ref]))))
    assert ray.wait([ref], timeout=0) == ([ref], [])
print(ray.get(take.remote(new[0])))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    one = "('ValueError', True) ('RayTaskError(ValueError)', True) ('RayTaskError(ObjectLostError)', True)"
    assert done.stdout == f"{one}\n{one}\n{one}\nold\n", done.stdout + done.stderr
