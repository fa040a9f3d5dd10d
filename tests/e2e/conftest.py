import pytest
from ports import free_port
from shell import Shell


@pytest.fixture
def shell():
    world = Shell()
    yield world
    world.stop()


@pytest.fixture(scope="module")
def running():
    """A world with a head of two CPUs, shared by a module's tests; `running.address` is its
    HOST:PORT."""
    world = Shell()
    world.port = free_port()
    world.address = f"127.0.0.1:{world.port}"
    world.ok(
        "start",
        "--head",
        f"--port={world.port}",
        "--num-cpus=2",
        "--object-store-memory=200000000",
        "--resources",
        '{"thing": 1.5}',
    )
    yield world
    world.stop()
