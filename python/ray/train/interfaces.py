"""The network interfaces of this machine, and which of them has an address."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import socket
from typing import Iterator


class _SocketAddress(ctypes.Structure):
    # The family is followed by the address, whose length depends on the family.
    _fields_ = [("family", ctypes.c_ushort), ("data", ctypes.c_ubyte * 26)]


class _InterfaceAddress(ctypes.Structure):
    pass


_InterfaceAddress._fields_ = [
    ("next", ctypes.POINTER(_InterfaceAddress)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.POINTER(_SocketAddress)),
    ("netmask", ctypes.c_void_p),
    ("broadcast", ctypes.c_void_p),
    ("data", ctypes.c_void_p),
]

# Maps a family to the offset of the address in _SocketAddress.data and its length.
_PLACES = {socket.AF_INET: (2, 4), socket.AF_INET6: (6, 16)}


def addresses() -> Iterator[tuple[str, str]]:
    """Yields (name of the interface, IP address) for every address of this machine.

    Raises OSError if the system does not tell.
    """
    libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    first = ctypes.POINTER(_InterfaceAddress)()
    if libc.getifaddrs(ctypes.byref(first)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "getifaddrs")
    try:
        entry = first
        while entry:
            found = _text(entry.contents.address)
            if found is not None:
                yield entry.contents.name.decode(), found
            entry = entry.contents.next
    finally:
        libc.freeifaddrs(first)


def _text(address) -> str | None:
    if not address or address.contents.family not in _PLACES:
        return None
    family = address.contents.family
    begin, length = _PLACES[family]
    return socket.inet_ntop(family, bytes(address.contents.data[begin : begin + length]))


def interface_of(ip: str) -> str | None:
    """Returns the name of the interface that has this address, or None."""
    return next((name for name, address in addresses() if address == ip), None)
