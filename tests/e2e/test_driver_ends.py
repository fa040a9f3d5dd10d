"""Drivers that end, by whatever means, leave nothing on any node."""

import signal
import subprocess
import sys
import textwrap
import time
import pytest
import ray
from census import shared_memory
from cluster import alive, cluster, world
from waiting import eventually


BUSY_DRIVER = """
    import os, threading, time, numpy, ray
    ray.init({init})
    @ray.remote(scheduling_strategy="SPREAD")
    def busy():
        threading.Event().wait()
    @ray.remote
    class Holder:
        def __init__(self):
            self.held = ray.put(numpy.ones(1_000_000))
        def ready(self):
            return True
    holder = Holder.options(num_cpus=0).remote()
    ray.get(holder.ready.remote())
    mine = ray.put(numpy.ones(1_000_000))
    refs = [busy.remote() for _ in range(20)]
    while ray.available_resources().get("CPU", 0):
        time.sleep(0.02)
    print("ready", flush=True)
    ray.get(refs)
"""


def await_line(process, text):
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"the program ended with {process.wait()} before it said {text!r}")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_driver_that_ends_leaves_nothing_on_any_node(how):
    with cluster(cpus=2) as c:
        c.join(cpus=2)
        c.await_nodes(2)
        before = set(c.processes())
        driver = c.program(BUSY_DRIVER.format(init=""))
        await_line(driver, "ready")
        assert eventually(lambda: ray.available_resources().get("CPU", 0) == 0)
        busy = set(c.processes())
        driver.send_signal(how)
        driver.communicate(timeout=60)
        assert driver.returncode != 0
        c.await_idle()
        workers = busy - before - {driver.pid}
        assert eventually(lambda: not [pid for pid in workers if alive(pid)]), "its workers end"
        # The stores are free, too: each takes an object that nearly fills it.
        fill = ray.remote(scheduling_strategy="SPREAD")(lambda: bytearray(80_000_000))
        assert len(ray.get(fill.remote(), timeout=120)) == 80_000_000
        assert len(ray.put(bytearray(1_000_000)).hex()) > 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_private_cluster_ends_with_its_driver(how):
    with world() as shell:
        program = textwrap.dedent(BUSY_DRIVER.format(init="num_cpus=3"))
        driver = subprocess.Popen(
            [sys.executable, "-c", program],
            env=shell.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        await_line(driver, "ready")
        assert len(shell.processes()) >= 8
        driver.send_signal(how)
        driver.wait(timeout=60)
        assert eventually(lambda: not shell.processes()), shell.processes()
        driver.stdout.close()


def test_twenty_drivers_at_once():
    with cluster(cpus=2) as c:
        drivers = [
            c.program(f"""
            import ray
            ray.init()
            @ray.remote
            def square(x):
                return x * x
            @ray.remote
            class Sum:
                def __init__(self):
                    self.total = 0
                def add(self, x):
                    self.total += x
                    return self.total
            adder = Sum.options(num_cpus=0, name="sum{number}").remote()
            values = ray.get([square.remote(i + {number}) for i in range(100)], timeout=100)
            assert values == [(i + {number}) ** 2 for i in range(100)]
            totals = ray.get([adder.add.remote(v) for v in values], timeout=100)
            print("total", totals[-1])
        """)
            for number in range(20)
        ]
        for number, driver in enumerate(drivers):
            said = driver.communicate(timeout=120)[0]
            assert (
                driver.returncode == 0
                and f"total {sum((i + number) ** 2 for i in range(100))}" in said
            ), said
        c.await_idle()


def test_ctrl_c_in_get_at_any_moment():
    """One program is interrupted in get after ever longer times and goes on. Other programs die of
    the interruption."""
    with cluster(cpus=2) as c:
        driver = c.program("""
            import os, signal, threading, time, ray
            ray.init()
            @ray.remote
            def nap(seconds):
                time.sleep(seconds)
                return seconds
            interrupted = 0
            for i in range(40):
                refs = [nap.remote(0.01) for _ in range(10)] + [nap.remote(0.2)]
                try:
                    timer = threading.Timer(i * 0.005, os.kill, (os.getpid(), signal.SIGINT))
                    timer.start()
                    ray.get(refs)
                    time.sleep(5)
                except KeyboardInterrupt:
                    interrupted += 1
                timer.join()
                if i % 10 == 0:
                    assert ray.get(refs, timeout=120) == [0.01] * 10 + [0.2]
                del refs
            print("interrupted", interrupted, ray.get(nap.remote(0), timeout=120))
        """)
        said = driver.communicate(timeout=120)[0]
        assert driver.returncode == 0 and "interrupted 40 0" in said, said
        for delay in (0, 0.01, 0.1, 0.5):
            driver = c.program(BUSY_DRIVER.format(init=""))
            await_line(driver, "ready")
            time.sleep(delay)
            driver.send_signal(signal.SIGINT)
            said = driver.communicate(timeout=120)[0]
            assert driver.returncode != 0 and "KeyboardInterrupt" in said, said
        c.await_idle()


def test_stop_during_load_leaves_nothing():
    with cluster(cpus=2, connect=False) as c:
        c.join(cpus=2)
        drivers = [c.program(BUSY_DRIVER.format(init="")) for _ in range(3)]
        shared = shared_memory()
        for driver in drivers:
            await_line(driver, "ready")
        c.shell.ok("stop")
        for driver in drivers:
            said = driver.communicate(timeout=120)[0]
            assert driver.returncode != 0, said
        assert eventually(lambda: not c.processes()), c.processes()
        assert not list(c.shell.root.glob("session_2*/sockets/*"))
        assert shared_memory() <= shared
