"""Lets programs log a message once: log_once() and its switches."""

from __future__ import annotations

import time

_logged: set[str] = set()
_disabled = False
_is_periodic = False
# When a key was logged for the first time, or again: the newest such time.
_last_logged = 0.0
_PERIOD_S = 60.0


def log_once(key: str) -> bool:
    """Whether the caller should log: true for the first call with a key in this process.

    After enable_periodic_logging(), a call with a known key more than 60 s after the last true
    answer is false, but forgets all keys: the next call with each of them is true again.
    """
    global _last_logged
    if _disabled:
        return False
    if key not in _logged:
        _logged.add(key)
        _last_logged = time.monotonic()
        return True
    if _is_periodic and time.monotonic() - _last_logged > _PERIOD_S:
        _logged.clear()
    return False


def disable_log_once_globally() -> None:
    """Makes log_once() return false from now on."""
    global _disabled
    _disabled = True


def enable_periodic_logging() -> None:
    """Makes log_once() forget its keys when it has not been true for 60 s.

    It does not undo disable_log_once_globally().
    """
    global _is_periodic
    _is_periodic = True
