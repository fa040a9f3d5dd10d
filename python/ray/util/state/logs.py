"""Log files of every node.

C++ (observability/state/logs.h) finds and reads them, or the HTTP interface when that is the
address.
"""

from __future__ import annotations

import codecs
import json
import time
from typing import Any, Iterator

from ray import _raylet
from ray.util.state import over_http
from ray.util.state.api import resolve_address
from ray.util.state.exception import RayStateApiException, ServerUnavailable, ValidationError

_DEFAULT_INTERVAL_S = 0.5


def list_logs(
    address: str | None = None,
    node_id: str | None = None,
    node_ip: str | None = None,
    glob_filter: str | None = None,
    timeout: int = 30,
) -> dict[str, list[str]]:
    """Returns the log files of a node, by kind.

    The kinds are worker_out, worker_err, driver, gcs_server, raylet, object_store and internal.
    glob_filter: a shell pattern of names.
    """
    assert node_ip is not None or node_id is not None, (
        "At least one of node ip and node id is required"
    )
    where = resolve_address(address)
    if over_http.is_http(where):
        found = over_http.get_result(
            where,
            "/api/v0/logs",
            {
                "node_id": node_id,
                "node_ip": node_ip,
                "glob": glob_filter or "*",
                "timeout": timeout,
            },
            timeout,
        )
        return {kind: list(names) for kind, names in found.items()}
    try:
        return dict(
            json.loads(
                _raylet.list_logs(
                    where, node_id or "", node_ip or "", glob_filter or "*", float(timeout)
                )
            )
        )
    except ConnectionError as error:
        raise ServerUnavailable(f"The head at {where} did not answer: {error}") from error
    except Exception as error:
        raise RayStateApiException(str(error)) from error


def _pieces(
    address: str, query: dict[str, Any], follow: bool, interval_s: float, timeout: int
) -> Iterator[bytes]:
    try:
        log = _raylet.open_log(address, query, float(timeout))
        while True:
            piece = _raylet.log_piece(log)
            if piece:
                yield piece
            elif not follow:
                return
            else:
                time.sleep(interval_s)
    except ValueError as error:
        raise ValidationError(str(error)) from error
    except Exception as error:
        raise RayStateApiException(str(error)) from error


def _query(given: dict[str, Any]) -> dict[str, Any]:
    """The words of a query, from those arguments of get_log() that choose the log."""
    if given["suffix"] not in ("out", "err"):
        raise ValidationError(f"suffix must be 'out' or 'err', got {given['suffix']!r}")
    owned = given["actor_id"] or given["task_id"] or given["submission_id"]
    if not (owned or given["node_id"] or given["node_ip"]):
        raise ValidationError(
            "node_id or node_ip must be provided as constructor arguments when no actor or "
            "task_id is supplied as arguments."
        )
    if not (owned or given["pid"] or given["filename"]):
        raise ValidationError(
            "one of filename, actor_id, task_id, pid, submission_id is needed to choose a log"
        )
    words = {**given, "pid": int(given["pid"]) if given["pid"] else None}
    return {name: value for name, value in words.items() if value}


def get_log(  # Ray's signature
    address: str | None = None,
    node_id: str | None = None,
    node_ip: str | None = None,
    filename: str | None = None,
    actor_id: str | None = None,
    task_id: str | None = None,
    pid: int | str | None = None,
    follow: bool = False,
    tail: int = -1,
    timeout: int = 30,
    suffix: str = "out",
    encoding: str | None = "utf-8",
    errors: str = "strict",
    submission_id: str | None = None,
    attempt_number: int = 0,
    _interval: float | None = None,
    filter_ansi_code: bool = False,
) -> Iterator[Any]:
    """Yields a log in pieces of text (of bytes when encoding is None).

    The log is that of an actor, a task (only its own lines), a worker (pid) or a submitted job, or
    a file by name. tail: only the last lines; -1 means all. follow: goes on until the caller
    stops, checking every `_interval` seconds (0.5). timeout: seconds for finding the file. Raises
    ValueError when the arguments do not choose a log, RayStateApiException when there is no such
    log.
    """
    query = _query(
        {
            "node_id": node_id,
            "node_ip": node_ip,
            "filename": filename,
            "actor_id": actor_id,
            "task_id": task_id,
            "submission_id": submission_id,
            "pid": pid,
            "suffix": suffix,
        }
    )
    where = resolve_address(address)
    interval_s = _interval or _DEFAULT_INTERVAL_S
    if over_http.is_http(where):
        query.update(
            lines=tail,
            attempt_number=attempt_number,
            timeout=timeout,
            filter_ansi_code="true" if filter_ansi_code else "false",
        )
        if follow:
            query["interval"] = interval_s
        pieces = over_http.stream(
            where,
            "/api/v0/logs/stream" if follow else "/api/v0/logs/file",
            query,
            None if follow else timeout,
        )
    else:
        query.update(
            attempt=attempt_number, lines=tail, follow=follow, without_colours=filter_ansi_code
        )
        pieces = _pieces(where, query, follow, interval_s, timeout)
    decoder = codecs.getincrementaldecoder(encoding)(errors) if encoding else None
    for block in pieces:
        yield decoder.decode(block) if decoder else block
    if decoder:
        rest = decoder.decode(b"", final=True)
        if rest:
            yield rest
