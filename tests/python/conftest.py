import logging
import os
import shutil
import tempfile

import pytest

for name in ("RAY_ADDRESS", "RAY_NAMESPACE", "RAY_JOB_CONFIG_JSON_ENV_VAR"):
    os.environ.pop(name, None)


@pytest.fixture(scope="session", autouse=True)
def temp_root():
    # Short: the paths of Unix sockets are limited.
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
    """For tests that call ray.init() themselves."""
    import ray

    ray.shutdown()
    yield
    ray.shutdown(wait_for_processes=True)


@pytest.fixture
def own_root(no_cluster, monkeypatch):
    """A temp root for one test that kills drivers of clusters, or looks for what they left: a
    killed one leaves its address behind for those who look for a cluster."""
    import ray

    root = tempfile.mkdtemp(prefix="rt-", dir="/tmp")
    monkeypatch.setenv("RAY_TMPDIR", root)
    yield root
    ray.shutdown(wait_for_processes=True)
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def caplog(caplog):
    """Hears the logger "ray", too, which does not propagate."""
    logger = logging.getLogger("ray")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)
