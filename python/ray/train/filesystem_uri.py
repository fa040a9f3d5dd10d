"""File systems by URI: pyarrow's where it knows the scheme, else fsspec's."""

from __future__ import annotations

from typing import Any

from ray.train.optional import available, require


def open_uri(uri: str) -> tuple[Any, str]:
    """Returns (file system, path in it).

    Raises ImportError if neither package is installed, ValueError if none of those that are knows
    the scheme, and OSError for a store that does not answer.
    """
    reasons = []
    if available("pyarrow.fs"):
        arrow = require("pyarrow.fs", uri)
        try:
            return arrow.FileSystem.from_uri(uri)
        except ValueError as error:
            # ArrowInvalid, for an unknown scheme or a malformed URI, is a ValueError.
            reasons.append(f"pyarrow: {error}")
    elif not available("fsspec"):
        require("pyarrow.fs", f"The storage {uri!r}")
    if available("fsspec"):
        fsspec = require("fsspec", uri)
        try:
            return fsspec.core.url_to_fs(uri)
        except (ValueError, ImportError) as error:
            reasons.append(f"fsspec: {error}")
    raise ValueError(f"No installed package opens {uri!r} ({'; '.join(reasons)}).")
