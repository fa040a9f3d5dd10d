"""Training goes on while the session directory is full, because the run's own folder is elsewhere
and has room."""

import contextlib
import os

import pytest
import test_bad_input_disk as disks
from driver import Driver

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts file systems")
# Pytest finds the fixture by this name.
place = disks.place


def test_a_run_ends_and_another_one_is_refused_with_the_reason(shell, place, tmp_path):
    """The end of a run must not wait until the head can write that its group was removed."""
    disks.tmpfs(place, "20m")
    os.mkfifo(tmp_path / "go")
    init = f"ray.init(num_cpus=2, object_store_memory=100_000_000, _temp_dir={str(place)!r})"
    with contextlib.closing(Driver(shell, init)) as driver:
        driver.run(
            f"""
import threading
import ray.train
from ray.train import RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

def waits():
    if ray.train.get_context().get_world_rank() == 0:
        open({str(tmp_path / "go")!r}).close()  # Until the test opens its end.
    ray.train.report({{"n": 1}})
    return "returned"

def fit(function=lambda: "returned"):
    run_config = RunConfig(name="run", storage_path={str(tmp_path)!r})
    return DataParallelTrainer(
        function, scaling_config=ScalingConfig(num_workers=2), run_config=run_config
    ).fit().return_value

results = []
def fit_in_thread():
    try:
        results.append(fit(waits))
    except BaseException as error:
        results.append(repr(error))
thread = threading.Thread(target=fit_in_thread)
thread.start()
"""
        )
        with open(tmp_path / "go", "w"):
            filled = disks.fill(place)
        driver.run("thread.join()", timeout=60)
        assert driver.run("results") == ["returned"]
        said = driver.raises("fit()", "RayError")
        assert "no space left" in said and "Free space" in said
        filled.unlink()
        assert driver.run("fit()") == "returned"
        states = "[one['state'] for one in ray.util.placement_group_table().values()]"
        assert set(driver.run(states)) == {"REMOVED"}
