"""Configurations: their defaults, the values that they refuse, and the values derived from them."""

import dataclasses
import logging
import os
import pathlib
import pickle
import re

import pytest

from ray.train import (
    CheckpointConfig,
    DataConfig,
    FailureConfig,
    LoggingConfig,
    RunConfig,
    ScalingConfig,
    SyncConfig,
    UserCallback,
    ValidationConfig,
    ValidationTaskConfig,
)
from ray.train.callbacks import load_callbacks


class Recorder(UserCallback):
    pass


class NeedsArgument(UserCallback):
    def __init__(self, argument):
        pass


@pytest.mark.parametrize(
    "given",
    [
        {"num_workers": -1},
        {"num_workers": True},
        {"num_workers": 1.5},
        {"num_workers": "2"},
        {"num_workers": None},
        {"num_workers": [1, 2]},
        {"num_workers": (2, 1)},
        {"num_workers": (0, 1)},
        {"num_workers": (1, 2, 3)},
        {"num_workers": (1, 2.0)},
        {"use_gpu": 2},
        {"use_gpu": True, "use_tpu": True},
        {"resources_per_worker": [1]},
        {"resources_per_worker": {"CPU": -1}},
        {"resources_per_worker": {"CPU": "1"}},
        {"resources_per_worker": {"CPU": float("nan")}},
        {"resources_per_worker": {"GPU": 1}},
        {"resources_per_worker": {"TPU": 1}},
        {"placement_strategy": "TIGHT"},
        {"placement_strategy": None},
        {"accelerator_type": 5},
        {"label_selector": "zone"},
        {"num_workers": 2, "label_selector": [{"zone": "a"}]},
        {"num_workers": (1, 2), "label_selector": [{"zone": "a"}]},
        {"elastic_resize_monitor_interval_s": -1},
        {"elastic_resize_monitor_interval_s": float("inf")},
    ],
)
def test_scaling_config_refuses(given):
    with pytest.raises(ValueError, match="ScalingConfig"):
        ScalingConfig(**given)


def test_removed_options_are_refused_whatever_their_value():
    for config, names in (
        (RunConfig, ("sync_config", "verbose", "stop", "progress_reporter", "log_to_file")),
        (FailureConfig, ("fail_fast",)),
        (CheckpointConfig, ("checkpoint_frequency", "checkpoint_at_end")),
    ):
        for name in names:
            for value in (None, 0, "DEPRECATED"):
                with pytest.raises(DeprecationWarning, match=name):
                    config(**{name: value})
    with pytest.raises(DeprecationWarning, match="trainer_resources"):
        ScalingConfig(trainer_resources={})
    ScalingConfig(trainer_resources=None)


@pytest.mark.parametrize(
    "given, worker",
    [
        ({}, {"CPU": 1}),
        ({"use_gpu": True}, {"GPU": 1}),
        ({"use_tpu": True}, {"TPU": 1}),
        ({"resources_per_worker": {"CPU": 0, "disk": 2}}, {"disk": 2}),
        ({"resources_per_worker": {"GPU": 0}}, {}),
        ({"use_gpu": True, "resources_per_worker": {"GPU": 0}}, {"GPU": 1}),
        ({"use_gpu": True, "resources_per_worker": {"CPU": 2}}, {"CPU": 2, "GPU": 1}),
        ({"use_gpu": True, "resources_per_worker": {"GPU": 0.5}}, {"GPU": 0.5}),
        ({"accelerator_type": "A100"}, {"CPU": 1, "accelerator_type:A100": 0.001}),
    ],
)
def test_resources_of_a_worker(given, worker):
    assert ScalingConfig(**given).resources_of_worker() == worker


def test_scaling_config_properties():
    config = ScalingConfig(
        num_workers=(1, 3), resources_per_worker={"CPU": 2, "memory": 5, "disk": 1}
    )
    assert config.elasticity_enabled and (config.min_workers, config.max_workers) == (1, 3)
    assert config.total_resources == {"CPU": 6.0, "memory": 15.0, "disk": 3.0}
    assert config.additional_resources_per_worker == {"memory": 5, "disk": 1}
    assert (config.num_cpus_per_worker, config.num_gpus_per_worker) == (2, 0)
    fixed = ScalingConfig(2, label_selector={"zone": "a"})
    assert not fixed.elasticity_enabled and (fixed.min_workers, fixed.max_workers) == (2, 2)
    assert fixed.label_selectors(2) == [{"zone": "a"}, {"zone": "a"}]
    each = ScalingConfig(num_workers=(1, 2), label_selector=[{"zone": "a"}, {"zone": "b"}])
    assert each.label_selectors(1) == [{"zone": "a"}]
    assert ScalingConfig().label_selectors(1) is None


def test_slices_of_tpus_are_absent_by_name():
    with pytest.raises(NotImplementedError, match="topology"):
        ScalingConfig(use_tpu=True, topology="4x4")


def test_representations_show_all_fields():
    for config in (ScalingConfig(), RunConfig(), FailureConfig(), CheckpointConfig()):
        for field in dataclasses.fields(config):
            assert f"{field.name}=" in repr(config)
    assert "trainer_resources" not in repr(ScalingConfig())


def test_configurations_pickle_and_compare():
    for config in (
        ScalingConfig(num_workers=(1, 3), use_gpu=True),
        RunConfig(name="run", storage_path="/x", failure_config=FailureConfig(max_failures=-1)),
        CheckpointConfig(2, "eval/loss", "min"),
        LoggingConfig("debug"),
        DataConfig(["train"]),
        SyncConfig(),
    ):
        assert pickle.loads(pickle.dumps(config)) == config
        assert type(config).__module__ == "ray.train"
    assert dataclasses.replace(ScalingConfig(3), use_gpu=True).num_workers == 3


def test_run_config_defaults():
    config = RunConfig()
    assert re.fullmatch(r"ray_train_run-\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-\d+)?", config.name)
    assert config.storage_path == os.path.expanduser("~/ray_results")
    assert config.failure_config == FailureConfig()
    assert config.checkpoint_config == CheckpointConfig()
    assert config.callbacks == [] and config.worker_runtime_env == {}
    assert RunConfig(storage_path=pathlib.Path("/x")).storage_path == "/x"
    assert RunConfig(storage_path="/mnt/cluster_storage/").storage_path == "/mnt/cluster_storage/"


@pytest.mark.parametrize(
    "given",
    [
        {"name": 5},
        {"storage_path": 5},
        {"failure_config": 5},
        {"checkpoint_config": {}},
        {"logging_config": "INFO"},
        {"worker_runtime_env": 5},
        {"callbacks": [5]},
        {"callbacks": [UserCallback]},
        {"callbacks": UserCallback()},
    ],
)
def test_run_config_refuses(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        RunConfig(**given)


@pytest.mark.parametrize(
    "config, given",
    [
        (FailureConfig, {"max_failures": -2}),
        (FailureConfig, {"max_failures": 1.5}),
        (FailureConfig, {"controller_failure_limit": -2}),
        (FailureConfig, {"max_preemption_failures": "1"}),
        (FailureConfig, {"preemption_grace_s": -1}),
        (FailureConfig, {"relax_collectives_on_preemption": 5}),
        (CheckpointConfig, {"num_to_keep": 0}),
        (CheckpointConfig, {"num_to_keep": 1.5}),
        (CheckpointConfig, {"checkpoint_score_order": "best"}),
        (CheckpointConfig, {"checkpoint_score_attribute": 5}),
        (LoggingConfig, {"log_level": "LOUD"}),
        (LoggingConfig, {"log_level": 10}),
        (LoggingConfig, {"log_level": None}),
        (ValidationTaskConfig, {"timeout_s": -1}),
    ],
)
def test_other_configurations_refuse(config, given):
    with pytest.raises(ValueError, match=next(iter(given))):
        config(**given)


def test_logging_levels():
    assert LoggingConfig("warn").log_level == "WARN"
    assert LoggingConfig("warn").level == logging.WARNING
    assert LoggingConfig("TRACE").level < logging.DEBUG


def test_data_config():
    assert DataConfig().splits("any")
    assert DataConfig(["train"]).splits("train") and not DataConfig(["train"]).splits("other")
    for wrong in ("some", 5, {"a": 1}, ["a", 5]):
        with pytest.raises(TypeError, match="datasets_to_split"):
            DataConfig(wrong)


def test_validation_config_fills_in():
    config = ValidationConfig(fn=print)
    assert config.task_config == ValidationTaskConfig() and config.ray_remote_kwargs == {}


def test_callbacks_of_the_environment(monkeypatch):
    monkeypatch.setenv("RAY_TRAIN_CALLBACKS", f"{__name__}.Recorder, {__name__}.Recorder,")
    assert [type(callback) for callback in load_callbacks()] == [Recorder, Recorder]
    monkeypatch.delenv("RAY_TRAIN_CALLBACKS")
    assert load_callbacks() == []


@pytest.mark.parametrize("entry", ["nothing", "no.such.Module", "os.path", "builtins.object"])
def test_callbacks_of_the_environment_that_cannot_be(monkeypatch, entry):
    monkeypatch.setenv("RAY_TRAIN_CALLBACKS", entry)
    with pytest.raises(ValueError, match=f"RAY_TRAIN_CALLBACKS names '{entry}'"):
        load_callbacks()


def test_a_callback_of_the_environment_needs_no_arguments(monkeypatch):
    monkeypatch.setenv("RAY_TRAIN_CALLBACKS", f"{__name__}.NeedsArgument")
    with pytest.raises(ValueError, match="no arguments"):
        load_callbacks()
