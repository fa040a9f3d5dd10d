"""The head's key-value store.

Keys and values are bytes (str is encoded as UTF-8). Keys live as long as the cluster and are
visible to every job. The functions raise AssertionError for keys and values of other types,
RuntimeError when not connected.
"""

from __future__ import annotations

from ray import _raylet
from ray._private.session import global_worker

# This separates keys from the runtime's own namespaces.
_PREFIX = b"kv:"


def _bytes(value: str | bytes) -> bytes:
    if isinstance(value, str):
        value = value.encode()
    assert isinstance(value, bytes), f"expected str or bytes, got {type(value).__name__}"
    return value


def _space(namespace: str | bytes | None) -> bytes:
    if namespace is not None and not isinstance(namespace, (str, bytes)):
        raise TypeError(f"namespace: expected str or bytes, got {type(namespace).__name__}")

    global_worker.check_connected()
    return _PREFIX + _bytes(namespace or b"")


def _internal_kv_initialized() -> bool:
    """Whether this process is connected."""
    return bool(_raylet.session())


def _internal_kv_get(key: str | bytes, *, namespace: str | bytes | None = None) -> bytes | None:
    """Returns the value; None when there is none."""
    return _raylet.kv_get(_space(namespace), _bytes(key))


def _internal_kv_exists(key: str | bytes, *, namespace: str | bytes | None = None) -> bool:
    return _internal_kv_get(key, namespace=namespace) is not None


def _internal_kv_put(
    key: str | bytes,
    value: str | bytes,
    overwrite: bool = True,
    *,
    namespace: str | bytes | None = None,
) -> bool:
    """Stores a value; an existing one is only replaced with `overwrite`.

    Returns whether the key existed before.
    """
    space, key, value = _space(namespace), _bytes(key), _bytes(value)
    if _raylet.kv_put(space, key, value, False):
        return False
    if overwrite:
        _raylet.kv_put(space, key, value, True)
    return True


def _internal_kv_del(
    key: str | bytes, *, del_by_prefix: bool = False, namespace: str | bytes | None = None
) -> int:
    """Removes a key, or all keys with this prefix; returns how many were removed."""
    space = _space(namespace)
    keys = _raylet.kv_list(space, _bytes(key)) if del_by_prefix else [_bytes(key)]
    return sum(bool(_raylet.kv_delete(space, each)) for each in keys)


def _internal_kv_list(prefix: str | bytes, *, namespace: str | bytes | None = None) -> list[bytes]:
    """Returns the keys that start with `prefix`."""
    return list(_raylet.kv_list(_space(namespace), _bytes(prefix)))
