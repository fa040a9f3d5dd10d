"""ray.LoggingConfig: records of the driver and of workers as text or JSON, with their ids."""

import json
import os
import subprocess
import sys

import pytest

import ray

PROGRAM = """
import logging, ray, sys
config = ray.LoggingConfig(encoding=sys.argv[1], log_level="INFO", additional_log_standard_attrs=["name"])
ray.init(num_cpus=1, logging_config=config)
logging.getLogger("own").info("on the driver")

@ray.remote
def f():
    logging.getLogger("own").debug("too low")
    logging.getLogger("own").info("in a %s", "task", extra={"user": "me"})
    print("printed")

@ray.remote
class A:
    def m(self):
        try:
            1 / 0
        except ZeroDivisionError:
            logging.getLogger().exception("in an actor")

ray.get(f.remote())
ray.get(A.options(name="famous").remote().m.remote())
"""


def run(tmp_path, encoding):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    result = subprocess.run(
        [sys.executable, str(script), encoding],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    # The line has no prefix.
    assert result.stdout == "printed\n" and "too low" not in result.stderr
    return result.stderr


def test_records_are_json_with_ids(tmp_path):
    records = {
        record["message"]: record for record in map(json.loads, run(tmp_path, "JSON").splitlines())
    }
    driver, task, actor = records["on the driver"], records["in a task"], records["in an actor"]
    assert (
        driver["levelname"] == "INFO"
        and driver["name"] == "own"
        and driver["filename"] == "script.py"
        and "task_id" not in driver
    )
    assert (
        task["job_id"] == driver["job_id"] == actor["job_id"]
        and task["node_id"] == driver["node_id"]
        and task["worker_id"] != driver["worker_id"]
    )
    assert (
        task["task_name"] == "f"
        and task["task_func_name"] == "script.f"
        and len(task["task_id"]) == 48
        and task["user"] == "me"
    )
    assert (
        actor["actor_name"] == "famous"
        and len(actor["actor_id"]) == 32
        and actor["task_name"] == "A.m"
        and actor["task_func_name"] == "script.A.m"
    )
    assert actor["exc_text"].endswith("ZeroDivisionError: division by zero") and isinstance(
        actor["timestamp_ns"], int
    )


def test_records_are_text_with_ids(tmp_path):
    lines = run(tmp_path, "TEXT").splitlines()
    line = next(line for line in lines if "in a task" in line)
    assert (
        "\tINFO script.py:" in line
        and " -- in a task name=own user=me job_id=" in line
        and " task_name=f task_func_name=script.f timestamp_ns=" in line
    )


def test_defaults_are_rays_and_wrong_values_are_refused():
    assert ray.LoggingConfig().to_dict() == {
        "encoding": "TEXT",
        "log_level": "INFO",
        "additional_log_standard_attrs": [],
    }
    with pytest.raises(ValueError, match="XML"):
        ray.LoggingConfig(encoding="XML")
    with pytest.raises(ValueError, match="colour"):
        ray.LoggingConfig(additional_log_standard_attrs=["colour"])
