"""Spreads the tests of a run over processes (scripts/test), and sees to it that none is lost."""

import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading

import pytest

sys.path.append(str(pathlib.Path(__file__).parent / "support"))

import train_extras

TURNS = ("e2e", "python", "conformance")
collected, finished, lost_processes = set(), set(), []


def pytest_configure(config):
    # A shell's background jobs ignore SIGINT, and so would the programs that tests start.
    take_pythons_handler_of_sigint()
    config.addinivalue_line(
        "markers", "alone(reason): runs when no other test does, because it measures the machine"
    )
    config.addinivalue_line("markers", "xdist_group(name): tests of a group run in one process")
    config.addinivalue_line(
        "markers", "train_extras: needs a newer PyTorch than Debian's (scripts/train_extras)"
    )


# This comes before other hooks, since the fixtures of such a test need the packages, too.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if item.get_closest_marker("train_extras") and (reason := train_extras.reason_to_skip()):
        pytest.skip(reason)


def take_pythons_handler_of_sigint():
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    # fit() of ray.train leaves its handler in place, as Ray does; other tests expect Python's.
    take_pythons_handler_of_sigint()
    if nextitem is None or nextitem.path != item.path:
        leave_no_session(item)


def leave_no_session(item):
    """Fails the last test of a module whose session goes on: the modules that run in this process
    after it would use that session, or could not start their own."""
    ray = sys.modules.get("ray")
    if ray and ray.is_initialized():
        ray.shutdown()
        pytest.fail(f"{item.path.name} left this process in a session: it must call ray.shutdown()")


@pytest.fixture(scope="session", autouse=True)
def home():
    """Gives each process that runs tests a home directory: tests keep a cluster's token there, and
    must not touch the token of the person who runs them."""
    before = pathlib.Path.home()
    # These directories say where packages come from, which stays as it is.
    for directory in (".config/pip", ".pip"):
        if (before / directory / "pip.conf").exists():
            os.environ.setdefault("PIP_CONFIG_FILE", str(before / directory / "pip.conf"))
    made = tempfile.mkdtemp(prefix="rt-home-")
    os.environ["HOME"] = made
    yield made
    os.environ["HOME"] = str(before)
    shutil.rmtree(made, ignore_errors=True)


def shares_a_fixture(item):
    """Returns whether the test uses a fixture that is made once for several tests, a cluster most
    of the time."""
    return any(
        definitions[-1].scope in ("module", "class", "package")
        for definitions in item._fixtureinfo.name2fixturedefs.values()
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """In a process of pytest-xdist: tests that share a fixture stay together, every other test may
    run in any process. Groups come first, and the many short programs of conformance/ last: so all
    processes end at about the same time."""
    if not hasattr(config, "workerinput"):
        return
    for item in items:
        if shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(pathlib.Path(item.fspath).stem))

    def turn(item):
        directory = pathlib.Path(item.fspath).parent.name
        return (
            item.get_closest_marker("xdist_group") is None,
            TURNS.index(directory) if directory in TURNS else 0,
        )

    items.sort(key=turn)


# The hooks below run in the process that collects the results.


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids):
    collected.update(ids)


def pytest_runtest_logfinish(nodeid):
    finished.add(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    if error:
        lost_processes.append(f"{node.gateway.id}: {error}")


def pytest_sessionfinish(session):
    """Fails the run if a process crashed between two tests, or if nobody ran a test."""
    if (lost_processes or collected - finished) and session.exitstatus == 0:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    for process in lost_processes:
        terminalreporter.write_line(f"a process that runs tests ended: {process}")
    for name in sorted(collected - finished):
        terminalreporter.write_line(f"did not run to its end: {name}")
