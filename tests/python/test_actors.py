"""Actors: state, order, names, lifetimes, restarts, threads."""

import functools
import os
import threading

import pytest

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError
from waiting import touch, until, wait_for

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
class Counter:
    """Counts its calls."""

    def __init__(self, start=0):
        self.n = start

    def add(self, k=1):
        self.n += k
        return self.n

    def pid(self):
        return os.getpid()

    def boom(self):
        raise KeyError("in the actor")

    @ray.method(num_returns=2)
    def two(self):
        return 1, 2

    def die(self):
        os._exit(3)

    def leave(self):
        ray.actor.exit_actor()

    @staticmethod
    def twice(x):
        return 2 * x


def gone(actor, method="add"):
    """Waits until calls fail for good; returns the error."""

    def last_error():
        try:
            ray.get(getattr(actor, method).remote(), timeout=60)
        except (ActorDiedError, ActorUnavailableError) as error:
            return error

    return until(last_error, lambda error: isinstance(error, ActorDiedError))


def find_actor(name):
    try:
        return ray.get_actor(name)
    except ValueError:
        return None


def test_state_and_order():
    counter = Counter.remote(10)
    refs = [counter.add.remote() for _ in range(100)]
    assert ray.get(refs) == list(range(11, 111))
    assert ray.get(counter.add.remote(k=ray.put(5))) == 115
    assert ray.get(counter.two.remote()) == [1, 2]
    assert ray.get(counter.two.options(num_returns=1).remote()) == (1, 2)
    assert ray.get(counter.twice.remote(4)) == 8
    assert repr(counter) == f"Actor(Counter, {counter._actor_id.hex()})"
    assert "add" in dir(counter) and Counter.__doc__ == "Counts its calls."


def test_calls_of_several_callers_wait_for_an_argument_in_the_store():
    """A call whose argument is being fetched holds up later calls of its caller, not of others."""

    @ray.remote(num_cpus=0)
    class Log:
        def __init__(self):
            self.seen = []

        def add(self, entry, _=None):
            self.seen.append(entry)

        def all(self):
            return self.seen

    @ray.remote(num_cpus=0)
    class Caller:
        def call(self, log, name, count):
            large = ray.put(bytes(200_000))
            calls = [
                log.add.remote((name, k), *([large] if k % 3 == 0 else [])) for k in range(count)
            ]
            ray.get(calls, timeout=60)

    log, callers = Log.remote(), [Caller.remote() for _ in range(3)]
    ray.get(log.all.remote(), timeout=60)
    names, count = range(len(callers)), 60
    ray.get([c.call.remote(log, name, count) for name, c in zip(names, callers)], timeout=60)
    seen = ray.get(log.all.remote(), timeout=60)
    for name in names:
        assert [k for other, k in seen if other == name] == list(range(count))


def test_misused_handles_raise_errors():
    counter = Counter.remote()
    with pytest.raises(AttributeError):
        counter.nothing
    with pytest.raises(TypeError):
        counter.add()
    with pytest.raises(TypeError):
        counter.add.remote(1, 2)
    with pytest.raises(TypeError):
        Counter.remote(1, 2)
    with pytest.raises(TypeError):
        counter.add.options(colour="red")
    with pytest.raises(TypeError):
        counter.add.options(num_cpus=1)
    with pytest.raises(ValueError):
        ray.kill("actor")
    with pytest.raises(TypeError):
        ray.actor.exit_actor()


@pytest.mark.parametrize("options", [{"name": ""}, {"namespace": ""}, {"num_gpus": 1.5}])
def test_options_refused_when_an_actor_is_created(options):
    accepted = Counter.options(**options)
    with pytest.raises(ValueError):
        accepted.remote()


def test_zero_stands_for_the_default():
    actor = Counter.options(max_concurrency=0, max_pending_calls=0).remote()
    assert ray.get([actor.__ray_ready__.remote() for _ in range(10)]) == [True] * 10


def test_errors_leave_the_actor_alive():
    counter = Counter.remote()
    with pytest.raises(KeyError) as error:
        ray.get(counter.boom.remote())
    text = str(error.value)
    assert "ray::Counter.boom()" in text and "actor_id=" in text and "in the actor" in text
    assert ray.get(counter.add.remote()) == 1


def test_handles_travel():
    counter = Counter.remote()

    @ray.remote
    def work(actors):
        return ray.get([a.add.remote() for a in actors])

    assert ray.get(work.remote([counter])) == [1]
    assert ray.get(work.remote([counter, counter])) == [2, 3]
    assert ray.get(ray.get(ray.put(counter)).add.remote()) == 4

    @ray.remote
    def call(method):
        return ray.get(method.remote())

    assert ray.get(call.remote(counter.add)) == 5


def test_a_name_finds_its_actor_within_a_namespace():
    counter = Counter.options(name="named").remote(5)
    assert ray.get(ray.get_actor("named").add.remote()) == 6
    assert ray.get_actor("named") == counter and hash(ray.get_actor("named")) == hash(counter)
    with pytest.raises(ValueError):
        Counter.options(name="named").remote()
    again = Counter.options(name="named", get_if_exists=True).remote(100)
    assert again == counter and ray.get(again.add.remote()) == 7
    assert "named" in ray.util.list_named_actors()
    with pytest.raises(ValueError):
        ray.get_actor("named", namespace="elsewhere")
    other = Counter.options(name="named", namespace="elsewhere").remote()
    assert other != counter and ray.get_actor("named", namespace="elsewhere") == other
    for bad, error in (("", ValueError), ("nobody", ValueError)):
        with pytest.raises(error):
            ray.get_actor(bad)
    with pytest.raises(TypeError):
        ray.get_actor("named", namespace=3)

    @ray.remote
    def inside():
        return ray.get(ray.get_actor("named").add.remote())

    assert ray.get(inside.remote()) == 8


def test_a_killed_actor_says_so_and_its_name_is_free():
    counter = Counter.options(name="victim").remote()
    ray.get(counter.add.remote())
    ray.kill(counter)
    error = gone(counter)
    assert "The actor died unexpectedly before finishing this task." in str(
        error
    ) and "ray.kill" in str(error)
    assert counter._actor_id.hex() in str(error)
    until(lambda: not find_actor("victim"))


def test_actors_that_leave_finish_earlier_calls_and_stay_dead():
    counter = Counter.options(max_restarts=5).remote()
    with pytest.raises(ActorDiedError):
        ray.get(counter.leave.remote())
    gone(counter)
    terminated = Counter.remote()
    refs = [terminated.add.remote() for _ in range(10)]
    terminated.__ray_terminate__.remote()
    assert ray.get(refs)[-1] == 10
    gone(terminated)


def test_builtin_methods():
    counter = Counter.remote(3)
    assert ray.get(counter.__ray_ready__.remote()) is True
    assert ray.get(counter.__ray_call__.remote(lambda self, k: self.n * k, 4)) == 12


def test_constructor_failure():
    @ray.remote
    class Bad:
        def __init__(self):
            raise RuntimeError("no start")

        def method(self):
            pass

    bad = Bad.remote()
    with pytest.raises(ActorDiedError, match="no start") as error:
        ray.get(bad.method.remote(), timeout=120)
    assert error.value.actor_init_failed


def test_an_actor_is_restarted_as_often_as_it_may_be():
    counter = Counter.options(max_restarts=1, max_task_retries=-1).remote()
    assert ray.get([counter.add.remote() for _ in range(3)]) == [1, 2, 3]
    first = ray.get(counter.pid.remote())
    os.kill(first, 9)
    assert ray.get(counter.pid.remote(), timeout=120) != first
    assert ray.get(counter.add.remote()) == 1
    os.kill(ray.get(counter.pid.remote()), 9)
    gone(counter)


def test_death_without_restarts():
    counter = Counter.remote()
    with pytest.raises(RayActorError):
        ray.get(counter.die.remote(), timeout=120)
    assert "3" in str(gone(counter))


def test_out_of_scope():
    pid = ray.get(Counter.remote().pid.remote())
    until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_resources_of_actors():
    @ray.remote(num_cpus=2)
    class Holder:
        def resources(self):
            return ray.get_runtime_context().get_assigned_resources()

    plain = Counter.remote()
    ray.get(plain.add.remote())
    holder = Holder.remote()
    assert ray.get(holder.resources.remote()) == {"CPU": 2.0}
    until(lambda: ray.available_resources().get("CPU"), lambda free: free == 2.0)


def test_max_concurrency_lets_methods_run_at_once():
    @ray.remote(max_concurrency=4)
    class Threaded:
        def __init__(self):
            self.all_are_here = threading.Barrier(4)

        def meet(self):
            self.all_are_here.wait(60)
            return threading.get_ident()

    actor = Threaded.remote()
    assert len(set(ray.get([actor.meet.remote() for _ in range(4)]))) == 4


def test_pending_calls_limit(tmp_path):
    @ray.remote(max_pending_calls=2)
    class Slow:
        def work(self):
            wait_for(tmp_path / "gate")

    slow = Slow.remote()
    calls = [slow.work.remote(), slow.work.remote()]
    with pytest.raises(ray.exceptions.PendingCallsLimitExceeded):
        slow.work.remote()
    touch(tmp_path / "gate")
    ray.get(calls)


def test_context_in_actors():
    @ray.remote
    class Self:
        def facts(self):
            context = ray.get_runtime_context()
            return (
                context.get_actor_id(),
                context.get_task_name(),
                context.current_actor,
                context.was_current_actor_reconstructed,
            )

    actor = Self.remote()
    actor_id, name, handle, restarted = ray.get(actor.facts.remote())
    assert (
        actor_id == actor._actor_id.hex()
        and name == "Self.facts"
        and handle == actor
        and restarted is False
    )


def test_an_attribute_with_a_methods_name_does_not_hide_the_method():
    @ray.remote
    class Hiding:
        def __init__(self):
            self.value = 3
            self.static = self.by_class = self.partial = None

        def value(self):
            return self.value

        @staticmethod
        def static(x):
            return x

        @classmethod
        def by_class(cls, x):
            return cls.__name__, x

        partial = functools.partialmethod(lambda self, x: (self.value, x), 5)

    actor = Hiding.remote()
    assert ray.get(actor.value.remote()) == 3
    assert ray.get(actor.static.remote(4)) == 4
    assert ray.get(actor.by_class.remote(4)) == ("Hiding", 4)
    assert ray.get(actor.partial.remote()) == (3, 5)


def test_the_task_name_of_a_constructor_has_the_name_of_its_actor():
    @ray.remote
    class Built:
        def __init__(self):
            self.by = ray.get_runtime_context().get_task_name()

        def names(self):
            return self.by, ray.get_runtime_context().get_task_name()

    assert ray.get(Built.remote().names.remote()) == ("Built.__init__", "Built.names")
    named = Built.options(name="built").remote()
    assert ray.get(named.names.remote()) == ("built:Built.__init__", "Built.names")


def test_actor_pool_maps_over_its_actors():
    pool = ray.util.ActorPool([Counter.remote() for _ in range(2)])
    assert list(pool.map(lambda a, v: a.twice.remote(v), range(6))) == [0, 2, 4, 6, 8, 10]
    assert sorted(pool.map_unordered(lambda a, v: a.twice.remote(v), range(6))) == [
        0,
        2,
        4,
        6,
        8,
        10,
    ]
    with pytest.raises(StopIteration):
        pool.get_next()


def test_classes_that_retry_exceptions_names_travel_with_handles():
    class Flaky(Exception):
        pass

    @ray.remote(max_task_retries=3)
    class Tries:
        def __init__(self):
            self.tries = 0

        @ray.method(retry_exceptions=[Flaky])
        def third_time(self):
            self.tries += 1
            if self.tries < 3:
                raise Flaky
            return self.tries

    @ray.remote
    def call(actor):
        return ray.get(actor.third_time.remote())

    assert ray.get(call.remote(Tries.remote())) == 3
