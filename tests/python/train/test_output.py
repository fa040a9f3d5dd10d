"""The lines of a run on the driver's terminal."""

import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from ray.train import logs
from ray.train.logs import JsonFile, _Terminal

HEAD = """
    import os, sys, time
    os.environ["RAY_COLOR_PREFIX"] = "0"
    import ray, ray.train
    from ray.train import *
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    def fit(function, workers=2, **arguments):
        return DataParallelTrainer(
            function,
            scaling_config=ScalingConfig(num_workers=workers),
            run_config=RunConfig(name="shown", storage_path=sys.argv[1], **arguments),
        ).fit()

    ray.init(num_cpus=2)
"""


def start(tmp_path, body, **environment):
    """Starts a driver."""
    text = textwrap.dedent(HEAD) + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-c", text, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def run(tmp_path, body, **environment):
    """Runs a driver to its end; returns its code, stdout and stderr."""
    with start(tmp_path, body, **environment) as process:
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return process.returncode, out, err


def test_lines_of_a_run(tmp_path):
    (tmp_path / "saved").mkdir()
    code, out, err = run(
        tmp_path,
        """
        place = sys.argv[1]

        def function():
            print("rank", "AB"[ray.train.get_context().get_world_rank()])
            checkpoint = Checkpoint.from_directory(place + "/saved")
            ray.train.report({"loss": 0.25}, checkpoint, "named")

        fit(function)
        """,
    )
    assert code == 0, err
    for letter in "AB":
        # The line appears once, and not a second time through a logger.
        pattern = rf"\(RayTrainWorker pid=\d+\) rank {letter}\n"
        assert len(re.findall(pattern, out)) == 1 and f"rank {letter}" not in err
    assert "Starting a group of 2 workers, each with {'CPU': 1}." in err
    for rank in range(2):
        place = rf"ip=127.0.0.1, pid=\d+\) world_rank={rank}, local_rank={rank}, node_rank=0"
        assert re.search(place, err)
    assert f"checkpoint {tmp_path}/shown/named, metrics {{'loss': 0.25}}" in err
    assert all("TrainController" in line for line in err.splitlines() if "group" in line)


def test_the_log_level(tmp_path):
    code, out, err = run(
        tmp_path, "fit(lambda: print('printed'), 1, logging_config=LoggingConfig('error'))"
    )
    assert code == 0 and "printed" in out and "Starting" not in err


def test_a_decision_about_a_failure(tmp_path):
    code, out, err = run(
        tmp_path,
        """
        def function():
            raise ValueError("on purpose")

        fit(function, 1, failure_config=FailureConfig(max_failures=1))
        """,
        RAY_DEDUP_LOGS="0",
    )
    assert code == 1
    assert (
        "(rank 0: ValueError: on purpose). The group is started again (worker failure 1 of 1)"
        in err
    )
    assert "The run ends (worker failure 2, max_failures=1)" in err
    # Two threads write: log lines, which begin with "(", may come between the name and the text.
    assert re.search(r"ray\.train\.WorkerGroupError(\(.*\n)*: Training failed", err), err


def test_waiting_for_resources_is_explained(tmp_path):
    code, out, err = run(
        tmp_path,
        """
        os.environ["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = "5"
        fit(lambda: None, 3, failure_config=FailureConfig(controller_failure_limit=0))
        """,
    )
    assert code == 1 and "The group of 3 workers (each {'CPU': 1}) waits for resources: " in err


def test_a_rank_that_does_not_come_is_named(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = start(
        tmp_path,
        """
        os.environ["RAY_TRAIN_COLLECTIVE_WARN_INTERVAL_S"] = "0.2"
        pipe = sys.argv[1] + "/pipe"

        def function():
            if ray.train.get_context().get_world_rank() == 1:
                open(pipe).close()  # It waits until the test opens the other end.
            ray.train.report({})

        fit(function)
        """,
    )
    with process:
        warning = "for rank 1, which have not come (rank 0 in report())"
        assert any(warning in line for line in process.stderr)
        pipe.open("w").close()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_callbacks_of_the_environment(tmp_path):
    (tmp_path / "heard.py").write_text(
        "import ray.train\n"
        "class Heard(ray.train.UserCallback):\n"
        "    def after_report(self, run_context, metrics, checkpoint):\n"
        "        print('heard', metrics, flush=True)\n"
    )
    code, out, err = run(
        tmp_path,
        "fit(lambda: ray.train.report({'n': 1}), 1)",
        RAY_TRAIN_CALLBACKS="heard.Heard",
        PYTHONPATH=f"{tmp_path}:{':'.join(sys.path)}",
    )
    assert code == 0, err
    assert "heard [{'n': 1}]" in out


@pytest.mark.parametrize(
    "body, text",
    [
        ("import threading\nlock = threading.Lock()\nfit(lambda: lock)", "do not pickle"),
        ("sys.argv[1] = '/proc/nowhere'\nfit(lambda: None)", "cannot be written"),
        ("os.environ['RAY_TRAIN_CALLBACKS'] = 'no.Such'\nfit(lambda: None)", "no.Such"),
        (
            "os.environ['RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S'] = 'x'\nfit(lambda: None)",
            "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S='x'",
        ),
    ],
)
def test_bad_input_is_refused_in_the_driver(tmp_path, body, text):
    code, out, err = run(tmp_path, body)
    assert code == 1 and text in err and "TrainController" not in err


def test_print_and_records_share_a_file_that_is_rotated(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "_MOST_BYTES", 1000)
    monkeypatch.setattr("builtins.print", print)
    app = JsonFile(str(tmp_path / "app.log"), {}, logging.INFO)
    logs._patch_print(app)
    record = logging.makeLogRecord({"msg": "a record"})
    recording = threading.Thread(target=lambda: [app.handle(record) for _ in range(3000)])
    recording.start()
    for _ in range(3000):
        print("a line", file=sys.stderr)
    recording.join()
    for name in ("app.log", "app.log.1"):
        lines = (tmp_path / name).read_text().splitlines()
        assert lines and all(json.loads(line)["levelname"] for line in lines)


def test_print_in_a_child_that_was_forked_while_another_thread_wrote(tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.print", print)
    app = JsonFile(str(tmp_path / "app.log"), {}, logging.INFO)
    logs._patch_print(app)
    writing, go_on, write = threading.Event(), threading.Event(), app.write

    def slow_write(*line):
        writing.set()
        go_on.wait(30)
        write(*line)

    app.write = slow_write
    # A call by name, so that the replaced print() is found.
    other = threading.Thread(target=lambda: print("of the parent", file=sys.stderr))
    other.start()
    assert writing.wait(30)
    app.write = write
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        print("of the child", file=sys.stderr)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    go_on.set()
    other.join()
    lines = (tmp_path / "app.log").read_text().splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["of the child", "of the parent"]


def test_a_full_disk_costs_lines_and_says_nothing(capfd, monkeypatch):
    record = logging.makeLogRecord({"msg": "a line"})
    JsonFile("/dev/full", {}, logging.INFO).handle(record)
    full = open("/dev/full", "w", buffering=1)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", full)
        _Terminal(logging.INFO).handle(record)
    with contextlib.suppress(OSError):
        full.close()
    assert capfd.readouterr().err == ""
