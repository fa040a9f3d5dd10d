"""The state machine of a run: events in, actions out, with a clock that the test moves."""

import asyncio
import types

import pytest

import ray.train.run
from ray.train import events as ev
from ray.train.controller import (
    ELASTIC_FIRST_LOOK_S,
    FIRST_PAUSE_S,
    Limits,
    RunMachine,
    State,
)
from ray.train.errors import WorkerGroupStartupFailedError, WorkerGroupStartupTimeoutError
from ray.train.reported import TrainingReport
from ray.train.spec import settings_of


class Run:
    """A machine with a clock and a record of its actions. A test ends with nothing unexpected."""

    def __init__(self, workers=2, **limits):
        fewest, most = workers if isinstance(workers, tuple) else (workers, workers)
        self.machine = RunMachine(Limits(min_workers=fewest, max_workers=most, **limits))
        self.now = 100.0
        self.actions = []

    def send(self, event):
        self.actions += self.machine.handle(event, self.now)
        return self

    def pass_time(self, seconds):
        """Moves the clock, and sends the ticks that were wanted meanwhile."""
        end = self.now + seconds
        while self.machine.deadline is not None and self.machine.deadline <= end:
            self.now = max(self.now, self.machine.deadline)
            self.send(ev.Tick())
        self.now = end
        return self

    def take(self, *kinds):
        """Takes the actions so far, without those that only show something; or only those of these
        kinds."""
        actions, self.actions = self.actions, []
        shown = (ev.Show, ev.ShowAttempt, ev.Say)
        return [
            action
            for action in actions
            if (isinstance(action, kinds) if kinds else not isinstance(action, shown))
        ]

    @property
    def state(self):
        return self.machine.state

    @property
    def attempt(self):
        return self.machine.attempt

    def start(self, size=2):
        """Leads an attempt from its scheduling to running functions."""
        assert self.take() == [ev.StartGroup(self.attempt, size)]
        self.send(ev.GroupPlaced(self.attempt)).send(ev.GroupStarted(self.attempt))
        assert self.state is State.RUNNING
        self.take()
        return self

    def fail(self, rank=0, kind=ev.RAISED):
        failure = ev.WorkerFailure(kind, ValueError(f"rank {rank}"), "trace", f"error of {rank}")
        return self.send(ev.WorkerFailed(self.attempt, rank, failure))

    def report(self, rank, **metrics):
        return self.send(ev.Reported(self.attempt, rank, TrainingReport(metrics)))

    def finish(self, rank, value=None):
        return self.send(ev.WorkerFinished(self.attempt, rank, value))

    def stopped(self):
        return self.send(ev.GroupStopped(self.attempt))


def begun(workers=2, **limits):
    return Run(workers, **limits).send(ev.Begin())


def running(workers=2, **limits):
    most = workers[1] if isinstance(workers, tuple) else workers
    return begun(workers, **limits).start(most)


def test_a_run_to_its_end():
    run = running()
    run.report(0, loss=1)
    assert run.take() == []
    run.report(1, loss=2)
    assert run.take() == [
        ev.Register(1, (TrainingReport({"loss": 1}), TrainingReport({"loss": 2})))
    ]
    run.finish(1, None)
    assert run.take() == []
    run.finish(0, b"value")
    assert run.take() == [ev.StopGroup(1, True)]
    run.stopped()
    assert run.take() == [ev.End(ev.Outcome("FINISHED", value=b"value"))]
    assert run.state is State.FINISHED and run.machine.deadline is None


def test_statuses_of_a_run_that_is_retried():
    run = begun(max_failures=1)
    run.send(ev.GroupStarted(1)).fail(0).fail(1).stopped().send(ev.GroupStarted(2))
    run.finish(0).finish(1).stopped()
    assert [action.status for action in run.take(ev.Show)] == [
        "SCHEDULING",
        "RUNNING",
        "RESTARTING",
        "SCHEDULING",
        "RUNNING",
        "FINISHED",
    ]


def test_reports_are_matched_by_their_order():
    run = running()
    run.report(0, n=1).report(0, n=2)
    assert run.take() == []
    run.report(1, n=1)
    assert [action.reports[0].metrics for action in run.take()] == [{"n": 1}]
    run.report(1, n=2)
    assert [action.reports[0].metrics for action in run.take()] == [{"n": 2}]


def test_without_retries_the_first_failure_ends_the_run():
    run = running()
    run.fail(1)
    assert run.state is State.FAILING and run.take() == []
    run.pass_time(run.machine.limits.failure_gather_s)
    told, stop = run.take()
    assert isinstance(told, ev.TellFailures) and list(told.failures) == [1]
    assert stop == ev.StopGroup(1, False)
    run.stopped()
    (end,) = run.take()
    assert end.outcome.status == "ERRORED" and list(end.outcome.failures) == [1]


def test_failures_are_gathered_for_as_long_as_the_user_says():
    run = running(failure_gather_s=60.0)
    run.fail(1).pass_time(59)
    assert run.state is State.FAILING and run.take() == []
    run.fail(0)
    assert list(run.take(ev.TellFailures)[0].failures) == [0, 1]


@pytest.mark.parametrize("text, seconds", [("", 0.2), ("0.1", 0.2), ("3", 3.0)])
def test_the_variable_that_says_so(text, seconds):
    settings = settings_of({"RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": text})
    assert settings.failure_gather_s == seconds
    with pytest.raises(ValueError, match="RAY_TRAIN_HEALTH_CHECK_INTERVAL_S='soon'"):
        settings_of({"RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "soon"})


def test_failures_of_several_ranks_are_one_failure():
    run = running(3, max_failures=1)
    run.fail(2).fail(0)
    assert run.take() == []
    # The third rank is the last one, so that nobody is waited for any longer.
    run.finish(1)
    told, stop = run.take()
    assert list(told.failures) == [0, 2]
    run.stopped()
    assert run.take() == [ev.StartGroup(2, 3)]
    assert run.machine.failures == 1


def test_reports_of_a_failing_group_still_count():
    run = running(max_failures=0)
    run.report(0, n=1)
    run.fail(1)
    assert run.take() == []
    run = running(max_failures=0)
    run.fail(0).report(0, n=1).report(1, n=1)
    assert [type(action) for action in run.take()] == [ev.Register]


@pytest.mark.parametrize("limit, attempts", [(0, 1), (2, 3)])
def test_max_failures(limit, attempts):
    run = begun(max_failures=limit)
    for number in range(1, attempts + 1):
        run.start()
        run.fail(0).fail(1)
        run.take()
        run.stopped()
        assert run.attempt == number + (number < attempts)
    assert run.state is State.ERRORED


def test_failures_without_limit():
    run = begun(max_failures=-1)
    for _ in range(50):
        run.start().fail(0).fail(1)
        run.take()
        run.stopped()
    assert run.state is State.SCHEDULING and run.machine.failures == 50


def test_a_worker_that_dies_after_its_function_ended():
    run = running(max_failures=0)
    run.finish(0, b"x").fail(0, ev.DIED).finish(1)
    told, stop = run.take()
    assert list(told.failures) == [0] and not stop.orderly


def test_a_worker_that_returns_after_it_was_taken_for_dead():
    run = running(max_failures=0)
    run.fail(0, ev.DIED).finish(0)
    assert run.state is State.FAILING and run.take() == []
    run.finish(1)
    told, stop = run.take()
    assert list(told.failures) == [0] and not stop.orderly


def test_a_drained_worker_that_returns_after_it_was_taken_for_dead():
    run = running(3, preemption_grace_s=60.0)
    run.send(ev.NodeDraining(1, {"n": [2]}, run.now + 50, 1_000)).take()
    run.fail(2, ev.DIED).finish(2)
    assert run.state is State.RUNNING and run.take() == []
    assert run.send(ev.Abort()).take() == [ev.StopGroup(1, False)]


def test_events_of_an_old_attempt_are_ignored():
    run = running(max_failures=1)
    run.fail(0).fail(1)
    run.stopped().take()
    before = run.state, run.attempt
    for event in (
        ev.WorkerFinished(1, 0, b""),
        ev.Reported(1, 0, TrainingReport({})),
        ev.GroupStopped(1),
        ev.GroupStarted(1),
    ):
        run.send(event)
    assert run.take() == [] and (run.state, run.attempt) == before


def test_a_group_that_finds_no_room_is_tried_again():
    run = begun(start_timeout_s=60.0)
    assert run.take() == [ev.StartGroup(1, 2)]
    run.pass_time(59.9)
    assert run.take() == []
    run.pass_time(0.1)
    assert run.take() == [ev.StopGroup(1, False)]
    run.stopped()
    assert run.state is State.PAUSING and run.take() == []
    run.pass_time(FIRST_PAUSE_S)
    assert run.take() == [ev.StartGroup(2, 2)]
    assert run.machine.failures == 0 and run.machine.start_failures == 1


def test_a_group_with_room_may_take_long_to_start():
    run = begun(start_timeout_s=60.0)
    run.send(ev.GroupPlaced(1)).pass_time(10_000)
    assert run.take() == [ev.StartGroup(1, 2)] and run.state is State.SCHEDULING


def test_controller_failure_limit():
    run = begun(controller_failure_limit=1, start_timeout_s=60.0)
    run.pass_time(60).stopped()
    run.pass_time(FIRST_PAUSE_S)
    run.pass_time(60).stopped()
    (end,) = run.take(ev.End)
    assert isinstance(end.outcome.error, WorkerGroupStartupTimeoutError)


def test_pauses_between_failed_starts_grow_up_to_a_bound():
    run = begun()
    pauses = []
    for _ in range(15):
        failure = ev.StartFailure(WorkerGroupStartupFailedError("died"), True, "died")
        run.send(ev.GroupFailed(run.attempt, failure)).stopped()
        pauses.append(round(run.machine.deadline - run.now, 3))
        run.pass_time(pauses[-1])
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8] and max(pauses) == pauses[-1] == 30.0


def test_a_restart_after_a_failure_of_workers_does_not_pause():
    run = begun(max_failures=1, start_timeout_s=60.0)
    run.pass_time(60).stopped()
    run.pass_time(FIRST_PAUSE_S).take()
    run.send(ev.GroupStarted(2)).fail(0).fail(1).stopped()
    assert run.take(ev.StartGroup) == [ev.StartGroup(3, 2)]


def test_an_error_of_the_backend_ends_the_run():
    run = begun()
    error = ValueError("init_method")
    run.send(ev.GroupFailed(1, ev.StartFailure(error, False, "ValueError: init_method")))
    run.stopped()
    (end,) = run.take(ev.End)
    assert end.outcome.error is error


def test_abort_in_every_state():
    def stopping():
        run = running(max_failures=1)
        return run.fail(0).fail(1)

    def pausing():
        run = begun(start_timeout_s=60.0).pass_time(60)
        return run.stopped()

    for made in (Run, begun, running, lambda: running().fail(0), stopping, pausing):
        run = made()
        run.take()
        run.send(ev.Abort())
        if run.state is not State.ABORTED:
            run.stopped()
        assert run.state is State.ABORTED
        assert [end.outcome.status for end in run.take(ev.End)] == ["ABORTED"]


def test_abort_hurries_an_orderly_end():
    run = running()
    run.finish(0).finish(1)
    assert run.take() == [ev.StopGroup(1, True)]
    run.send(ev.Abort())
    assert run.take() == [ev.StopGroup(1, False)]
    run.stopped()
    assert run.take()[-1].outcome.status == "ABORTED"


def test_a_broken_controller_ends_the_run():
    run = running()
    error = OSError("disk")
    run.send(ev.ControllerBroke(error))
    assert run.take() == [ev.StopGroup(1, False)]
    run.stopped()
    assert run.take()[-1].outcome.error is error


def test_a_checkpoint_that_cannot_be_registered_fails_a_run_that_has_returned():
    run = running()
    run.finish(0).finish(1)
    run.send(ev.ControllerBroke(OSError("disk")))
    run.stopped()
    assert run.take()[-1].outcome.status == "ERRORED"


# ---- elastic sizes


def test_elastic_start_takes_what_is_there():
    run = begun((1, 4))
    assert run.take() == [ev.StartGroup(1, 4)]
    run.pass_time(ELASTIC_FIRST_LOOK_S)
    assert run.take() == [ev.MeasureRoom(1)]
    run.send(ev.RoomMeasured(1, 3))
    assert run.take() == [ev.StopGroup(1, False)]
    run.stopped()
    assert run.take() == [ev.StartGroup(2, 3)]
    run.send(ev.GroupPlaced(2)).send(ev.GroupStarted(2))
    assert run.state is State.RUNNING and run.machine.start_failures == 0


def test_a_look_at_the_nodes_that_fails_is_repeated_later():
    async def fails(attempt):
        raise ConnectionError("the head does not answer")

    sent = []
    size = types.SimpleNamespace(size=4)
    run = types.SimpleNamespace(_possible_workers=fails, _machine=size, _send=sent.append)
    asyncio.run(ray.train.run.Run._measure(run, 1))
    assert sent == [ev.RoomMeasured(1, 4)]
    machine = begun((1, 4)).pass_time(ELASTIC_FIRST_LOOK_S)
    machine.take()
    machine.send(sent[0]).pass_time(ELASTIC_FIRST_LOOK_S + 5)
    assert machine.take() == [ev.MeasureRoom(1)]


def test_elastic_start_waits_for_the_fewest():
    run = begun((2, 4), start_timeout_s=60.0)
    run.pass_time(ELASTIC_FIRST_LOOK_S).send(ev.RoomMeasured(1, 0)).stopped()
    assert run.take(ev.StartGroup) == [ev.StartGroup(1, 4), ev.StartGroup(2, 2)]
    for _ in range(3):
        run.pass_time(ELASTIC_FIRST_LOOK_S + 5).send(ev.RoomMeasured(2, 1))
    assert run.take(ev.StopGroup, ev.StartGroup) == []
    run.send(ev.GroupPlaced(2)).send(ev.GroupStarted(2))
    assert run.state is State.RUNNING and run.machine.size == 2


def test_elastic_run_grows_and_that_is_no_failure():
    run = begun((1, 4), resize_interval_s=30.0)
    run.pass_time(ELASTIC_FIRST_LOOK_S).send(ev.RoomMeasured(1, 2)).stopped()
    run.take()
    run.send(ev.GroupPlaced(2)).send(ev.GroupStarted(2)).pass_time(30)
    assert run.take() == [ev.MeasureRoom(2)]
    run.send(ev.RoomMeasured(2, 2)).pass_time(30)
    assert run.take() == [ev.MeasureRoom(2)]
    run.send(ev.RoomMeasured(2, 4))
    assert "RESIZING" in [action.status for action in run.actions if isinstance(action, ev.Show)]
    assert run.take() == [ev.StopGroup(2, False)]
    run.stopped()
    assert run.take() == [ev.StartGroup(3, 4)]
    assert run.machine.failures == 0


def test_elastic_run_does_not_resize_when_functions_have_returned():
    run = running((1, 2), resize_interval_s=30.0)
    run.finish(0).pass_time(30)
    run.send(ev.RoomMeasured(1, 1))
    assert run.take(ev.StopGroup) == []


def test_elastic_run_starts_smaller_after_a_failure():
    run = running((1, 2), max_failures=1)
    run.fail(0, ev.DIED).fail(1)
    run.stopped()
    assert run.take(ev.StartGroup) == [ev.StartGroup(2, 2)]
    run.pass_time(ELASTIC_FIRST_LOOK_S).send(ev.RoomMeasured(2, 1)).stopped()
    assert run.take(ev.StartGroup) == [ev.StartGroup(3, 1)]
    assert run.machine.failures == 1


# ---- drained nodes


def test_a_drained_node_ends_the_group_at_its_deadline():
    run = running(max_failures=0)
    run.send(ev.NodeDraining(1, {"n": [1]}, run.now + 50, 1_000))
    assert run.take() == [ev.TellDraining(1_000, {"n": [1]})]
    run.pass_time(49.9)
    assert run.take() == []
    run.pass_time(0.1)
    assert run.take() == [ev.StopGroup(1, False)]
    run.stopped()
    assert run.take() == [ev.StartGroup(2, 2)]
    assert (run.machine.failures, run.machine.preemptions) == (0, 1)


def test_a_failure_while_a_node_is_drained_has_its_own_budget():
    run = running(max_failures=0, max_preemption_failures=1)
    run.send(ev.NodeDraining(1, {"n": [1]}))
    run.fail(1, ev.DIED).pass_time(run.machine.limits.failure_gather_s).stopped()
    run.take()
    run.send(ev.GroupStarted(2)).send(ev.NodeDraining(2, {"m": [0]}, run.now + 5, 7))
    run.pass_time(5).stopped()
    outcome = run.take(ev.End)[0].outcome
    assert (outcome.drained, outcome.deadline_ms, outcome.drain_timed_out) == ({"m": [0]}, 7, True)


def test_the_earliest_of_several_deadlines_counts():
    run = running()
    run.send(ev.NodeDraining(1, {"n": [1]}))
    run.send(ev.NodeDraining(1, {"m": [0]}, run.now + 5, 7))
    run.send(ev.NodeDraining(1, {"k": [0]}, run.now + 500, 700))
    run.pass_time(5)
    assert run.take(ev.StopGroup) == [ev.StopGroup(1, False)]


def test_preemption_grace():
    run = running(preemption_grace_s=10.0)
    run.send(ev.NodeDraining(1, {"n": [1]}, run.now + 50, 1_000)).pass_time(50)
    # The node of this rank has gone.
    run.fail(1, ev.DIED).pass_time(9.9)
    assert run.take(ev.StopGroup) == []
    run.pass_time(0.1)
    assert run.take(ev.StopGroup) == [ev.StopGroup(1, False)]


@pytest.mark.parametrize(
    "limits, drained, rank, kind",
    [
        ({}, [1], 1, ev.DIED),
        ({"preemption_grace_s": 10.0}, [0], 0, ev.DIED),
        ({"preemption_grace_s": 10.0}, [0], 1, ev.DIED),
        ({"preemption_grace_s": 10.0}, [1], 1, ev.RAISED),
    ],
)
def test_failures_that_do_not_wait_for_the_grace(limits, drained, rank, kind):
    run = running(max_failures=1, **limits)
    run.send(ev.NodeDraining(1, {"n": drained}, run.now + 50, 1_000))
    run.fail(rank, kind).pass_time(run.machine.limits.failure_gather_s)
    assert run.take(ev.StopGroup) == [ev.StopGroup(1, False)]


def test_ranks_that_end_in_the_grace_end_the_attempt():
    run = running(preemption_grace_s=10.0)
    run.send(ev.NodeDraining(1, {"n": [1]}, run.now + 50, 1_000))
    run.fail(1, ev.DIED).send(ev.WorkerFinished(1, 0, None))
    assert run.take(ev.StopGroup) == [ev.StopGroup(1, False)]


def test_reports_without_the_ranks_of_a_drained_node():
    run = running(3, relax_on_preemption=True)
    run.report(0, n=1).report(1, n=1)
    assert run.take() == []
    run.send(ev.NodeDraining(1, {"n": [2]}, run.now + 50, 1_000))
    first = (TrainingReport({"n": 1}), TrainingReport({"n": 1}), None)
    assert run.take() == [ev.Register(1, first), ev.TellDraining(1_000, {"n": [2]}, [2])]
    # The report that the others have made without this rank does not count any more, but its next
    # one does.
    run.report(2, n=1).report(2, n=2).report(0, n=2)
    assert run.take() == []
    run.report(1, n=2)
    assert run.take() == [ev.Register(1, (TrainingReport({"n": 2}),) * 3)]


def test_reports_wait_for_a_drained_rank_zero_and_where_nobody_wants_otherwise():
    for relax, drained in ((True, [0, 1]), (False, [1])):
        run = running(relax_on_preemption=relax)
        run.report(1 - drained[-1])
        run.send(ev.NodeDraining(1, {"n": drained}, run.now + 50, 1_000))
        assert run.take() == [ev.TellDraining(1_000, {"n": drained})]


def test_a_later_drain_of_rank_zero_leaves_the_ranks_without_which_reports_complete():
    run = running(3, relax_on_preemption=True)
    run.send(ev.NodeDraining(1, {"n": [2]})).send(ev.NodeDraining(1, {"m": [0]}))
    assert [one.optional for one in run.take(ev.TellDraining)] == [[2], []]
    run.report(0).report(1)
    assert run.take(ev.Register) == [ev.Register(1, (TrainingReport({}),) * 2 + (None,))]


def test_words_compare_by_kind():
    assert ev.GroupPlaced(1) != ev.GroupStarted(1)
    assert ev.GroupPlaced(1) == ev.GroupPlaced(attempt=1)
    with pytest.raises(TypeError):
        ev.GroupPlaced(1, 2)
    with pytest.raises(TypeError):
        ev.RoomMeasured(1)
