"""Directories that several processes of a node share: one makes the copy, the last one deletes it.

Who may do what is decided by locks on a file beside the directory. The kernel releases the lock
of a process that dies, so nobody waits for one that is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from typing import Callable, Iterator


def _lock_path(target: str, tag: str = "") -> str:
    directory, name = os.path.split(target)
    return os.path.join(directory, f".{name}{tag}.lock")


def _locked(path: str, mode: int) -> tuple[int, bool]:
    """Opens and locks the file. Returns its descriptor, and whether that took waiting."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    has_waited = False
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
            except BlockingIOError:
                has_waited = True
                fcntl.flock(descriptor, mode)
            # The previous holder may have removed the file, so that others lock a new file of this
            # name.
            if _is_at(path, descriptor):
                return descriptor, has_waited
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def turn_at(target: str, tag: str = "") -> Iterator[bool]:
    """One process or thread at a time is in this block; gives whether this one has waited.

    tag: only those with an equal one wait for each other.
    """
    path = _lock_path(target, tag)
    descriptor, has_waited = _locked(path, fcntl.LOCK_EX)
    try:
        yield has_waited
    finally:
        os.unlink(path)
        os.close(descriptor)


def make(target: str, fill: Callable[[str], None]) -> None:
    """Makes the directory by fill(path): it appears under its name when it is complete."""
    part = f"{target}.part"
    # A process that died while it copied may have left this directory.
    shutil.rmtree(part, ignore_errors=True)
    try:
        fill(part)
        os.rename(part, target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


@contextlib.contextmanager
def shared(target: str, copy: Callable[[str], None]) -> Iterator[str]:
    """The directory, which copy(target) makes if nobody has, while the block runs.

    The last process or thread that leaves deletes it.
    """
    path = _lock_path(target)
    while True:
        descriptor, _ = _locked(path, fcntl.LOCK_SH)
        if os.path.isdir(target):
            break
        # The kernel changes the kind of a lock in two steps, so this lock is given up, and the
        # directory is looked at again under the other lock.
        os.close(descriptor)
        with turn_at(target):
            if not os.path.isdir(target):
                copy(target)
    try:
        yield target
    finally:
        _leave(path, descriptor, target)


def _leave(path: str, descriptor: int, target: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # Others still read the directory.
        pass
    else:
        if _is_at(path, descriptor):
            shutil.rmtree(target, ignore_errors=True)
            os.unlink(path)
    finally:
        os.close(descriptor)
