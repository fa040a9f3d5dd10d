"""ray.util.log_once and its switches."""

from __future__ import annotations

import time

_logged: set[str] = set()
_disabled = False
_period_s: float | None = None
_last_reset = 0.0
_PERIOD_S = 60.0


def log_once(key: str) -> bool:
    """Whether something is to be logged: true for the first call with a key in this process, then false (true again once in 60 s after
    enable_periodic_logging())."""
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
    """log_once() is false from now on."""
    global _disabled
    _disabled = True


def enable_periodic_logging() -> None:
    """log_once() forgets its keys every 60 s from now on. What disable_log_once_globally() switched off stays off."""
    global _period_s, _last_reset
    _period_s, _last_reset = _PERIOD_S, time.monotonic()
