"""Tasks: arguments, results, options, retries, nesting."""

import os
import time

import numpy as np
import pytest

import ray
from waiting import PATIENCE_S, touch, wait_for

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
def echo(*args, **kwargs):
    return args, kwargs


@ray.remote
def add(x, y=1):
    return x + y


def test_results_are_those_of_the_function():
    assert ray.get([add.remote(i) for i in range(100)]) == list(range(1, 101))
    assert ray.get(add.remote(1, y=5)) == 6
    assert ray.get(echo.remote()) == ((), {})
    assert ray.get(echo.remote(None)) == ((None,), {})


def test_references_as_arguments():
    one = add.remote(0)
    assert ray.get(add.remote(one)) == 2
    assert ray.get(add.remote(one, one)) == 2
    assert ray.get(add.remote(one, y=one)) == 2
    args, kwargs = ray.get(echo.remote("a", one, [one], k=one, other=3))
    assert args[:2] == ("a", 1) and kwargs == {"k": 1, "other": 3}
    assert isinstance(args[2][0], ray.ObjectRef) and ray.get(args[2][0]) == 1
    assert ray.get(echo.remote(*[one] * 10))[0] == (1,) * 10


def test_chains_wait_for_their_arguments():
    ref = add.remote(0)
    for _ in range(50):
        ref = add.remote(ref)
    assert ray.get(ref) == 51


def test_results_of_one_task_that_are_small_each_and_large_together():
    count, size = 3000, 95_000

    @ray.remote(num_returns=count, max_retries=0)
    def many():
        return [bytes([i % 256]) * size for i in range(count)]

    refs = many.remote()
    for i in range(0, count, 100):
        assert ray.get(refs[i]) == bytes([i % 256]) * size


def test_num_returns():
    @ray.remote(num_returns=3)
    def three():
        return 1, "two", [3]

    a, b, c = three.remote()
    assert ray.get([a, b, c]) == [1, "two", [3]]
    assert add.options(num_returns=0).remote(1) is None

    @ray.remote(num_returns=2)
    def generator():
        yield 1
        yield 2

    assert ray.get(generator.remote()) == [1, 2]
    for ref in three.options(num_returns=2).remote():
        with pytest.raises(ValueError, match="Task returned 3 objects, but num_returns=2."):
            ray.get(ref)


def test_a_value_that_is_no_sequence_is_explained():
    for ref in add.options(num_returns=2).remote(1, 2):
        with pytest.raises(TypeError, match="object of type 'int' has no len") as raised:
            ray.get(ref)
        assert str(raised.value).endswith(
            "The function returned a value of type int, although num_returns=2 asks for a "
            "sequence of 2 values."
        )


def test_signature_is_checked_here():
    for call in (
        lambda: add.remote(),
        lambda: add.remote(1, 2, 3),
        lambda: add.remote(1, z=3),
        lambda: add.remote(1, x=2),
    ):
        with pytest.raises(TypeError):
            call()


def test_large_and_small_arrays():
    small, large = np.arange(10), np.arange(1_000_000)

    @ray.remote
    def total(a, b):
        assert not a.flags.writeable and not b.flags.writeable
        return a.sum(), b.sum(), large[:3].sum() if False else 0

    assert ray.get(total.remote(small, large))[:2] == (small.sum(), large.sum())
    assert ray.get(total.remote(ray.put(small), ray.put(large)))[:2] == (small.sum(), large.sum())
    with pytest.raises(ValueError, match="read-only"):
        ray.get(echo.remote(large))[0][0][0] = 3


def test_captured_values_classes_and_recursion():
    factor = 7

    class Box:
        def __init__(self, x):
            self.x = x

    @ray.remote
    def boxed(box):
        return Box(box.x * factor)

    assert ray.get(boxed.remote(Box(2))).x == 14

    @ray.remote
    def fib(n):
        return n if n < 2 else sum(ray.get([fib.remote(n - 1), fib.remote(n - 2)]))

    assert ray.get(fib.remote(5)) == 5


def test_nested_references_in_results():
    @ray.remote
    def make(n):
        return [ray.put(i) for i in range(n)]

    refs = ray.get(make.remote(100))
    assert ray.get(refs) == list(range(100))

    @ray.remote
    def mixed():
        return {"ref": ray.put("inner"), "list": [add.remote(1)]}

    value = ray.get(mixed.remote())
    assert ray.get(value["ref"]) == "inner" and ray.get(value["list"]) == [2]


def test_blocked_tasks_give_their_cpu_back():
    @ray.remote
    def outer(depth):
        return 0 if depth == 0 else 1 + ray.get(outer.remote(depth - 1))

    assert ray.get([outer.remote(4) for _ in range(6)], timeout=60) == [4] * 6


@ray.remote
def step(wait=None, make=None):
    if make:
        touch(make)
    if wait:
        wait_for(wait)


def run_behind(flag):
    # Once their duration was measured, many tasks are sent at once.
    ray.get([step.remote() for _ in range(100)])
    waiting = step.remote(wait=flag)
    ray.get([step.remote() for _ in range(2000)])
    later = [step.remote(), step.remote(make=flag), step.remote()]
    ray.get(later + [waiting])


def test_tasks_go_past_one_that_waits_for_them(tmp_path):
    run_behind(str(tmp_path / "flag"))
    ray.get(ray.remote(run_behind).remote(str(tmp_path / "of a task")))


def test_nothing_of_a_batch_waits_behind_its_slowest(tmp_path):
    go_on = str(tmp_path / "go on")
    refs = [step.remote(wait=go_on if i == 500 else None) for i in range(3000)]
    slow = refs.pop(500)
    ray.get(refs)
    assert ray.wait([slow], timeout=0)[0] == []
    touch(go_on)
    ray.get(slow)


def test_more_arguments_than_two_bytes_count():
    @ray.remote
    def count(*args):
        return len(args), sum(args)

    @ray.remote
    class Counter:
        def count(self, *args):
            return len(args), sum(args)

    @ray.remote(num_returns=70_000)
    def many():
        return range(70_000)

    one = ray.put(1)
    counter = Counter.remote()
    assert (
        ray.get([count.remote(*[one] * 70_000), counter.count.remote(*[one] * 70_000)])
        == [(70_000, 70_000)] * 2
    )
    assert ray.get(many.remote()) == list(range(70_000))


def test_small_results_that_are_too_much_for_one_message():
    @ray.remote
    def result():
        return bytes(90_000)

    @ray.remote
    def total(*args):
        return sum(map(len, args))

    @ray.remote
    class Total:
        def total(self, *args):
            return sum(map(len, args))

    refs = [result.remote() for _ in range(3000)]
    actor = Total.remote()
    assert ray.get([total.remote(*refs), actor.total.remote(*refs)]) == [270_000_000] * 2


def test_custom_resources_limit_concurrency():
    @ray.remote(resources={"thing": 1}, num_cpus=0)
    def hold():
        start = time.time()
        time.sleep(0.3)
        return start

    starts = sorted(ray.get([hold.remote() for _ in range(4)]))
    assert starts[2] - starts[0] > 0.2


def test_retries_on_worker_death(tmp_path):
    @ray.remote(max_retries=2)
    def die_until(count):
        path = tmp_path / "count"
        n = int(path.read_text()) if path.exists() else 0
        path.write_text(str(n + 1))
        if n < count:
            os._exit(1)
        return n

    assert ray.get(die_until.remote(2), timeout=60) == 2
    (tmp_path / "count").unlink()
    with pytest.raises(ray.exceptions.WorkerCrashedError):
        ray.get(die_until.options(max_retries=0).remote(1), timeout=60)


def test_retry_exceptions(tmp_path):
    @ray.remote(max_retries=3, retry_exceptions=[KeyError])
    def flaky(error):
        path = tmp_path / error.__name__
        n = int(path.read_text()) if path.exists() else 0
        path.write_text(str(n + 1))
        if n < 2:
            raise error("again")
        return n

    assert ray.get(flaky.remote(KeyError), timeout=60) == 2
    with pytest.raises(ValueError):
        ray.get(flaky.remote(ValueError), timeout=60)
    with pytest.raises(ValueError):
        ray.get(flaky.options(retry_exceptions=False).remote(ValueError), timeout=60)
    assert ray.get(flaky.options(retry_exceptions=True).remote(ValueError), timeout=60) == 2


def test_functions_too_large_and_large(recwarn):
    payload = os.urandom(400_000)

    @ray.remote
    def length():
        return len(payload)

    # The function is so large that it goes through the key-value store.
    assert ray.get(length.remote()) == 400_000
    os.environ["FUNCTION_SIZE_ERROR_THRESHOLD"] = "100000"
    try:

        @ray.remote
        def too_large():
            return len(payload)

        with pytest.raises(ValueError, match="too large"):
            too_large.remote()
    finally:
        del os.environ["FUNCTION_SIZE_ERROR_THRESHOLD"]


def test_options_too_large_are_refused_and_hold_nothing_up():
    @ray.remote
    class Actor:
        def answer(self):
            return 1

    @ray.remote
    def answer():
        return 2

    long = "n" * 2_000_000
    with pytest.raises(ValueError, match="options of a task have .* shorten them"):
        answer.options(name=long).remote()
    with pytest.raises(ValueError, match="options of a task have"):
        answer.options(resources={long: 1}).remote()
    with pytest.raises(ValueError, match="options of an actor have"):
        Actor.options(name=long).remote()
    with pytest.raises(ValueError, match="options of a task have"):
        actor = Actor.remote()
        actor.answer.options(name=long).remote()
    assert ray.get([answer.remote(), actor.answer.remote()], timeout=PATIENCE_S) == [2, 1]


def test_unpicklable_arguments_and_results():
    import threading

    with pytest.raises(TypeError, match="Could not serialize"):
        echo.remote(threading.Lock())

    @ray.remote
    def lock():
        return threading.Lock()

    with pytest.raises(TypeError, match="Could not serialize"):
        ray.get(lock.remote())


def test_omp_threads_follow_cpus():
    @ray.remote
    def threads():
        return os.environ["OMP_NUM_THREADS"]

    if "OMP_NUM_THREADS" not in os.environ:
        assert ray.get(
            [
                threads.remote(),
                threads.options(num_cpus=3).remote(),
                threads.options(num_cpus=0).remote(),
            ]
        ) == ["1", "3", "1"]


def test_the_task_name_of_a_thread_without_a_task():
    @ray.remote
    def in_a_thread():
        import concurrent.futures

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(ray.get_runtime_context().get_task_name).result()

    assert ray.get([in_a_thread.remote(), in_a_thread.options(name="named").remote()]) == ["", ""]
    # A driver runs no task.
    assert ray.get_runtime_context().get_task_name() is None


def test_a_task_knows_its_names_ids_and_resources():
    @ray.remote
    def facts():
        context = ray.get_runtime_context()
        return (
            context.get_task_id(),
            context.get_actor_id(),
            context.get_task_name(),
            context.get_task_function_name(),
            context.get_assigned_resources(),
            context.get_job_id(),
            context.get_worker_id(),
        )

    ref = facts.remote()
    task, actor, name, function, resources, job, worker = ray.get(ref)
    assert (
        task == ref.task_id().hex()
        and actor is None
        and resources == {"CPU": 1.0}
        and job == ray.get_runtime_context().get_job_id()
    )
    assert (
        name == "facts"
        and function == "test_tasks.facts"
        and worker != ray.get_runtime_context().get_worker_id()
    )
    assert ray.get(facts.options(name="other", num_cpus=0).remote())[2::2][:2] == ("other", {})
    assert ray.get_runtime_context().get_task_id() is None
