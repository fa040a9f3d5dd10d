"""The command "train_profile" of a controller's process, which the head sends on to it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import math
from typing import Any

from ray import _raylet
from ray.train.profiles.config import ProfileConfig

NAME = "train_profile"
# How long a rank may make no step, by default and at most, in seconds.
_TIMEOUT_S, _LONGEST_S = 120.0, 86400.0
_FLAGS = ("record_shapes", "profile_memory", "with_stack")
_FIELDS = {"run_id", "steps", "ranks", "timeout_s", *_FLAGS}


def parsed(blob: bytes, run_id: str) -> tuple[ProfileConfig, float]:
    """Returns the request and its timeout in seconds. Raises ValueError for a wrong request."""
    try:
        request = json.loads(blob or b"{}")
    except ValueError as error:
        raise ValueError(f"the request is no JSON: {error}") from None
    if not isinstance(request, dict):
        raise ValueError("the request must be a JSON object")
    unknown = sorted(request.keys() - _FIELDS)
    if unknown:
        raise ValueError(
            f"the request has unknown fields: {', '.join(unknown)}. It may have "
            f"{', '.join(sorted(_FIELDS))}"
        )
    if request.get("run_id", run_id) != run_id:
        raise ValueError(f"this process controls the run {run_id}, not {request['run_id']}")
    timeout_s = request.get("timeout_s", _TIMEOUT_S)
    is_number = isinstance(timeout_s, (int, float)) and not isinstance(timeout_s, bool)
    if not is_number or not math.isfinite(timeout_s) or not 0 < timeout_s <= _LONGEST_S:
        raise ValueError(
            f"timeout_s={timeout_s!r}: it must be a number of seconds, more than 0 and at most "
            f"{_LONGEST_S:g}"
        )
    options = {name: request[name] for name in ("steps", "ranks", *_FLAGS) if name in request}
    return ProfileConfig(**options), float(timeout_s)


def serve(run_id: str, profiles: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Answers the command from now on, in a thread of its own, through the controller's loop."""

    def execute(blob: bytes) -> bytes:
        config, timeout_s = parsed(blob, run_id)
        answer = asyncio.run_coroutine_threadsafe(profiles.request(config, timeout_s), loop)
        try:
            return json.dumps(answer.result()).encode()
        except concurrent.futures.CancelledError:
            raise RuntimeError("the run ended before the profile was complete") from None

    _raylet.set_command(NAME, execute)


def end() -> None:
    """Stops answering: the command is unknown from now on."""
    _raylet.set_command(NAME, None)
