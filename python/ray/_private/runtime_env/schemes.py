"""The URIs that the fields of a runtime environment may hold."""

from __future__ import annotations

SCHEME = "gcs://"
HOOK_SCHEME = "pickle://"  # Marks a worker_process_setup_hook that was a callable.
ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar.xz")
_KNOWN_REMOTE = ("gcs", "http", "https", "file", "s3", "gs", "azure", "abfss")


def scheme_of(value: str) -> str | None:
    """The scheme of a URI; None for a path."""
    scheme, separator, _ = value.partition("://")
    return scheme if separator else None


def check_uri(field: str, uri: str, suffixes: tuple[str, ...] = ARCHIVES):
    """Raises ValueError for a URI of unknown scheme or suffix."""
    scheme = scheme_of(uri)
    if scheme not in _KNOWN_REMOTE:
        raise ValueError(
            f"{field}: {uri!r} has the unknown scheme {scheme!r}; known are "
            f"{', '.join(_KNOWN_REMOTE)}"
        )
    if not uri.lower().split("?")[0].endswith(suffixes):
        raise ValueError(
            f"{field}: only URIs that end in {', '.join(suffixes)} are supported, got {uri!r}"
        )
