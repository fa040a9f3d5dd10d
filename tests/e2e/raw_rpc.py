"""Speaks the wire protocol without the product's code (common/rpc/preamble.h, frame.h, hello in
common/proto/rpc.proto), so that tests can break its rules."""

import socket
import struct

REQUEST, RESPONSE, ERROR, ONE_WAY, FLAT, HELLO, HELLO_REPLY = range(7)
VERSION = 1


def preamble(target="self", identity="", magic="RAY1"):
    return f"{magic} {target:<10} {identity:<56}".ljust(79).encode() + b"\n"


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number, value):
    """Encodes one Protobuf field: an int as varint, bytes and text as length-delimited."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields_of(message):
    """Yields (field, value) of a message of varints and length-delimited fields."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(message):
        key, value = number(), number()
        if key & 7 == 2:
            value, at = message[at : at + value], at + value
        yield key >> 3, value


def parse(message):
    """Returns {field: value}; for a repeated field, the last value."""
    return dict(fields_of(message))


def method(full_name):
    """Returns the number of a method: FNV-1a, as in common/rpc/frame.h."""
    h = 0x811C9DC5
    for byte in full_name.encode():
        h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    return h


def frame(
    kind,
    message=b"",
    attachment=b"",
    method=0,
    call=0,
    body_bytes=None,
    message_bytes=None,
    padding=bytes(7),
):
    body = message + attachment
    return (
        struct.pack(
            "<IIIIB",
            len(body) if body_bytes is None else body_bytes,
            len(message) if message_bytes is None else message_bytes,
            method,
            call,
            kind,
        )
        + padding
        + body
    )


def hello(token="", version=VERSION, role="client", cluster=b"", **fields):
    message = (
        field(1, version)
        + (field(2, cluster) if cluster else b"")
        + field(3, role)
        + field(5, token)
    )
    return frame(HELLO, message)


def open_socket(listener, timeout=120):
    """Connects to `listener`: (host, port), or the path of a Unix socket."""
    if isinstance(listener, tuple):
        return socket.create_connection(listener, timeout=timeout)
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(timeout)
    raw.connect(str(listener))
    return raw


def receive(raw):
    """Returns the next frame as (kind, method, call, message, attachment), or None at the end of
    the connection."""
    header = exactly(raw, 24)
    if header is None:
        return None
    body_bytes, message_bytes, method_hash, call, kind = struct.unpack("<IIIIB", header[:17])
    body = exactly(raw, body_bytes)
    if body is None:
        return None
    return kind, method_hash, call, body[:message_bytes], body[message_bytes:]


def exactly(raw, n):
    data = b""
    while len(data) < n:
        try:
            piece = raw.recv(n - len(data))
        except ConnectionError:
            return None
        if not piece:
            return None
        data += piece
    return data


def error_of(got):
    """Returns (code, text) of an error frame, or None for anything else."""
    if got is None or got[0] != ERROR:
        return None
    fields = parse(got[3])
    return fields.get(1, 0), fields.get(2, b"").decode()


def ends(raw):
    """Reads until the peer closes, and returns True; raises socket.timeout when it does not
    close."""
    try:
        while raw.recv(65536):
            pass
    except ConnectionError:
        pass
    return True
