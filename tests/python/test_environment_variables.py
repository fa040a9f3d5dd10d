"""docs/environment-variables.md is true: each variable that it calls honoured is read somewhere, no
variable that it calls absent is, and those for drivers do what it says."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from check_includes import FLOORS

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs" / "environment-variables.md").read_text()
HONOURED, WITHOUT_EFFECT, ABSENT = re.split(r"\n## ", PAGE)[1:]


def names(section, only_first_column):
    lines = [
        line.split("|")[1] if only_first_column else line
        for line in section.split("\n")
        if line.startswith("|") or not only_first_column
    ]
    return {name for line in lines for name in re.findall(r"`(RAY_[A-Za-z_]+)`", line)} - {
        "RAY_log_level"
    }


@pytest.fixture(scope="module")
def read_by_us():
    files = [
        path
        for top in (*FLOORS, "cpp/src")
        for path in (PROJECT / top).rglob("*")
        if path.suffix in (".py", ".cc", ".h")
    ]
    text = "\n".join(path.read_text() for path in files)
    settings = re.findall(
        r"RT_SETTING\(\w+, (\w+)", (PROJECT / "common" / "config" / "settings.def").read_text()
    )
    return {name for name in re.findall(r'"(RAY_[A-Za-z_]+)"', text)} | {
        f"RAY_{name}" for name in settings
    }


def test_the_page_names_what_the_code_reads(read_by_us):
    assert names(HONOURED, True) <= read_by_us
    assert not names(WITHOUT_EFFECT, True) & read_by_us
    assert not (names(ABSENT, False) - {"RAY_BACKEND_LOG_LEVEL"}) & read_by_us


def run(code, **environment):
    merged = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=merged, capture_output=True, text=True, timeout=60
    )


def test_auto_connect_can_be_turned_off():
    done = run(
        "import ray\ntry: ray.put(1)\nexcept ray.exceptions.RaySystemError as error: print('told', ray.is_initialized())",
        RAY_ENABLE_AUTO_CONNECT="0",
    )
    assert done.stdout == "told False\n", done.stderr


def test_level_of_the_logger():
    code = "import ray, logging; ray.init(num_cpus=1{}); print(logging.getLevelName(logging.getLogger('ray').getEffectiveLevel()))"
    assert run(code.format(""), RAY_LOGGER_LEVEL="error").stdout == "ERROR\n"
    assert run(code.format(", logging_level='debug'"), RAY_LOGGER_LEVEL="error").stdout == "DEBUG\n"
    assert "RAY_LOGGER_LEVEL" in run(code.format(""), RAY_LOGGER_LEVEL="loud").stderr


def test_output_of_workers():
    code = "import ray; ray.init(num_cpus=1); ray.get(ray.remote(lambda: print('said')).remote()); ray.shutdown()"
    assert "said" in run(code, RAY_COLOR_PREFIX="0").stdout
    assert "said" not in run(code, RAY_LOG_TO_DRIVER="0").stdout


def test_default_of_retries(tmp_path):
    code = f"""
import ray, os, sys
@ray.remote
def crash():
    with open({str(tmp_path / "runs")!r}, "a") as file:
        file.write("x")
    os._exit(1)
try:
    ray.get(crash.remote())
except ray.exceptions.WorkerCrashedError:
    # In one piece, since another thread prints the warning whenever it arrives.
    sys.stdout.write(open({str(tmp_path / "runs")!r}).read() + "\\n")
"""
    said = run(code, RAY_TASK_MAX_RETRIES="1").stdout
    assert "xx" in said.splitlines() and said.count("There are 1 retries remaining") == 1, said


def test_a_cluster_of_ones_own_in_spite_of_an_address():
    done = run("import ray; ray.init(num_cpus=1); print(len(ray.nodes()))", RAY_ADDRESS="local")
    assert done.stdout == "1\n", done.stderr


@pytest.mark.parametrize(
    "name, value",
    [
        ("RAY_TASK_MAX_RETRIES", "x"),
        ("RAY_DEDUP_LOGS_AGG_WINDOW_S", "abc"),
        ("RAY_DEDUP_LOGS_ALLOW_REGEX", "("),
        ("RAY_DEDUP_LOGS_SKIP_REGEX", "["),
        ("RAY_JOB_CONFIG_JSON_ENV_VAR", "foo"),
        ("RAY_JOB_CONFIG_JSON_ENV_VAR", "[1]"),
        ("RAY_JOB_CONFIG_JSON_ENV_VAR", '{"metadata": 1}'),
        ("RAY_RUNTIME_ENV_HOOK", "no_such_module.function"),
        ("RAY_RUNTIME_ENV_HOOK", "os.no_such_function"),
    ],
)
def test_bad_values_are_errors_that_name_the_variable(name, value):
    done = run("import ray; ray.init(num_cpus=1); ray.remote(lambda: 1).remote()", **{name: value})
    assert done.returncode == 1 and re.search(
        rf"^ValueError: {name} is .*{re.escape(value[:3])}", done.stderr, re.M
    ), done.stderr
