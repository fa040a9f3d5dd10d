"""Programs write and name things in bytes that are not UTF-8: nothing is lost by it."""

import os
import stat
import subprocess
import sys

import pytest

import ray
from ray.exceptions import ActorDiedError, RuntimeEnvSetupError, WorkerCrashedError
from ray.util import state

pytestmark = pytest.mark.usefixtures("cluster")

# The second one is longer than what is kept of it, and is cut within a character.
LAST_WORDS = {"a byte of Latin-1": b"caf\xe9\n", "a cut character": "é".encode() * 6000 + b"\n"}
SHOWN = {"a byte of Latin-1": "caf\ufffd", "a cut character": "éééé"}


@ray.remote(num_cpus=0, max_restarts=0)
class Dying:
    def pid(self):
        return os.getpid()

    def die(self, words):
        os.write(2, words)
        os._exit(1)


class DyingAtOnce:
    def __init__(self, words):
        os.write(2, words)
        os._exit(1)


@pytest.mark.parametrize("words", LAST_WORDS)
def test_the_death_of_an_actor_is_told(words):
    actor = Dying.remote()
    pid = ray.get(actor.pid.remote())
    with pytest.raises(ActorDiedError):
        ray.get(actor.die.remote(LAST_WORDS[words]), timeout=120)
    with pytest.raises(ActorDiedError):
        ray.get(actor.pid.remote(), timeout=120)
    [row] = state.list_actors(filters=[("pid", "=", pid)])
    assert row.state == "DEAD"
    assert state.list_workers(), "the node's answer was not read"


@pytest.mark.parametrize("words", LAST_WORDS)
def test_an_actor_that_dies_starts_again(words, tmp_path):
    mark = tmp_path / "died"

    @ray.remote(num_cpus=0, max_restarts=1, max_task_retries=1)
    class Again:
        def die_once(self):
            if mark.exists():
                return "again"
            mark.touch()
            os.write(2, LAST_WORDS[words])
            os._exit(1)

    assert ray.get(Again.remote().die_once.remote(), timeout=120) == "again"


@pytest.mark.parametrize("words", LAST_WORDS)
def test_a_task_and_a_constructor_that_die_show_their_last_words(words):
    @ray.remote(num_cpus=0, max_retries=0)
    def die():
        os.write(2, LAST_WORDS[words])
        os._exit(1)

    with pytest.raises(WorkerCrashedError) as crashed:
        ray.get(die.remote(), timeout=120)
    assert SHOWN[words] in str(crashed.value)
    never = ray.remote(num_cpus=0)(DyingAtOnce).remote(LAST_WORDS[words])
    with pytest.raises(ActorDiedError) as died:
        ray.get(never.__ray_ready__.remote(), timeout=120)
    assert SHOWN[words] in str(died.value)


def test_a_worker_that_cannot_start_fails_its_tasks(tmp_path):
    program = tmp_path / "python"
    program.write_bytes(b"#!/bin/sh\nprintf 'caf\\351\\n' >&2\nexit 5\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)

    @ray.remote(num_cpus=0, runtime_env={"py_executable": str(program)})
    def never():
        pass

    with pytest.raises(RuntimeEnvSetupError, match="caf\ufffd"):
        ray.get(never.remote(), timeout=120)


PROGRAM = """
import sys, ray, beside
ray.init(address="auto", log_to_driver=False)

@ray.remote(num_cpus=0)
def f():
    import beside
    return beside.VALUE

assert ray.get(f.remote(), timeout=120) == "found"
print(ascii(sys.argv[1]))
"""


def test_a_driver_in_a_directory_and_with_words_of_any_bytes(tmp_path, cluster):
    here = os.fsencode(tmp_path) + b"/d\xff"
    os.mkdir(here)
    for name, text in ((b"program.py", PROGRAM), (b"beside.py", "VALUE = 'found'")):
        with open(here + b"/" + name, "w") as file:
            file.write(text)
    done = subprocess.run(
        [sys.executable, b"program.py", b"w\xff"],
        cwd=here,
        env={**os.environ, "RAY_ADDRESS": cluster.address_info["address"]},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "'w\\udcff'\n"


@pytest.mark.parametrize(
    "use",
    [
        lambda: Dying.options(name="\udc80").remote(),
        lambda: ray.get_actor("\udc80"),
        lambda: ray.remote(max)._remote(args=(1, 2), name="\udc80"),
        lambda: Dying.options(runtime_env={"env_vars": {"\udcff": "x"}}).remote(),
        lambda: Dying.options(runtime_env={"py_executable": "/p\udcff/python"}).remote(),
    ],
    ids=["actor", "get_actor", "task", "variable", "environment"],
)
def test_a_name_that_is_no_text_is_refused(use):
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        use()


def test_an_actor_whose_name_has_a_null_character_is_found():
    actor = Dying.options(name="\0null").remote()
    assert ray.get(ray.get_actor("\0null").pid.remote()) == ray.get(actor.pid.remote())
