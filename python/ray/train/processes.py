"""Waiting for the end of processes of this machine, without asking again and again."""

from __future__ import annotations

import os
import select


def ended(pid: int) -> int | None:
    """A descriptor that becomes readable when the process has ended; None if it has already.

    Also None where the kernel or the container has no pidfd: then nobody waits.
    """
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


async def wait_all(descriptors: list[int | None], timeout_s: float) -> None:
    """Waits until all of these processes have ended, at most for timeout_s; closes the
    descriptors."""
    # Drivers use wait() and need no event loop, so they do not import asyncio.
    import asyncio

    loop = asyncio.get_running_loop()
    waiting = []
    for descriptor in descriptors:
        if descriptor is not None:
            future = loop.create_future()
            loop.add_reader(descriptor, _done, loop, descriptor, future)
            waiting.append(future)
    if waiting:
        await asyncio.wait(waiting, timeout=timeout_s)
    for index, descriptor in enumerate(descriptors):
        if descriptor is not None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            descriptors[index] = None


def _done(loop, descriptor, future) -> None:
    loop.remove_reader(descriptor)
    if not future.done():
        future.set_result(None)


def wait(descriptor: int | None, timeout_s: float) -> None:
    """Waits until the process has ended, at most for timeout_s; closes the descriptor."""
    if descriptor is None:
        return
    try:
        select.select([descriptor], [], [], timeout_s)
    finally:
        os.close(descriptor)
