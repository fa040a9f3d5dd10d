"""Arguments of ray.init(): each does what its documentation says."""

import logging
import os
import sys
import tempfile

import pytest

import ray
from ray._private.job_setup import _driver_sys_path

pytestmark = pytest.mark.usefixtures("no_cluster")


def test_arguments_of_the_node():
    with tempfile.TemporaryDirectory(prefix="ia-", dir="/tmp") as root:
        with ray.init(
            num_cpus=2,
            num_gpus=1,
            resources={"a": 2, "third": 1 / 3},
            labels={"zone": "z"},
            object_store_memory=100 << 20,
            _memory=(1 << 30) + 0.7,
            _node_name="its name",
            _node_ip_address="127.0.0.1",
            _temp_dir=root,
            _plasma_directory="/dev/shm",
            _system_config={"node_timeout_ms": 30_000},
        ) as context:
            (node,) = ray.nodes()
            assert (
                node["NodeName"] == "its name"
                and node["NodeManagerAddress"] == "127.0.0.1"
                and node["Labels"]["zone"] == "z"
            )
            amounts = node["Resources"]
            assert [amounts[name] for name in ("CPU", "GPU", "a", "third", "memory")] == [
                2,
                1,
                2,
                0.3333,
                1 << 30,
            ] and amounts["object_store_memory"] == 100 << 20
            assert (
                context["session_dir"].startswith(root + "/session_")
                and ray.get_runtime_context().get_temp_dir() == root
            )
            assert (
                ray.get(ray.remote(num_gpus=1)(lambda: "ran").options(resources={"a": 2}).remote())
                == "ran"
            )
            # Otherwise daemons that are still ending would write to the directory while it is
            # removed.
            ray.shutdown(wait_for_processes=True)


def test_arguments_of_the_job():
    config = ray.JobConfig(
        ray_namespace="of the config", default_actor_lifetime="detached", metadata={"k": "v"}
    )
    with ray.init(num_cpus=1, job_config=config):
        assert ray.get_runtime_context().namespace == "of the config"
    with ray.init(num_cpus=1, job_config=config, namespace="given"):
        assert ray.get_runtime_context().namespace == "given"
    with ray.init(num_cpus=1):
        assert len(ray.get_runtime_context().namespace) == 36


def test_the_default_lifetime_holds_in_all_processes_of_the_job():
    @ray.remote
    class Kept:
        def ping(self):
            return "alive"

    @ray.remote
    def make():
        return ray.get(Kept.options(name="kept").remote().ping.remote())

    with ray.init(num_cpus=1, job_config=ray.JobConfig(default_actor_lifetime="detached")):
        assert ray.get(make.remote()) == "alive"
        assert ray.get(ray.get_actor("kept").ping.remote()) == "alive"


def test_modules_of_the_driver_are_found_by_workers_wherever_they_lie(monkeypatch):
    lib = os.path.join(sys.prefix, "lib")
    own, others = f"{lib}/python3/dist-packages", [f"{lib}exec/app", f"{lib}/app"]
    monkeypatch.setattr(sys.modules["__main__"], "__file__", f"{lib}/app/main.py", raising=False)
    monkeypatch.setattr(sys, "path", [own, *others])
    path = _driver_sys_path(False)
    assert own not in path and set(others) <= set(path)


def test_those_of_the_logger(capsys):
    logger = logging.getLogger("ray")
    before, handlers = logger.level, list(logger.handlers)
    try:
        with ray.init(num_cpus=1, logging_level=logging.ERROR, logging_format="FORMAT %(message)s"):
            assert logger.level == logging.ERROR
            logger.error("said")
            logger.warning("not said")
        said = capsys.readouterr().err
        assert "FORMAT said" in said and "not said" not in said
        with ray.init(num_cpus=1, logging_level="debug", configure_logging=False):
            assert logger.level == logging.ERROR
        with pytest.raises(ValueError, match="LOUD"):
            ray.init(num_cpus=1, logging_level="loud")
        assert not ray.is_initialized()
    finally:
        logger.setLevel(before)
        logger.handlers[:] = handlers


@pytest.mark.parametrize(
    "argument",
    [
        {"_enable_object_reconstruction": True},
        {"_tracing_startup_hook": "a:b"},
        {"proxy_server_url": "x"},
        {"enable_resource_isolation": True},
        {"cgroup_path": "/x"},
    ],
)
def test_what_is_absent_is_named(argument):
    with pytest.raises(NotImplementedError, match="not in this release"):
        ray.init(**argument)
    assert not ray.is_initialized()


def test_a_password_of_redis_has_no_effect():
    """Modin passes one for each cluster that it starts."""
    with ray.init(num_cpus=1, _redis_password="x"):
        assert ray.is_initialized()


def test_what_belongs_to_a_new_cluster_is_refused_when_joining():
    address = ray.init(num_cpus=1)["address"]
    ray.shutdown()
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True)
    try:
        for argument in (
            {"num_cpus": 1},
            {"num_gpus": 0},
            {"resources": {"a": 1}},
            {"labels": {"a": "b"}},
            {"object_store_memory": 100 << 20},
            {"_node_name": "x"},
            {"_system_config": {"node_timeout_ms": 1}},
        ):
            with pytest.raises(
                ValueError, match=f"{next(iter(argument))} must not be provided.*address='local'"
            ):
                ray.init(cluster.address, **argument)
            assert not ray.is_initialized()
        with ray.init(cluster.address, _system_config={}, namespace="n"):
            assert ray.is_initialized()
        with pytest.raises(ConnectionError, match=address):
            ray.init(address)
    finally:
        cluster.shutdown()


def test_temp_root_that_cannot_be_used(monkeypatch):
    with pytest.raises(Exception, match="temp-dir|RAY_TMPDIR"):
        ray.init(num_cpus=1, _temp_dir="relative/path")
    assert os.environ.get("RAY_TMPDIR") and not ray.is_initialized()
