import logging
import os
import shutil
import tempfile

import pytest

for name in ("RAY_ADDRESS", "RAY_NAMESPACE", "RAY_JOB_CONFIG_JSON_ENV_VAR"):
    os.environ.pop(name, None)


@pytest.fixture(scope="session", autouse=True)
def temp_root():
    # The path must be short, because Unix sockets are made below it.
    root = tempfile.mkdtemp(prefix="rt-", dir="/tmp")
    os.environ["RAY_TMPDIR"] = root
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster():
    """A local cluster of 4 CPUs, shared by a module's tests."""
    import ray

    context = ray.init(num_cpus=4, resources={"thing": 2})
    yield context
    ray.shutdown(wait_for_processes=True)


@pytest.fixture
def no_cluster():
    """Shuts down a cluster of earlier tests, for tests that call ray.init() themselves."""
    import ray

    ray.shutdown()
    yield
    ray.shutdown(wait_for_processes=True)


@pytest.fixture
def own_root(no_cluster, monkeypatch):
    """A temp root for one test that kills drivers of clusters or looks for what they left. A killed
    driver leaves its address behind, and other tests that look for a cluster must not find it."""
    import ray

    root = tempfile.mkdtemp(prefix="rt-", dir="/tmp")
    monkeypatch.setenv("RAY_TMPDIR", root)
    yield root
    ray.shutdown(wait_for_processes=True)
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def caplog(caplog):
    """Makes caplog hear the logger "ray", too, which does not propagate."""
    logger = logging.getLogger("ray")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)
