"""Failures of ranks, controllers and drivers, restarts, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap

import pytest

import ray
import ray.train
from ray.train import (
    Checkpoint,
    FailureConfig,
    RunConfig,
    ScalingConfig,
    WorkerGroupError,
    collective,
)
from ray.train.backend import Backend
from ray.train.errors import WorkerHealthCheckFailedError
from ray.train.session import get_session
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from train_support import assert_nothing_left, stay, train_processes, wait_for_end
from waiting import until


def rank():
    return ray.train.get_context().get_world_rank()


def count(path):
    """Returns how often this rank was here, this time included."""
    place = f"{path}/{rank()}"
    with open(place, "a") as file:
        file.write("x")
    return os.path.getsize(place)


def save(number):
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/number", "w") as file:
            file.write(str(number))
        ray.train.report({"n": number}, Checkpoint.from_directory(directory))


def restored():
    checkpoint = ray.train.get_checkpoint()
    return int(open(f"{checkpoint.path}/number").read()) if checkpoint else None


class OwnError(Exception):
    def __init__(self, first, second):
        super().__init__(first)
        self.second = second

    def __reduce__(self):
        return OwnError, (self.args[0], self.second)


def test_the_users_own_error_and_traceback(fit):
    def deeper():
        raise OwnError("it is broken", 5)

    def function():
        if rank() == 1:
            deeper()
        collective.barrier()

    with pytest.raises(WorkerGroupError) as caught:
        fit(function)
    error = caught.value.worker_failures[1]
    assert type(error) is OwnError and error.second == 5
    assert list(caught.value.worker_failures) == [1]
    text = str(caught.value)
    assert "[Rank 1 Error Snippet]:" in text and "in deeper" in text and "it is broken" in text
    assert "python/ray/train" not in text


def test_the_same_error_on_all_ranks_is_shown_once(fit, monkeypatch):
    monkeypatch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "60")

    def function():
        collective.barrier()
        raise ValueError(f"rank {rank()}")

    with pytest.raises(WorkerGroupError) as caught:
        fit(function)
    assert sorted(caught.value.worker_failures) == [0, 1]
    assert "[Rank 0,1 Error Snippet]:" in str(caught.value)


@pytest.mark.parametrize("kind", ["raise", "exit", "kill"])
def test_restart_from_the_latest_checkpoint(fit, tmp_path, kind):
    def function(config):
        time_here = count(config["path"])
        start = restored()
        first = 0 if start is None else start + 1
        for n in range(first, 4):
            save(n)
            if n == 1 and time_here == 1:
                collective.barrier()
                if rank() == 1:
                    if kind == "raise":
                        raise RuntimeError("once")
                    if kind == "exit":
                        sys.exit(3)
                    # A report that the controller has not taken yet ends with its process.
                    ray.train.get_all_reported_checkpoints()
                    os.kill(os.getpid(), signal.SIGKILL)
                collective.barrier()
        return start, os.getpid()

    result = fit(
        function, config={"path": str(tmp_path)}, failure_config=FailureConfig(max_failures=1)
    )
    assert result.return_value[0] == 1
    assert [metrics["n"] for _, metrics in result.best_checkpoints] == [0, 1, 2, 3]


def test_a_process_that_dies(fit):
    def function():
        if rank() == 0:
            os._exit(1)
        collective.barrier()

    with pytest.raises(WorkerGroupError) as caught:
        fit(function)
    failure = caught.value.worker_failures[0]
    assert isinstance(failure, WorkerHealthCheckFailedError)
    assert isinstance(failure.health_check_failure, ray.exceptions.ActorDiedError)
    assert list(caught.value.worker_failures) == [0]


def test_system_exit_is_a_failure(fit):
    with pytest.raises(WorkerGroupError) as caught:
        fit(lambda: sys.exit(0), workers=1)
    assert isinstance(caught.value.worker_failures[0], SystemExit)


def test_used_up_retries(fit, tmp_path):
    def function(config):
        raise ValueError(f"time {count(config['path'])}")

    with pytest.raises(WorkerGroupError, match="time 3"):
        fit(
            function,
            workers=1,
            config={"path": str(tmp_path)},
            failure_config=FailureConfig(max_failures=2),
        )


class Unpicklable:
    def __reduce__(self):
        raise TypeError("does not pickle on purpose")


class UnpicklableError(Exception):
    def __reduce__(self):
        raise TypeError("does not pickle on purpose")


def raises_unpicklable():
    raise UnpicklableError("lost")


@pytest.mark.parametrize(
    "function",
    [lambda: Unpicklable(), lambda: ray.train.report({"x": Unpicklable()}), raises_unpicklable],
)
def test_what_does_not_pickle(fit, function):
    with pytest.raises(WorkerGroupError, match="pickle") as caught:
        fit(function, workers=1)
    assert isinstance(caught.value.worker_failures[0], WorkerHealthCheckFailedError)


def test_a_report_that_all_ranks_made_counts_and_others_leave_nothing(fit, tmp_path):
    def function():
        save(1)
        if rank() == 1:
            upload = lambda checkpoint, name: os.kill(os.getpid(), signal.SIGKILL)
        else:
            upload = None
        with tempfile.TemporaryDirectory() as directory:
            open(f"{directory}/of-an-unfinished-report", "w").close()
            ray.train.report(
                {"n": 2}, Checkpoint.from_directory(directory), checkpoint_upload_fn=upload
            )
        stay()

    with pytest.raises(WorkerGroupError):
        fit(function, name="half")
    left = os.listdir(tmp_path / "storage" / "half")
    assert sum(name.startswith("checkpoint_20") for name in left) == 1
    result = fit(restored, name="half", workers=1)
    assert result.return_value == 1
    directories = [name for name in os.listdir(result.path) if name.startswith("checkpoint_20")]
    assert directories == [os.path.basename(result.checkpoint.path)]


def stop_controller_until_own_end():
    """Called by all ranks: stops the controller until rank 1 has died, for a second at most."""
    controller = ray.get(get_session().setup.controller.pid.remote())
    collective.barrier()
    if rank() == 1:
        os.kill(controller, signal.SIGSTOP)
        until_end = f"timeout 1 tail --pid={os.getpid()} -f /dev/null"
        subprocess.Popen(
            ["sh", "-c", f"{until_end}; kill -CONT {controller}"], start_new_session=True
        )
    collective.barrier()


def test_a_report_counts_that_the_controller_reads_after_the_death_of_a_rank(fit, tmp_path):
    """The controller is stopped while the ranks report, and goes on when one of them dies, or after
    a second when that waits for it."""

    def function():
        stop_controller_until_own_end()
        save(1)
        upload = lambda checkpoint, name: os.kill(os.getpid(), signal.SIGKILL)
        with tempfile.TemporaryDirectory() as directory:
            ray.train.report(
                {"n": 2},
                Checkpoint.from_directory(directory),
                checkpoint_upload_fn=upload if rank() == 1 else None,
            )
        stay()

    with pytest.raises(WorkerGroupError):
        fit(function, name="late")
    assert fit(restored, name="late", workers=1).return_value == 1


def test_a_report_counts_that_the_controller_reads_when_all_ranks_have_failed(fit):
    def function():
        stop_controller_until_own_end()
        save(1)
        raise KeyError("after the report")

    with pytest.raises(WorkerGroupError, match="after the report"):
        fit(function, name="failed", workers=4)
    assert fit(restored, name="failed", workers=1).return_value == 1


def test_a_hung_process(fit, monkeypatch):
    monkeypatch.setenv("RAY_TRAIN_WORKER_HEALTH_CHECK_TIMEOUT_S", "1")

    def function():
        os.kill(os.getpid(), signal.SIGSTOP)
        # This thread may run for another moment.
        stay()

    with pytest.raises(WorkerGroupError, match="did not answer for 1 s"):
        fit(function, workers=1)


def test_a_controller_that_dies(fit):
    def function():
        collective.barrier()
        if rank() == 0:
            for name, pid in train_processes():
                if name == "TrainController":
                    os.kill(pid, signal.SIGKILL)
        stay()

    with pytest.raises(ray.exceptions.ActorDiedError):
        fit(function)
    # Its workers end with it, a moment later.
    wait_for_end([pid for _, pid in train_processes()])


def test_a_run_whose_driving_actor_is_killed(train_cluster, tmp_path):
    @ray.remote(num_cpus=0)
    class Driver:
        def fit(self):
            def function():
                (tmp_path / f"pid-{rank()}").write_text(str(os.getpid()))
                collective.barrier()
                (tmp_path / "under way").touch()
                stay()

            DataParallelTrainer(
                function,
                scaling_config=ScalingConfig(num_workers=2),
                run_config=RunConfig(name="run", storage_path=str(tmp_path)),
            ).fit()

    driver = Driver.remote()
    run = driver.fit.remote()
    until((tmp_path / "under way").exists)
    ray.kill(driver)
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(run)
    wait_for_end(pids(tmp_path))
    # This task runs once the room of the two ranks is free.
    assert ray.get(ray.remote(num_cpus=4)(lambda: "there is room").remote()) == "there is room"
    assert_nothing_left()


def test_without_room_it_waits_and_says_why(fit, monkeypatch, capfd):
    monkeypatch.setenv("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "1.5")
    with pytest.raises(ray.train.ControllerError, match="no room for 3 workers within 1.5 s"):
        fit(
            lambda: None,
            scaling_config=ray.train.ScalingConfig(num_workers=3, use_gpu=True),
            failure_config=FailureConfig(controller_failure_limit=0),
        )


def raises():
    raise ValueError("no such method")


@pytest.mark.parametrize("broken", ["on_start", "backend_cls"])
def test_a_backend_that_cannot_start(fit, broken):
    config = BrokenConfig()
    if broken == "backend_cls":
        config.backend_cls = raises
    with pytest.raises(ray.train.ControllerError, match="no such method") as caught:
        fit(lambda: None, backend_config=config)
    assert isinstance(caught.value.controller_failure, ValueError)


class BrokenBackend(Backend):
    def on_start(self, worker_group, backend_config):
        assert worker_group.execute(rank_of_process) == ["0", "1"]
        assert worker_group.execute_single(1, rank_of_process) == "1"
        raise ValueError("no such method")


class BrokenConfig(ray.train.BackendConfig):
    backend_cls = BrokenBackend


def rank_of_process():
    return os.environ["RANK"]


class DyingBackend(Backend):
    """Kills rank 1 in the first attempt while the group is being started."""

    def on_start(self, worker_group, backend_config):
        worker_group.execute(die_once, backend_config.path)


class DyingConfig(ray.train.BackendConfig):
    backend_cls = DyingBackend

    def __init__(self, path):
        self.path = path
        os.mkfifo(path)


def die_once(path):
    """Dies the first time that both ranks are here. Opening a pipe waits for its other end."""
    if not os.path.exists(path):
        return
    if os.environ["RANK"] == "1":
        with open(path, "w") as pipe:
            os.unlink(path)
            pipe.write(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    # A process group would do the same: it breaks on the others when one of them dies.
    with open(path) as pipe:
        wait_for_end([int(pipe.read())])
    raise RuntimeError("connection reset by peer")


def test_a_worker_that_dies_while_the_group_starts(fit, tmp_path):
    result = fit(rank_of_process, backend_config=DyingConfig(str(tmp_path / "died")))
    assert result.return_value == "0"


@pytest.fixture
def program(tmp_path):
    """program(body) starts a driver with a run; returns its process. The run's folder is
    tmp_path/run."""
    started = []

    def start(body):
        started.append(start_program(tmp_path, body))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def start_program(tmp_path, body):
    code = f"""
        import os, sys, threading
        import ray, ray.train, ray.train.session
        from ray.train import RunConfig, ScalingConfig, Checkpoint
        from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

        def function():
            rank = ray.train.get_context().get_world_rank()
            with open({str(tmp_path)!r} + f"/pid-{{rank}}", "w") as f:
                f.write(str(os.getpid()))
            controller = ray.train.session.get_session().setup.controller
            with open({str(tmp_path)!r} + "/pid-controller", "w") as f:
                f.write(str(ray.get(controller.pid.remote())))
            checkpoint = Checkpoint.from_directory({str(tmp_path / "saved")!r})
            ray.train.report({{"n": 1}}, checkpoint)
            print("under way", flush=True)
            threading.Event().wait()

        def fit():
            return DataParallelTrainer(
                function,
                scaling_config=ScalingConfig(num_workers=2),
                run_config=RunConfig(name="run", storage_path={str(tmp_path)!r}),
            ).fit()
    """
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "x").write_text("1")
    text = textwrap.dedent(code) + textwrap.dedent(body)
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if "under way" in line:
            break
    return process


def pids(tmp_path):
    return [int((tmp_path / f"pid-{number}").read_text()) for number in range(2)]


def test_ctrl_c(program, tmp_path):
    process = program(
        """
        ray.init(num_cpus=2)
        try:
            fit()
            print("returned")
        except KeyboardInterrupt:
            print("KeyboardInterrupt")
        finally:
            from ray.util.placement_group import placement_group_table
            print("groups", [entry["state"] for entry in placement_group_table().values()])
        """,
    )
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert "Received SIGINT" in err and "Traceback" not in err, err
    assert "groups ['REMOVED']" in out and "returned" not in out and "Keyboard" not in out
    wait_for_end(pids(tmp_path))
    # The reported checkpoint stays.
    assert "checkpoint_manager_snapshot.json" in os.listdir(tmp_path / "run")


def test_a_third_ctrl_c_ends_the_program_at_once(program, tmp_path):
    process = program(
        """
        ray.init(num_cpus=2)
        fit()
        """,
    )
    # Then its run cannot be aborted in order.
    os.kill(int((tmp_path / "pid-controller").read_text()), signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    for line in process.stderr:
        if "Received SIGINT. " in line:
            break
    process.send_signal(signal.SIGINT)
    for line in process.stderr:
        if "Received SIGINT again" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 1
    wait_for_end(pids(tmp_path))


def test_a_driver_that_is_killed(program, tmp_path):
    process = program("ray.init(num_cpus=2)\nfit()")
    process.kill()
    process.communicate(timeout=120)
    wait_for_end(pids(tmp_path))


def test_a_driver_of_a_cluster_that_goes_on(train_cluster, program, tmp_path):
    address = train_cluster.address_info["gcs_address"]
    process = program(f"ray.init(address={address!r})\nfit()")
    process.kill()
    process.communicate(timeout=120)
    wait_for_end(pids(tmp_path))
    # The head hears of the end a moment later.
    until(lambda: ray.available_resources().get("CPU"), lambda free: free == 4)
    until(train_processes, lambda left: not left)  # The controller holds no CPU.
    assert_nothing_left()
