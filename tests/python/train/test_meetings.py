"""The meeting place of the ranks of a group, tested without a cluster and without time."""

import asyncio

import pytest

from ray.train.session import DONE, FAILED, MISSED
from ray.train.synchronization import SynchronizationActor

DRAINED = (1_000, {"n": [2]})


async def turns():
    """Lets everything run that can run now. An answer reaches its caller in the third turn."""
    loop = asyncio.get_running_loop()
    for _ in range(3):
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


class Meetings:
    """Three ranks; calls that wait are tasks."""

    def __init__(self):
        self.place = SynchronizationActor(3, None, 60.0)

    async def call(self, rank, call, value=None):
        """Begins a call; the task has its answer at once if there is nothing to wait for."""
        task = asyncio.ensure_future(self.place.meet(rank, call, value, True))
        await turns()
        return task

    async def returned(self, rank):
        await self.place.returned(rank)
        await turns()

    async def drain(self):
        await self.place.set_draining(*DRAINED, [2])
        await turns()


def meeting(function):
    """Runs the test in an event loop, in which it may leave calls that wait."""

    def test():
        async def run():
            await function(Meetings())
            waiting = asyncio.all_tasks() - {asyncio.current_task()}
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

        asyncio.run(run())

    test.__name__ = function.__name__
    return test


@meeting
async def test_a_drain_completes_the_report_that_is_under_way(meetings):
    calls = [await meetings.call(0, "report", "first"), await meetings.call(1, "report")]
    assert not any(call.done() for call in calls)
    await meetings.drain()
    assert [call.result() for call in calls] == [(DONE, "first")] * 2


@meeting
async def test_a_rank_of_a_drained_node_hears_what_it_has_missed(meetings):
    await meetings.drain()
    for name in ("first", "second"):
        await meetings.call(0, "report", name)
        assert (await meetings.call(1, "report")).result() == (DONE, name)
    info = [await meetings.call(rank, "get_preemption_info") for rank in (0, 1)]
    assert info[0].result() == (DONE, DRAINED)
    for call, answer in (("report", "first"), ("report", "second")):
        assert (await meetings.call(2, call)).result() == (MISSED, answer)
    assert (await meetings.call(2, "get_preemption_info")).result() == (MISSED, DRAINED)
    # From here on the rank is in step again.
    late = await meetings.call(2, "report")
    assert not late.done()
    await meetings.call(1, "report")
    await meetings.call(0, "report", "third")
    assert late.result() == (DONE, "third")
    assert await meetings.place.agreed_after(3) == ["first", "second", "third"]


@pytest.mark.parametrize("call", ["barrier", "broadcast_from_rank_zero"])
def test_calls_of_the_user_wait_for_all_ranks(call):
    @meeting
    async def test(meetings):
        await meetings.drain()
        first = await meetings.call(0, call, 1)
        await meetings.call(1, call)
        assert not first.done()
        await meetings.call(2, call)
        assert first.result() == (DONE, 1)

    test()


@meeting
async def test_another_call_than_the_missed_one_fails_on_that_rank_only(meetings):
    await meetings.drain()
    await meetings.call(0, "report", "first")
    await meetings.call(1, "report")
    word, text = (await meetings.call(2, "barrier")).result()
    assert word == FAILED and "called barrier() where the other ranks have called report()" in text
    await meetings.call(0, "report", "second")
    assert (await meetings.call(1, "report")).result() == (DONE, "second")


@meeting
async def test_different_calls_of_ranks_that_stay_fail_without_the_others(meetings):
    await meetings.drain()
    first = await meetings.call(0, "report", "first")
    await meetings.call(1, "barrier")
    assert first.result()[0] == FAILED


@meeting
async def test_ranks_do_not_wait_for_one_whose_function_has_returned(meetings):
    calls = [await meetings.call(0, "report", "first"), await meetings.call(2, "report")]
    await meetings.returned(1)
    for call in (*calls, await meetings.call(0, "barrier")):
        word, text = call.result()
        assert word == FAILED and "function of rank 1 has returned" in text
    assert "rank 0 in report(); rank 2 in report()" in text


@meeting
async def test_the_last_ranks_leave_one_after_another(meetings):
    for rank in range(3):
        last = await meetings.call(rank, "report", "last")
    assert last.result() == (DONE, "last")
    await meetings.returned(2)
    await meetings.returned(0)
    assert (await meetings.call(1, "report")).result()[0] == FAILED


@meeting
async def test_the_return_of_a_rank_that_need_not_come(meetings):
    await meetings.drain()
    first = await meetings.call(0, "report", "first")
    await meetings.returned(2)
    assert not first.done()
    await meetings.call(1, "report")
    assert first.result() == (DONE, "first")
    assert (await meetings.call(0, "barrier")).result()[0] == FAILED


@meeting
async def test_a_rank_that_is_too_far_behind_waits_for_the_end(meetings):
    from ray.train import synchronization

    kept, synchronization._MISSED_KEPT = synchronization._MISSED_KEPT, 2
    try:
        await meetings.drain()
        for _ in range(3):
            await meetings.call(0, "report", "name")
            await meetings.call(1, "report")
        assert not (await meetings.call(2, "report")).done()
        await meetings.call(0, "report", "name")
        assert (await meetings.call(1, "report")).done()
    finally:
        synchronization._MISSED_KEPT = kept
