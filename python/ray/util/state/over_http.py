"""The state API of a cluster of which only the address of the HTTP interface is known."""

from __future__ import annotations

import http.client
import json
from typing import Any, Iterator
from urllib.parse import urlencode, urlsplit

from ray import _raylet
from ray._private.job_http import tls_context
from ray.util.state.exception import RayStateApiException, ServerUnavailable

_CONNECT_S = 5
_PIECE_BYTES = 1 << 16


def is_http(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def _open(
    address: str, path: str, query: Any, timeout: float | None
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    where = urlsplit(address)
    pairs = query.items() if isinstance(query, dict) else query
    words = urlencode([(key, value) for key, value in pairs if value is not None])
    try:
        token = _raylet.auth_token(False)
    except Exception:
        # The cluster may need no token; if it does, its answer says so.
        token = ""
    connection = None
    try:
        connection = (
            http.client.HTTPSConnection(
                where.netloc, timeout=_CONNECT_S, context=tls_context(verify=True)
            )
            if where.scheme == "https"
            else http.client.HTTPConnection(where.netloc, timeout=_CONNECT_S)
        )
        connection.connect()
        connection.sock.settimeout(timeout + _CONNECT_S if timeout is not None else None)
        connection.request(
            "GET",
            f"{where.path.rstrip('/')}{path}?{words}",
            headers={"Authorization": f"Bearer {token}"} if token else {},
        )
        return connection, connection.getresponse()
    except OSError as error:
        if connection is not None:
            connection.close()
        raise ServerUnavailable(
            f"{address} does not answer ({error}): is the cluster running, and is this the "
            "address of its HTTP interface?"
        ) from error


def _reason(address: str, status: int, body: bytes) -> str:
    text = body.decode(errors="replace")
    if status in (401, 403):
        return (
            f"{address} refuses the token ({text[:10_000]}): set RAY_AUTH_TOKEN or put the "
            "cluster's into ~/.ray/auth_token"
        )
    try:
        return str(json.loads(text)["msg"])
    except (ValueError, KeyError, TypeError):
        return text[:10_000]


def get_result(address: str, path: str, query: Any, timeout: float) -> Any:
    """Returns `data.result` of the answer. Raises RayStateApiException when it is refused."""
    connection, response = _open(address, path, query, timeout)
    try:
        body = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise RayStateApiException(_reason(address, response.status, body))
    return json.loads(body)["data"]["result"]


def stream(address: str, path: str, query: Any, timeout: float | None) -> Iterator[bytes]:
    """Yields a text as it arrives."""
    connection, response = _open(address, path, query, timeout)
    try:
        if response.status != 200:
            raise RayStateApiException(_reason(address, response.status, response.read()))
        while piece := response.read1(_PIECE_BYTES):
            yield piece
    except (OSError, http.client.HTTPException) as error:
        raise RayStateApiException(
            f"{address} closed the connection before the log was complete: {error}"
        ) from error
    finally:
        connection.close()
