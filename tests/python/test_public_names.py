"""Names at the top of the package: each exists, or it is absent with an error that names the
feature and that programs which probe for it expect."""

import importlib
import importlib.util
import logging

import pytest

import ray
import ray.experimental
import ray.util
from ray._private.absent import ABSENT

# The names of ray.__all__ in the contract, and those that are reachable beside it.
TOP = """__version__ get_runtime_context autoscaler available_resources cancel client ClientBuilder cluster_resources get get_actor get_gpu_ids init is_initialized
java_actor_class java_function cpp_function kill Language method nodes put remote shutdown timeline wait SCRIPT_MODE WORKER_MODE LoggingConfig actor data internal util widgets
workflow ActorClassID ActorID FunctionID JobID NodeID ObjectID ObjectRef PlacementGroupID TaskID UniqueID WorkerID __commit__ exceptions remote_function runtime_context cross_language
RESTORE_WORKER_MODE SPILL_WORKER_MODE ClusterID worker state ray_constants serialization ObjectRefGenerator DynamicObjectRefGenerator train tune serve rllib air job_submission
runtime_env job_config cluster_utils dag experimental cloudpickle""".split()
UTIL = """ActorPool queue multiprocessing joblib placement_group remove_placement_group get_placement_group get_current_placement_group placement_group_table scheduling_strategies
list_named_actors metrics inspect_serializability register_serializer deregister_serializer as_completed map_unordered get_node_ip_address get_node_instance_id log_once
disable_log_once_globally enable_periodic_logging pdb rpdb ray_debugpy connect disconnect iter ActorGroup collective accelerators tracing state""".split()


@pytest.mark.parametrize(
    "package, name", [(ray, name) for name in TOP] + [(ray.util, name) for name in UTIL]
)
def test_every_name_is_there_or_named(package, name):
    try:
        getattr(package, name)
    except AttributeError as error:
        if isinstance(error, NotImplementedError):
            assert f"{package.__name__}.{name}: not in this release" in str(error)
        else:
            # This module is imported by its name.
            importlib.import_module(f"{package.__name__}.{name}")
    assert (
        name in dir(package)
        or not hasattr(package, name)
        or importlib.util.find_spec(f"{package.__name__}.{name}")
    )


ABSENT_NOW = [
    (package, name)
    for package, names in ABSENT.items()
    for name in names
    if not hasattr(importlib.import_module(package), name)
    and not importlib.util.find_spec(f"{package}.{name}")
]


@pytest.mark.parametrize("package, name", ABSENT_NOW)
def test_absent_names_are_probed_as_absent_and_imported_with_a_reason(package, name):
    with pytest.raises(AttributeError, match=f"{package}.{name}: not in this release"):
        getattr(importlib.import_module(package), name)
    with pytest.raises(ModuleNotFoundError, match=f"{package}.{name}: not in this release"):
        importlib.import_module(f"{package}.{name}.below")
    with pytest.raises(ImportError, match=f"{package}.{name}: not in this release"):
        exec(f"from {package} import {name}")


def test_names_of_ray_data_are_imported_and_refused_when_used():
    """Modin imports from_pandas_refs, and could not be imported without it."""
    from ray.data import Dataset, from_pandas_refs

    with pytest.raises(NotImplementedError, match="^ray.data.from_pandas_refs: not in this rel"):
        from_pandas_refs([])
    with pytest.raises(NotImplementedError, match="^ray.data.Dataset: not in this release"):
        Dataset()
    with pytest.raises(NotImplementedError, match="^ray.data.DataContext.get_current: not in this"):
        ray.data.DataContext.get_current()

    class Source(ray.data.Datasource):
        pass

    with pytest.raises(NotImplementedError, match="^ray.data.Datasource: not in this release"):
        Source()
    assert not isinstance(3, Dataset) and ray.data.Dataset is Dataset
    assert importlib.util.find_spec("ray.data.dataset") is None
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
        ray.data.no_such_thing


def test_no_autoscaler_and_no_client():
    import ray.autoscaler.sdk
    import ray.util.client

    with pytest.raises(AttributeError, match="ray.autoscaler.sdk.rsync: not in this release"):
        ray.autoscaler.sdk.rsync
    with pytest.raises(AttributeError, match="ray.autoscaler.tags: not in this release"):
        ray.autoscaler.tags
    with pytest.raises(AttributeError, match="ray.util.client.ray.connect: not in this release"):
        ray.util.client.ray.connect("ray://127.0.0.1:10001")


def test_no_session_of_the_first_ray_train():
    """xgboost_ray asks for one before it trains."""
    from ray.train._internal.session import get_session

    assert get_session() is None


def test_names_nobody_knows():
    for package in (ray, ray.util, ray.experimental):
        with pytest.raises(AttributeError, match="no_such_thing") as error:
            package.no_such_thing
        assert not isinstance(error.value, NotImplementedError)
    with pytest.raises(ModuleNotFoundError, match="No module named 'ray.no_such_thing'"):
        importlib.import_module("ray.no_such_thing")


def test_old_names_of_private_modules(caplog):
    with caplog.at_level(logging.WARNING, "ray"):
        assert ray.worker.global_worker is ray._private.worker.global_worker
        assert ray.worker.global_worker is not None
        assert ray.ray_constants.DEFAULT_PORT == 6379
    assert [record.getMessage().split(" is ")[0] for record in caplog.records] == [
        "DeprecationWarning: `ray.worker.global_worker`",
        "DeprecationWarning: `ray.ray_constants.DEFAULT_PORT`",
    ]
    with pytest.raises(AttributeError):
        ray.state.no_such_thing
    assert callable(ray.state.nodes) and callable(ray.serialization.raise_unserializable)


def test_everything_listed_is_importable():
    for package in (ray, ray.util):
        for name in package.__all__:
            assert getattr(package, name) is not None
