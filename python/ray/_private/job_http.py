"""HTTP and the reading half of a WebSocket (RFC 6455) for ray.job_submission.

Only the standard library is needed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.client
import os
import ssl
import struct
import urllib.parse
from collections.abc import AsyncIterator

from ray import _raylet

_TIMEOUT_S = 60
_WEBSOCKET_KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MAX_FRAME = 64 << 20
_TEXT, _BINARY, _CONTINUATION, _CLOSE, _PING = 1, 2, 0, 8, 9


def tls_context(verify: bool | str) -> ssl.SSLContext:
    """The TLS settings for `verify`: True, False (accept any certificate), or a path.

    The path is that of a file or a directory of certificates.
    """
    # RAY_TLS_CA_CERT names the cluster's authority; without it the system's authorities count.
    if verify is True:
        return ssl.create_default_context(cafile=os.environ.get("RAY_TLS_CA_CERT") or None)
    if verify is False:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    return ssl.create_default_context(
        cafile=None if os.path.isdir(verify) else verify,
        capath=verify if os.path.isdir(verify) else None,
    )


def scheme() -> str:
    """The scheme of the cluster's HTTP interfaces; a cluster uses TLS everywhere or nowhere."""
    return "https://" if os.environ.get("RAY_USE_TLS") in ("1", "true", "True") else "http://"


def auth_token() -> str:
    """This user's token, empty when there is none: a server that needs one says so."""
    if os.environ.get("RAY_AUTH_MODE") == "disabled":
        return ""
    try:
        return str(_raylet.auth_token(False))
    except ValueError:
        return ""


def dashboard_of(head_address: str) -> str:
    """HOST:PORT of the HTTP interface of the head at HOST:PORT. ValueError when it has none."""
    return str(_raylet.fetch_value(head_address, auth_token(), "dashboard", "dashboard").decode())


class Server:
    """One HTTP server. Every request uses a connection of its own."""

    def __init__(self, address: str, headers: dict[str, str], verify: bool | str):
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"{address!r} is not the address of an HTTP server: use http://HOST:PORT"
            )
        self.host, self.secure = parts.hostname, parts.scheme == "https"
        self.port = parts.port or (443 if self.secure else 80)
        self.base = parts.path.rstrip("/")
        self.headers = headers
        self.tls = tls_context(verify) if self.secure else None

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> tuple[int, bytes]:
        """Sends a request; returns (status, body). Raises ConnectionError without an answer."""
        made = (
            http.client.HTTPSConnection(self.host, self.port, timeout=_TIMEOUT_S, context=self.tls)
            if self.secure
            else http.client.HTTPConnection(self.host, self.port, timeout=_TIMEOUT_S)
        )
        headers = (
            {**self.headers, "Content-Type": content_type} if body is not None else self.headers
        )
        try:
            made.request(method, self.base + path, body=body, headers=headers)
            answer = made.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionError(
                f"{self.host}:{self.port}: {error or type(error).__name__}"
            ) from error
        finally:
            made.close()

    async def texts(self, path: str) -> AsyncIterator[str]:
        """Yields the text frames of a WebSocket until the server closes it.

        Raises WebSocketRefused when the server does not open it, ConnectionError when it breaks.
        """
        try:
            reader, writer = await asyncio.open_connection(
                self.host, self.port, ssl=self.tls, limit=1 << 20
            )
        except OSError as error:
            raise ConnectionError(f"{self.host}:{self.port}: {error}") from error
        try:
            await self._upgrade(reader, writer, path)
            async for text in _frames(reader, writer):
                yield text
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise ConnectionError(
                f"{self.host}:{self.port}: the connection broke: {error}"
            ) from error
        finally:
            writer.close()

    async def _upgrade(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str):
        key = base64.b64encode(os.urandom(16))
        lines = [
            f"GET {self.base + path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key.decode()}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
            "",
            "",
        ]
        writer.write("\r\n".join(lines).encode())
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split()[1])
        fields = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:])
        }
        if status != 101:
            raise WebSocketRefused(
                status, await reader.readexactly(int(fields.get("content-length", 0)))
            )
        if (
            fields.get("sec-websocket-accept")
            != base64.b64encode(hashlib.sha1(key + _WEBSOCKET_KEY).digest()).decode()
        ):
            raise ConnectionError(f"{self.host}:{self.port} is not a WebSocket server")


class WebSocketRefused(Exception):
    """The server answered with an HTTP status instead of opening the WebSocket."""

    def __init__(self, status: int, body: bytes):
        super().__init__(status, body)
        self.status, self.body = status, body


async def _frames(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[str]:
    message = b""
    while True:
        first, second = await reader.readexactly(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", await reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", await reader.readexactly(8))
        if size > _MAX_FRAME or second & 0x80:
            raise ConnectionError(
                "the server sent an invalid WebSocket frame (masked, or larger than 64 MiB)"
            )
        data, kind = await reader.readexactly(size), first & 0x0F
        if kind in (_CLOSE, _PING):
            # A close frame is answered by a close frame, a ping by a pong. A client must mask its
            # frames (RFC 6455); a mask of zeros is enough.
            answer = _CLOSE if kind == _CLOSE else 10
            writer.write(bytes([0x80 | answer, 0x80 | len(data[:125])]) + b"\0\0\0\0" + data[:125])
            await writer.drain()
            if kind == _CLOSE:
                return
        elif kind in (_TEXT, _BINARY, _CONTINUATION):
            message += data
            if first & 0x80:
                yield message.decode("utf-8", "replace")
                message = b""
