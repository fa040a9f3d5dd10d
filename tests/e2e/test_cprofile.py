"""cProfile counts the calls of drivers, tasks and actors' methods, as in any Python program."""

import re

import pytest
from cluster import cluster


@pytest.fixture(scope="module")
def running():
    with cluster(cpus=4, connect=False) as made:
        yield made


PROGRAM = """
import cProfile, io, pstats, time
import ray

ray.init()

@ray.remote
def func():
    time.sleep(0.01)

@ray.remote
class Sleeper:
    def actor_func(self):
        time.sleep(0.01)

    def profiled(self, times):
        profile = cProfile.Profile()
        profile.runcall(lambda: [self.actor_func() for _ in range(times)])
        return table_of(profile)

@ray.remote
def profiled_task(times):
    profile = cProfile.Profile()
    profile.runcall(lambda: [inner(i) for i in range(times)])
    return table_of(profile)

def inner(i):
    return ray.get(ray.put(i))

def table_of(profile):
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats()
    return text.getvalue()

def ex1():
    for _ in range(5):
        ray.get(func.remote())

def ex4():
    actor = Sleeper.remote()
    ray.get([actor.actor_func.remote() for _ in range(5)])

def main():
    for name, run in (("ex1", lambda: cProfile.run("ex1()")), ("ex4", lambda: cProfile.run("ex4()")), ("task", lambda: print(ray.get(profiled_task.remote(6)))),
                      ("actor", lambda: print(ray.get(Sleeper.remote().profiled.remote(7))))):
        print("#", name)
        run()

if __name__ == "__main__":
    main()
"""


REMOTE, GET = (
    "{method 'remote' of 'ray._raylet.FunctionBase' objects}",
    "{built-in method ray._raylet.get}",
)


def calls(table, function):
    """Returns how often a function was called. function: the end of the name in the table's
    line."""
    found = re.findall(rf"(?m)^\s*(\d+)(?:/\d+)?\s.*{re.escape(function)}$", table)
    assert found, f"no line of {function}:\n{table}"
    return max(map(int, found))


def test_the_tables_of_drivers_tasks_and_actors(running):
    program = running.program(PROGRAM)
    text, _ = program.communicate(timeout=120)
    assert program.returncode == 0, text
    _, ex1, ex4, task, actor = re.split(r"(?m)^# \w+$", text)
    for table in (ex1, ex4, task, actor):
        assert (
            re.search(r"\d+ function calls .*in \d+\.\d+ seconds", table)
            and "ncalls  tottime  percall  cumtime  percall filename:lineno(function)" in table
        ), table
    # The profile shows at once what is slow: five calls of get one after the other, against one
    # call for five refs.
    assert [calls(ex1, name) for name in ("(ex1)", REMOTE, GET)] == [1, 5, 5]
    assert [calls(ex4, name) for name in ("(ex4)", GET)] == [1, 1]
    assert [calls(task, name) for name in ("(inner)", "(put)", GET)] == [6, 6, 6]
    assert [calls(actor, name) for name in ("(actor_func)", "{built-in method time.sleep}")] == [
        7,
        7,
    ]
