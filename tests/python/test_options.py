"""Decorators, options and argument checks that need no cluster."""

import functools
import inspect

import pytest

import ray
from ray._private.signature import Signature


def function(x, y=2, *, z=3):
    return x, y, z


class Thing:
    def method(self, x):
        return x


@pytest.mark.parametrize(
    "options, error",
    [
        ({"unknown": 1}, ValueError),
        ({"num_cpus": "two"}, TypeError),
        ({"num_cpus": -1}, ValueError),
        ({"num_cpus": 0.00001}, ValueError),
        ({"_generator_backpressure_num_objects": 0}, ValueError),
        ({"resources": {"CPU": 1}}, ValueError),
        ({"resources": {"GPU": 1}}, ValueError),
        ({"resources": {"a": "b"}}, TypeError),
        ({"resources": {"a": -1}}, ValueError),
        ({"max_retries": -2}, ValueError),
        ({"num_returns": -1}, ValueError),
        ({"num_returns": "streaming"}, ValueError),
        ({"num_returns": "all"}, TypeError),
        ({"object_store_memory": 1}, ValueError),
        ({"max_restarts": 1}, ValueError),
        ({"name": 3}, TypeError),
        ({"retry_exceptions": [1]}, ValueError),
        ({"runtime_env": {"pip": 1}}, TypeError),
        ({"runtime_env": {"working_dir": "."}}, ValueError),
        ({"placement_group": object()}, TypeError),
        ({"max_calls": -1}, ValueError),
        ({"label_selector": ["a"]}, TypeError),
        ({"scheduling_strategy": object()}, TypeError),
    ],
)
def test_bad_task_options(options, error):
    with pytest.raises(error):
        ray.remote(**options)(function)


@pytest.mark.parametrize(
    "options, error",
    [
        ({"max_retries": 1}, ValueError),
        ({"max_concurrency": -1}, ValueError),
        ({"lifetime": "forever"}, ValueError),
        ({"name": 3}, TypeError),
        ({"namespace": 3}, TypeError),
        ({"get_if_exists": True}, ValueError),
        ({"max_pending_calls": -2}, ValueError),
        ({"max_restarts": "1"}, TypeError),
        ({"concurrency_groups": {"io": 2}}, ValueError),
    ],
)
def test_bad_actor_options(options, error):
    with pytest.raises(error):
        ray.remote(Thing).options(**options)


def test_a_bool_is_taken_where_an_int_is():
    """Programs write num_gpus=torch.cuda.is_available() and max_retries=not interactive."""
    numbers = {
        "num_cpus": True,
        "num_gpus": False,
        "memory": True,
        "resources": {"a": True},
        "placement_group_bundle_index": -1,
    }
    task = {
        **numbers,
        "max_retries": False,
        "max_calls": True,
        "num_returns": True,
        "_generator_backpressure_num_objects": True,
    }
    actor = {
        **numbers,
        "max_restarts": True,
        "max_task_retries": False,
        "max_concurrency": True,
        "max_pending_calls": True,
        "_actor_generator_backpressure_num_objects": True,
    }
    method = {"max_task_retries": True, "num_returns": True}
    remote, actor_class = ray.remote(**task)(function), ray.remote(**actor)(Thing)
    # This option is for decorators only.
    del task["max_calls"]
    ray.method(**method)(Thing.method)
    for given in (
        remote._options,
        ray.remote(function).options(**task)._options,
        actor_class._options,
        ray.remote(Thing).options(**actor)._options,
        Thing.method.__ray_method_options__,
    ):
        assert given and not any(isinstance(value, bool) for value in given.values())
    with pytest.raises(TypeError):
        ray.remote(name=True)(function)
    del Thing.method.__ray_method_options__


@pytest.mark.parametrize(
    "options, amounts",
    [
        ({"num_cpus": 1 / 3}, {"CPU": 0.3333}),
        ({"num_cpus": 0.12345, "num_gpus": 2 / 3}, {"CPU": 0.1234, "GPU": 0.6666}),
        ({"num_cpus": 0, "resources": {"a": 5 / 3}}, {"a": 1.6666}),
        ({"num_cpus": 0, "memory": 1e9 / 3}, {"memory": 333333333}),
        ({"num_cpus": 0, "memory": 0.5}, {}),
        # Floats that are just below or above the meant amount are cut to that amount.
        ({"num_cpus": 0.0003}, {"CPU": 0.0003}),
        ({"num_cpus": 0.29}, {"CPU": 0.29}),
        ({"num_cpus": 0.1 + 0.2}, {"CPU": 0.3}),
        ({"num_cpus": 0, "resources": {"a": 1e11 / 3}}, {"a": 33333333333}),
    ],
)
def test_what_is_too_fine_of_an_amount_is_cut_off(options, amounts):
    from ray._private.options import resources_of

    assert resources_of(ray.remote(**options)(function)._options, 1) == amounts


@pytest.mark.parametrize(
    "options", [{"num_cpus": 1e-5}, {"num_gpus": 0.00009}, {"resources": {"a": 1e-300}}]
)
def test_an_amount_of_which_nothing_is_left_is_refused(options):
    for use in (
        lambda **o: ray.remote(**o)(function),
        ray.remote(function).options,
        ray.remote(Thing).options,
    ):
        with pytest.raises(ValueError, match="cannot go beyond 0.0001"):
            use(**options)


def test_decorator_misuse():
    with pytest.raises(AssertionError):
        ray.remote()
    with pytest.raises(AssertionError):
        ray.remote(3)
    with pytest.raises(TypeError):
        ray.remote(num_cpus=1)(3)

    async def coroutine():
        pass

    with pytest.raises(ValueError, match="async"):
        ray.remote(coroutine)
    with pytest.raises(ValueError, match="max_calls"):
        ray.remote(function).options(max_calls=3)
    with pytest.raises(AssertionError):
        ray.method(colour="red")


def test_direct_calls_and_inheritance():
    with pytest.raises(TypeError, match="remote"):
        ray.remote(function)(1)
    actor_class = ray.remote(Thing)
    with pytest.raises(TypeError, match="remote"):
        actor_class()
    with pytest.raises(TypeError, match="inherit"):

        class Derived(actor_class):
            pass


def test_remote_functions_look_like_functions():
    remote = ray.remote(function)
    assert remote.__name__ == "function" and remote._function is function
    assert remote.options(num_cpus=2)._options == {"num_cpus": 2}


@pytest.mark.parametrize(
    "args, kwargs, text",
    [
        ((), {}, "missing a required argument: 'x'"),
        ((1, 2, 3), {}, "too many positional"),
        ((1,), {"x": 2}, "multiple values for argument 'x'"),
        ((1,), {"w": 2}, "unexpected keyword argument 'w'"),
        ((), {"y": 1}, "missing a required argument: 'x'"),
    ],
)
def test_signatures(args, kwargs, text):
    with pytest.raises(TypeError, match=text):
        Signature.of(function).check(args, kwargs)


def test_good_signatures():
    signature = Signature.of(function)
    signature.check((1,), {})
    signature.check((1, 2), {"z": 3})
    signature.check((), {"x": 1})
    assert signature.limits() == (1, 2)
    Signature.of(lambda *a, **k: None).check((1, 2), {"b": 3})
    assert Signature.of(lambda *a: None).limits() == (0, -1)
    with pytest.raises(TypeError, match="'k'"):
        Signature.of(lambda *, k: None).check((), {})
    with pytest.raises(TypeError):
        Signature.of(eval("lambda x, /: None")).check((), {"x": 1})
    Signature.of(len).check((1, 2, 3), {})


def test_signatures_of_wrappers():
    @functools.wraps(Thing().method)
    def of_method(*args, **kwargs):
        pass

    @functools.wraps(of_method)
    def twice(*args, **kwargs):
        pass

    for wrapper in (of_method, twice):
        assert Signature.of(wrapper).names == tuple(inspect.signature(wrapper).parameters) == ("x",)

    # The outer wrapper passes `x` itself and says so.
    @functools.wraps(function)
    def injecting(*args, **kwargs):
        pass

    without_x = list(inspect.signature(function).parameters.values())[1:]
    injecting.__signature__ = inspect.Signature(without_x)

    @functools.wraps(injecting)
    def outer(*args, **kwargs):
        pass

    for wrapper in (injecting, outer):
        Signature.of(wrapper).check((), {"y": 1})


@pytest.mark.parametrize(
    "options, error",
    [
        ({"colour": "red"}, RuntimeError),
        ({"local_mode": True}, RuntimeError),
        ({"storage": "x"}, RuntimeError),
        ({"allow_multiple": True}, RuntimeError),
        ({"_system_config": [1]}, TypeError),
        ({"num_cpus": -1}, ValueError),
        ({"num_cpus": 1.5}, ValueError),
        ({"num_cpus": "1"}, TypeError),
        ({"resources": {"CPU": 1}}, ValueError),
        ({"resources": 3}, TypeError),
        ({"labels": {"ray.io/node-id": "y"}}, ValueError),
        ({"address": "nosuchscheme://x"}, RuntimeError),
        ({"labels": {"a": "b!"}}, ValueError),
        ({"namespace": ""}, ValueError),
        ({"namespace": 3}, TypeError),
        ({"object_store_memory": -1}, ValueError),
        ({"runtime_env": {"pip": ["x"], "conda": "y"}}, ValueError),
        ({"runtime_env": {"env_vars": {"A": 1}}}, TypeError),
        ({"dashboard_port": -1}, ValueError),
        ({"dashboard_host": 1}, TypeError),
        ({"address": "ray://host:1"}, NotImplementedError),
        ({"enable_resource_isolation": True}, NotImplementedError),
    ],
)
def test_bad_init_arguments(options, error):
    with pytest.raises(error):
        ray.init(**options)
    assert not ray.is_initialized()


def test_no_cluster_to_join():
    with pytest.raises(ConnectionError, match="rayctl start"):
        ray.init(address="auto")
    with pytest.raises(ConnectionError, match="127.0.0.1:1"):
        ray.init(address="127.0.0.1:1")


def test_questions_before_init():
    from ray.exceptions import RaySystemError

    for question in (ray.nodes, ray.cluster_resources, ray.available_resources):
        with pytest.raises(RaySystemError):
            question()
    with pytest.raises(RuntimeError):
        ray.timeline()
    assert not ray.is_initialized()
    ray.shutdown()


def test_import_is_light():
    import subprocess
    import sys

    code = "import sys, ray; print([m for m in ('numpy', 'asyncio', 'logging', 'inspect', 'cloudpickle', 'concurrent.futures') if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
