"""Full and read-only places: the session directory, and the memory of the object store. The tests
mount tiny file systems, which needs root."""

import contextlib
import json
import os
import re
import subprocess

import pytest
from cluster import kill
from ports import free_port
from waiting import eventually, until
from http_api import Api

from driver import Driver

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts file systems")


@pytest.fixture
def place(shell):
    """An empty directory for mounts. It is unmounted after the processes that use it have ended."""
    path = shell.scratch / "place"
    path.mkdir()
    yield path
    shell.run("stop", "--force", RAY_TMPDIR=str(path))
    while subprocess.run(["umount", "-l", path], capture_output=True).returncode == 0:
        pass


def tmpfs(path, size):
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "none", path], check=True
    )


def fill(path):
    """Takes all space of a file system. Whoever unlinks the returned file gives the space back."""
    file = path / "fill"
    with contextlib.suppress(OSError), open(file, "wb", buffering=0) as out:
        while True:
            out.write(bytes(1 << 16))
    return file


def start_fails(shell, place, *said):
    message = shell.fails("start", "--head", "--port=0", f"--temp-dir={place}")
    with contextlib.closing(Driver(shell, init=None)) as driver:
        raised = driver.raises(f"ray.init(num_cpus=1, _temp_dir={str(place)!r})", "RayError")
    for text in said:
        assert text in message and text in raised
    assert not shell.processes()


def test_a_read_only_session_directory(shell, place):
    subprocess.run(["mount", "--bind", place, place], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
    start_fails(shell, place, "Read-only file system", str(place), "--temp-dir or RAY_TMPDIR")
    start_fails(shell, place / "below", "Read-only file system")


def test_a_full_session_directory(shell, place):
    tmpfs(place, "256k")
    start_fails(
        shell, place, "No space left on device", "free some space", "--temp-dir or RAY_TMPDIR"
    )
    assert not [path for path in place.rglob("*") if not path.is_symlink()], (
        "a failed start left something"
    )


def test_a_place_that_is_no_directory(shell, place):
    (place / "file").touch()
    start_fails(shell, place / "file", "Not a directory", "--temp-dir")


def test_the_session_directory_fills_up(shell, place):
    """Tasks run on, including those that print. Writes that must be durable are refused with the
    reason. Once there is room again, everything works."""
    tmpfs(place, "20m")
    with contextlib.closing(
        Driver(
            shell,
            f"ray.init(num_cpus=2, object_store_memory=100_000_000, _temp_dir={str(place)!r})",
        )
    ) as driver:
        driver.run(
            "@ray.remote\ndef says(n):\n    for i in range(n): print('line', i)\n    return n"
        )
        assert driver.works() and driver.run("ray.get(says.remote(10))") == 10
        filled = fill(place)
        assert driver.works()
        assert (
            driver.run("ray.get([says.remote(5000) for _ in range(4)], timeout=120)") == [5000] * 4
        )
        for code in (
            "Counter.options(num_cpus=0, name='named').remote()",
            "ray.get(Counter.options(num_cpus=0).remote().add.remote(), timeout=120)",
        ):
            said = driver.raises(code, "RayError")
            assert "no space left" in said and str(place) in said and "Free space" in said
        assert driver.works() and driver.run("ray.cluster_resources()['CPU']") == 2.0
        filled.unlink()
        driver.run("kept = Counter.options(num_cpus=0, name='named').remote()")
        assert driver.run("ray.get(ray.get_actor('named').add.remote(), timeout=120)") == 1
        assert driver.run("ray.get(says.remote(3), timeout=120)") == 3 and driver.works()


def test_failing_storage_is_no_health(shell, place):
    """Every question about the head's health answers that its storage is failing, in the same
    words, until the disk takes a write again."""
    tmpfs(place, "20m")
    env = {"RAY_TMPDIR": str(place)}
    started = shell.ok(
        "start",
        "--head",
        "--port=0",
        "--num-cpus=1",
        "--object-store-memory=100000000",
        f"--temp-dir={place}",
        **env,
    )
    env["RAY_ADDRESS"] = re.search(r"127\.0\.0\.1:\d+", started)[0]
    assert shell.ok("health-check", **env) == ""
    api = Api.of(shell, started)

    def asked(path):
        status, _, body = api.request("GET", path)
        return status, body.decode()

    filled = fill(place)
    refused = shell.fails("job", "submit", "--no-wait", "--", "true", **env)
    assert "no space left" in refused, refused
    said = shell.fails("health-check", **env)
    assert (
        said.count("\n") == 1
        and "storage is failing: the head's state cannot be written" in said
        and str(place) in said
        and "Free space there" in said
    ), said
    failure = said[said.index("storage is failing") :].strip()
    assert f"The head's {failure}\n" in shell.ok("status", **env)
    for path in ("/api/healthz", "/api/gcs_healthz", "/-/healthz"):
        # Without a token the answer does not name the directory.
        assert asked(path) == (
            503,
            "the head's storage is failing: `rayctl health-check` says why",
        )
    assert re.search(r"^ray_head_storage_failing\{.*\} 1(\.0)?$", asked("/metrics")[1], re.M)
    # health-check still fails, although nothing has been written since.
    assert failure in shell.fails("health-check", **env)
    filled.unlink()
    assert eventually(lambda: shell.run("health-check", **env).returncode == 0)
    assert "storage is failing" not in shell.ok("status", **env) and asked("/api/healthz") == (
        200,
        "success",
    )
    assert re.search(r"^ray_head_storage_failing\{.*\} 0(\.0)?$", asked("/metrics")[1], re.M)
    shell.ok("job", "submit", "--", "true", **env)


def test_the_session_directory_becomes_read_only(shell, place):
    """No process can make a file in the directory any more, but a new worker needs logs and a
    socket."""
    with contextlib.closing(
        Driver(
            shell,
            f"ray.init(num_cpus=2, object_store_memory=100_000_000, _temp_dir={str(place)!r})",
        )
    ) as driver:
        assert driver.works()
        session = next(path for path in place.glob("session_2*"))
        for name in ("logs", "sockets"):
            subprocess.run(["mount", "--bind", session / name, session / name], check=True)
            subprocess.run(["mount", "-o", "remount,ro,bind", session / name], check=True)
        assert driver.works()
        for name in ("sockets", "logs"):
            subprocess.run(["umount", "-l", session / name], check=True)
        assert driver.run(
            "ray.get([echo.options(num_cpus=0).remote(i) for i in range(20)], timeout=120)"
        ) == list(range(20))
        assert driver.works()


def test_the_memory_of_the_store_is_used_up_by_others(shell, place):
    """With a full /dev/shm puts fail and the error names who holds what, while no process dies of
    SIGBUS. Once there is room again, puts work."""
    tmpfs(place, "120m")
    init = f"ray.init(num_cpus=2, object_store_memory=100_000_000, _plasma_directory={str(place)!r}, _system_config={{'create_wait_ms': 1000}})"
    with contextlib.closing(Driver(shell, init)) as driver:
        driver.run("held = ray.put(np.ones(20_000_000, dtype=np.uint8))")
        filled = fill(place)
        for code in (
            "ray.put(np.ones(70_000_000, dtype=np.uint8))",
            "ray.get(ones.remote(70_000_000), timeout=120)",
        ):
            said = driver.raises(code, "ObjectStoreFullError")
            assert (
                f"file system of {place} is full" in said
                and f"(pid {driver.process.pid})" in said
                and "in 1 objects" in said
                and "Drop references" in said
            )
        assert driver.works() and driver.run("int(ray.get(held).sum())") == 20_000_000
        filled.unlink()
        assert (
            driver.run("int(ray.get(ray.put(np.ones(70_000_000, dtype=np.uint8))).sum())")
            == 70_000_000
        )
        assert (
            driver.run("int(ray.get(ones.remote(60_000_000), timeout=120).sum())") == 60_000_000
            and driver.works()
        )


def test_a_full_store_refuses_puts_and_names_the_holders(shell, place):
    init = "ray.init('local', num_cpus=2, object_store_memory=80_000_000, _system_config={'create_wait_ms': 500})"
    with contextlib.closing(Driver(shell, init)) as driver:
        driver.run("held = [ray.put(np.full(15_000_000, i, dtype=np.uint8)) for i in range(4)]")
        said = driver.raises(
            "[ray.put(np.zeros(15_000_000, dtype=np.uint8)) for _ in range(3)]",
            "ObjectStoreFullError",
        )
        assert (
            "is full" in said
            and f"(pid {driver.process.pid})" in said
            and "Drop references" in said
            and "--object-store-memory" in said
        )
        assert driver.works() and driver.run("[int(ray.get(ref)[0]) for ref in held]") == [
            0,
            1,
            2,
            3,
        ]
        driver.run("held.clear()")
        assert (
            driver.run("len([ray.put(np.zeros(15_000_000, dtype=np.uint8)) for _ in range(4)])")
            == 4
            and driver.works()
        )


@pytest.mark.parametrize(
    "size, words, said",
    [
        ("1m", [], "less than the smallest that is accepted"),
        ("90m", ["--object-store-memory=200000000"], "Free space there"),
    ],
)
def test_too_little_memory_for_the_store(shell, place, size, words, said):
    tmpfs(place, size)
    message = shell.fails("start", "--head", "--port=0", f"--plasma-directory={place}", *words)
    assert said in message and str(place) in message and "--object-store-memory" in message
    assert eventually(lambda: not shell.processes()), shell.processes()


class HeadOnSmallDisk:
    """A cluster whose disk fills up. Its head is then killed and started on a disk with room."""

    def __init__(self, shell, place):
        tmpfs(place, "20m")
        port = free_port()
        self.shell, self.place, self.address = shell, place, f"127.0.0.1:{port}"
        self.env = {"RAY_TMPDIR": str(place), "RAY_ADDRESS": self.address}
        self.start = ["start", "--head", f"--port={port}", "--num-cpus=1", f"--temp-dir={place}"]
        shell.ok(*self.start, "--dashboard-port=0", "--object-store-memory=100000000", **self.env)

    def fill(self):
        self.filled = fill(self.place)
        refused = ["job", "submit", "--no-wait", "--", "true"]
        until(lambda: self.shell.run(*refused, **self.env).returncode, bool)

    def next_head(self):
        record = json.loads(next(self.place.glob("session_2*/node_*.json")).read_text())
        kill(next(one["pid"] for one in record["processes"] if one["name"] == "ray-head"))
        self.filled.unlink()
        assert "Ray runtime continues" in self.shell.ok(*self.start, **self.env)


def test_a_job_that_ends_on_a_full_disk_has_ended_for_the_next_head(shell, place):
    """The node keeps the end of a job until the head has it on its disk."""
    cluster = HeadOnSmallDisk(shell, place)
    env = cluster.env
    go = shell.scratch / "go"
    waits = f"while ! test -e {go}; do sleep 0.02; done"
    shell.ok("job", "submit", "--no-wait", "--submission-id=late", "--", "sh", "-c", waits, **env)
    status = lambda: shell.ok("job", "status", "late", **env)
    until(status, lambda said: "RUNNING" in said)
    cluster.fill()
    go.touch()
    until(status, lambda said: "succeeded" in said)
    cluster.next_head()
    until(status, lambda said: "succeeded" in said)
    assert "deleted" in shell.ok("job", "delete", "late", **env)


def test_what_a_full_disk_did_not_take_of_actors_holds_for_the_next_head(shell, place):
    """An actor that was killed stays dead and leaves its name; one that was started again goes on
    with its state. The next head hears both from their node."""
    cluster = HeadOnSmallDisk(shell, place)
    with contextlib.closing(Driver(shell, f"ray.init({cluster.address!r})")) as driver:
        driver.run(
            "import os\n@ray.remote\nclass Immortal:\n"
            "    def set(self, value): self.value = value; return os.getpid()\n"
            "    def get(self): return self.value, os.getpid()\n"
            "kept = dict(num_cpus=0, max_restarts=-1, max_task_retries=-1, lifetime='detached')\n"
            "killed, again = [Immortal.options(name=n, **kept).remote() for n in ('killed', 'again')]"
        )
        first = driver.run("ray.get([one.set.remote('first') for one in (killed, again)])")
        cluster.fill()
        driver.run("ray.kill(killed)")
        until(lambda: driver.raises("ray.get(killed.get.remote(), timeout=120)", "RayActorError"))
        kill(first[1])
        second = driver.run("ray.get(again.set.remote('second'), timeout=120)")
        assert second not in first
        cluster.next_head()
        assert driver.run("ray.get(again.get.remote(), timeout=120)") == ("second", second)
        assert driver.run("ray.get(ray.get_actor('again').get.remote(), timeout=120)")[1] == second
        # Until the node has registered, the head knows of the actor only what its disk says.
        until(
            lambda: driver.run("ray.util.list_named_actors(all_namespaces=True)"),
            lambda named: [one["name"] for one in named] == ["again"],
        )
        driver.raises("ray.get_actor('killed')", "ValueError")
        driver.run("killed = Immortal.options(name='killed', **kept).remote()")
        assert driver.run("ray.get(killed.set.remote(1), timeout=120)") not in (*first, second)
        assert driver.works()
