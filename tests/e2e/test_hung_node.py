"""A node-manager is stopped (SIGSTOP), so that it neither answers nor ends. Every command answers
within its time-out with what it knows, and names the node."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from cluster import cluster, stopped, unread
from waiting import until

import ray

TIMEOUT_S = 4
# With the default, --timeout=30, a hung node costs 15 s.
LIMIT_S = 14
# This is Sources::kTroubledUs of the product.
TROUBLED_MS = 2500
# The head must not declare a stopped node dead.
PATIENT = {"node_timeout_ms": 600_000}


@ray.remote
def on_a_node():
    return ray.get_runtime_context().get_node_id()


@pytest.fixture(scope="module")
def hung_node():
    """A cluster of two nodes. The node-manager of the second one is stopped after a task has run on
    each node."""
    with cluster(settings=PATIENT) as c:
        c.second = c.join(resources={"second": 1})
        c.await_nodes(2)
        assert ray.get(on_a_node.remote()) == c.node_id(c.head_node)
        c.hung_id = ray.get(on_a_node.options(resources={"second": 1}).remote())
        c.object = ray.put(b"1" * 1_000_000)
        c.shell.ok(
            *("job", "submit", "--no-wait", "--submission-id=hangs", f"--address={c.address}"),
            *("--entrypoint-resources", '{"second": 1}', "--", "sleep", "600"),
        )
        hangs = ["job", "status", "hangs", f"--address={c.address}"]
        until(lambda: "RUNNING" in c.shell.ok(*hangs))
        with stopped(c.pid(c.second, "ray-node-manager")):
            yield c


# These commands ask every node.
STATE = {
    "list tasks": ["list", "tasks"],
    "list objects": ["list", "objects"],
    "list workers": ["list", "workers"],
    "list runtime-envs": ["list", "runtime-envs"],
    "get workers": ["get", "workers", "0" * 56],
    "summary tasks": ["summary", "tasks"],
    "summary objects": ["summary", "objects"],
    "memory": ["memory"],
    "memory --stats-only": ["memory", "--stats-only"],
    "stack": ["stack"],
    "profile": ["profile", "all", "--duration=0.1"],
    "debug": ["debug"],
    "metrics": ["metrics"],
}


@pytest.mark.parametrize("command", STATE)
def test_a_hung_node_is_a_warning(hung_node, command):
    c = hung_node
    done = c.shell.run(
        *STATE[command], f"--timeout={TIMEOUT_S}", f"--address={c.address}", timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    assert "Warning: " in done.stderr and c.hung_id[:8] in done.stderr, done.stderr


JOBS = {
    "timeline": ["timeline", "-o", "trace.json"],
    "job list": ["job", "list"],
    "job status": ["job", "status", "none"],
    "job stop": ["job", "stop", "none"],
    "job delete": ["job", "delete", "none"],
    "job logs": ["job", "logs", "none"],
}


@pytest.mark.parametrize("command", JOBS)
def test_commands_that_ask_only_the_head_do_not_wait_for_the_node(hung_node, command):
    c = hung_node
    words = [*JOBS[command], f"--timeout={TIMEOUT_S}", f"--address={c.address}"]
    if command in ("timeline", "job list"):
        c.shell.ok(*words)
    else:
        assert "none" in c.shell.fails(*words)


@pytest.mark.parametrize("command", ["logs", "stop"])
def test_commands_that_wait_for_the_node_of_a_job_name_it(hung_node, command):
    c = hung_node
    said = c.shell.fails(
        "job", command, "hangs", f"--timeout={TIMEOUT_S}", f"--address={c.address}"
    )
    assert f"node {c.hung_id} of job hangs has not answered" in said


def test_a_silent_node_is_shown_before_it_is_dead(hung_node):
    c = hung_node
    ok = ["--address", c.address]
    until(lambda: "has been silent" in c.shell.ok("status", *ok))
    done = c.shell.run("health-check", *ok)
    assert done.returncode == 0 and "has been silent" in done.stderr, (
        "a warning: it is not the head's"
    )
    assert "has been silent" in c.shell.fails("health-check", "--component=nodes", *ok)


@pytest.mark.parametrize("command", ["debug", "memory", "metrics", "list tasks", "stack"])
def test_a_node_that_is_known_to_hang_gets_no_half_of_the_default_time(hung_node, command):
    c = hung_node
    address = f"--address={c.address}"
    until(lambda: "has been silent" in c.shell.ok("status", address))
    said = c.shell.run(*STATE[command], address).stderr
    limits_ms = re.findall(r"no answer to the hello within (\d+) ms", said)
    assert c.hung_id[:8] in said and limits_ms, said
    assert all(int(limit) <= TROUBLED_MS for limit in limits_ms), said


def test_what_may_be_on_a_hung_node_is_not_simply_unknown(hung_node):
    c = hung_node
    words = [f"--timeout={TIMEOUT_S}", f"--address={c.address}"]
    said = c.shell.fails("stack", "somebody", *words)
    assert "nothing that runs is called 'somebody'" in said and c.hung_id[:8] in said


PAUSES = "import ray, signal; ray.init(); print('up', flush=True); signal.pause()"


def test_stacks_may_take_all_the_time_that_is_left():
    """On a busy machine it takes seconds to load the library that unwinds native frames. So a
    process may use all the time that is left, since nobody is asked after the processes."""
    with cluster(connect=False) as c:
        drivers = [c.program(PAUSES) for _ in range(2)]
        assert all(driver.stdout.readline() == "up\n" for driver in drivers)
        with stopped(drivers[0].pid), stopped(drivers[1].pid):
            timeout_s, began = 8, time.monotonic()
            said = c.shell.run("stack", f"--timeout={timeout_s}", f"--address={c.address}").stderr
            took_s = time.monotonic() - began
        for driver in drivers:
            driver.kill()
            driver.communicate()
        limits_ms = re.findall(r"within (\d+) ms", said)
        assert len(limits_ms) == 2 and all(str(driver.pid) in said for driver in drivers), said
        # Processes that get half of what is left end the command long before its time is over. A
        # busy machine shortens what is left for them, and never the whole.
        assert took_s >= timeout_s, said


DRIVER = """
import ray, signal
ray.init()
print("up", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("program", ["ray-node-manager", "ray-object-store"])
def test_drivers_are_told_when_another_node_hangs_and_when_it_is_well(program):
    """Each driver is told once, including a driver that starts while the node hangs."""
    # Nobody but the stopped process may be silent for this long, or drivers are told once more.
    quick = {"store_hung_after_ms": 2000} if program == "ray-object-store" else {}
    with cluster(connect=False, settings={**PATIENT, **quick}) as c:
        second = c.join()
        name = f"Node {c.node_id(second)[:8]} (127.0.0.1)"
        drivers, outputs = [], []

        def start():
            outputs.append(c.shell.scratch / f"driver-{len(outputs)}")
            with outputs[-1].open("w") as output:
                drivers.append(c.program(DRIVER, stdout=output))
            until(lambda: "up" in outputs[-1].read_text())

        def told(text):
            return [output.read_text().count(text) for output in outputs]

        try:
            start()
            with stopped(c.pid(second, program)):
                until(lambda: told(f"{name} does not work as it should: its "), [1].__eq__)
                start()
                until(lambda: told(f"{name} does not work as it should: its "), [1, 1].__eq__)
                assert told(f"{name} works again") == [0, 0]
            until(lambda: told(f"{name} works again.") == [1, 1])
            assert told(f"{name} does not work as it should") == [1, 1]
        finally:
            for driver in drivers:
                driver.kill()
                driver.wait()


def test_a_head_that_hangs_amid_a_question_costs_only_the_rest_of_the_answer():
    with cluster(connect=False) as c:
        driver = c.program(PAUSES)
        assert driver.stdout.readline() == "up\n"
        words = ("list", "tasks", "--timeout=6", f"--address={c.address}")
        door = c.records()[c.head_node]["node_manager_port"]
        with stopped(driver.pid), ThreadPoolExecutor() as pool:
            asked = pool.submit(c.shell.run, *words)
            # The command has the head's answers when it comes to the node-manager's port, and then
            # waits for the driver during half of its time.
            until(lambda: unread(door))
            with stopped(c.pid(c.head_node, "ray-head")):
                done = asked.result()
        driver.kill()
        driver.communicate()
    assert done.returncode == 0, done
    assert "the rest of the history of tasks" in done.stderr and str(driver.pid) in done.stderr
