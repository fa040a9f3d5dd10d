"""ObjectRefs as futures: `await ref`, ref.future(), ref.as_future()."""

from __future__ import annotations

import itertools
import select
import threading
import weakref
from collections import deque

from ray import _raylet
from ray._private import service_thread
from ray.exceptions import RaySystemError

_tokens = itertools.count(1)
# A loop's waits are looked through for futures that are done when there are at least so many.
_FEWEST_SWEPT = 64

# An asyncio loop calls this before it hands out references that have become ready. An actor's loop
# takes the cancellations of its calls: they are known before the children that are cancelled with
# a call can answer, but a loop that sees both at the same time may look at either first. It returns
# whether there were any.
before_completions: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class _EndedTokens:
    """Holds tokens whose references will never become ready, because their session has ended."""

    def __init__(self):
        self.tokens = set()

    def error_of(self, token):
        if token not in self.tokens:
            return None
        self.tokens.discard(token)
        return RaySystemError(_raylet.SESSION_OVER)

    def end_session(self, waiting, queue):
        for token in list(waiting):
            self.tokens.add(token)
            queue.push(token)


class _LoopCompletions:
    """Completions for one asyncio loop.

    The loop itself watches the queue's descriptor, so that no other thread is woken.
    """

    def __init__(self, loop, queue):
        self.queue = queue
        self.waiting = {}
        # The number of waits at which the next sweep is due.
        self.sweep_at = _FEWEST_SWEPT
        self.lost = _EndedTokens()
        self.ready: deque = deque()
        self.loop = weakref.ref(loop)
        self.before = before_completions.get(loop)
        loop.add_reader(self.queue.fileno(), self.drain)

    def drain(self):
        try:
            self.ready += self.queue.take()
            if self.before:
                self.before()
            while self.ready:
                entry, lost = self.waiting.get(self.ready[0]), self.lost.error_of(self.ready[0])
                if entry:
                    ref, future, then = entry
                    then(ref, future, lost)
                self.waiting.pop(self.ready[0], None)
                self.ready.popleft()
        # The loop may go on after Ctrl-C, as in a notebook; it then handles the rest.
        except KeyboardInterrupt:
            loop = self.loop()
            if loop:
                loop.call_soon(self.drain)
            raise

    def sweep(self):
        """Forgets waits that were given up, such as those of asyncio.wait_for().

        A callback of each future would find them at once, but every await would pay for it; this
        costs nearly nothing, as the number of waits doubles from one sweep to the next.
        """
        for token, (_, future, _) in list(self.waiting.items()):
            if future.done():
                del self.waiting[token]
        self.sweep_at = max(_FEWEST_SWEPT, 2 * len(self.waiting))

    def watch(self, ref, future, then):
        token = next(_tokens)
        if len(self.waiting) >= self.sweep_at:
            self.sweep()
        self.waiting[token] = (ref, future, then)
        try:
            is_pending = self.queue.add(ref, token)
        except BaseException:
            del self.waiting[token]
            raise
        if not is_pending:
            del self.waiting[token]
            # The coroutine that asks may have been cancelled while it ran. It hears of that when it
            # waits, which it would not do for a future that is done.
            if self.before and self.before():
                future.get_loop().call_soon(then, ref, future)
            else:
                then(ref, future)


def settle(ref, future, lost=None):
    """Puts the value of a ready reference into a future; `lost` says why there will be no value."""
    if future.cancelled() or future.done():
        return
    try:
        if lost:
            raise lost
        value = _raylet.ready_value(ref)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(value)


def _mark_ready(ref, future, lost=None):
    if not future.done():
        future.set_result(None)


_loops = None


def _completions_of(loop) -> _LoopCompletions:
    global _loops
    if _loops is None:
        _loops = weakref.WeakKeyDictionary()
    found = _loops.get(loop)
    if found is None:
        _forget_closed_loops()
        found = _loops[loop] = _LoopCompletions(loop, _unused_queue())
    return found


# Queues of closed loops. References that are still pending keep a queue's descriptor open, so a new
# loop takes over such a queue; it ignores the tokens of the earlier one, which it does not know.
_spare_queues: deque = deque()


def _forget_closed_loops():
    """Drops what closed loops waited for.

    Their futures hold the loops, so that the weak keys alone would keep every such loop.
    """
    for reference in _loops.keyrefs():
        loop = reference()
        if loop is not None and loop.is_closed():
            completions = _loops.pop(loop, None)
            if completions is not None:
                _spare_queues.append(completions.queue)


def _unused_queue():
    try:
        return _spare_queues.popleft()
    except IndexError:
        return _raylet.CompletionQueue()


def asyncio_future(ref):
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        loop = asyncio.get_event_loop()
    future = loop.create_future()
    _completions_of(loop).watch(ref, future, settle)
    return future


def readiness(ref, loop):
    """Returns a future of `loop` that is done when `ref` is ready; the value is not read."""
    future = loop.create_future()
    _completions_of(loop).watch(ref, future, _mark_ready)
    return future


def await_ref(ref):
    return asyncio_future(ref).__await__()


# Completions for concurrent.futures, with a thread of its own.
class _Helper:
    def __init__(self):
        self.queue = _raylet.CompletionQueue()
        self.waiting = {}
        self.lost = _EndedTokens()
        service_thread.start(self.run, "ray-futures")

    def run(self):
        poll = select.poll()
        poll.register(self.queue.fileno(), select.POLLIN)
        while True:
            poll.poll()
            for token in self.queue.take():
                entry, lost = self.waiting.pop(token, None), self.lost.error_of(token)
                if entry:
                    try:
                        entry[1](entry[0], lost)
                    # A failing callback must not end the thread that all futures need.
                    except Exception:
                        import logging

                        logging.getLogger("ray").exception("a callback of an ObjectRef failed")
                # This frees the reference before the next wait.
                entry = None

    def watch(self, ref, then):
        token = next(_tokens)
        self.waiting[token] = (ref, then)
        is_pending = False
        try:
            is_pending = self.queue.add(ref, token)
        finally:
            if not is_pending:
                # The thread may have taken the entry away at the end of a session.
                self.waiting.pop(token, None)
        if not is_pending:
            then(ref)


_helper = None
_helper_lock = threading.Lock()


def _shared_helper() -> _Helper:
    global _helper
    with _helper_lock:
        if _helper is None:
            _helper = _Helper()
        return _helper


def concurrent_future(ref):
    from concurrent.futures import Future

    future = Future()
    _shared_helper().watch(ref, lambda ready, lost=None: settle(ready, future, lost))
    return future


def on_completed(ref, callback):
    def call(ready, lost=None):
        try:
            if lost:
                raise lost
            value = _raylet.ready_value(ready)
        except Exception as error:
            value = error
        callback(value)

    _shared_helper().watch(ref, call)


def end_session():
    """Ends every wait for references of the session that has just ended.

    Their futures get an error, each in the thread that would have completed it.
    """
    everyone = [*(_loops.values() if _loops is not None else ()), *((_helper,) if _helper else ())]
    for completions in everyone:
        completions.lost.end_session(completions.waiting, completions.queue)
