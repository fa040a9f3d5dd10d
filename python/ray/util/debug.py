"""ray.util.log_once and its switches."""

from __future__ import annotations

import time

_logged: set[str] = set()
_disabled = False
_period_s: float | None = None
_last_reset = 0.0
_PERIOD_S = 60.0


def log_once(key: str) -> bool:
    """Whether the caller should log: true for the first call with a key in this process.

    After enable_periodic_logging() it is true again once every 60 s.
    """
    global _last_reset
    if _disabled:
        return False
    if key not in _logged:
        _logged.add(key)
        return True
    if _period_s is not None and time.monotonic() - _last_reset > _period_s:
        _logged.clear()
        _last_reset = time.monotonic()
    return False


def disable_log_once_globally() -> None:
    """Makes log_once() return false from now on."""
    global _disabled
    _disabled = True


def enable_periodic_logging() -> None:
    """Makes log_once() forget its keys every 60 s.

    It does not undo disable_log_once_globally().
    """
    global _period_s, _last_reset
    _period_s, _last_reset = _PERIOD_S, time.monotonic()
