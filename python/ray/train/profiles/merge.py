"""Joins the fragments of all ranks to one trace, which Perfetto and chrome://tracing open."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from typing import Iterable

# So many bytes are decompressed at a time.
_CHUNK_BYTES = 1 << 20


def merge(fragments: Iterable[bytes], more: list[dict], facts: dict, path: str) -> None:
    """Writes the trace, compressed.

    fragments: of the ranks, as fragment.write() makes them. more: further events. facts: of the
    trace as a whole, for example baseTimeNanoseconds.
    """
    with gzip.open(path, "wb", compresslevel=5) as file:
        head = json.dumps({"displayTimeUnit": "ms", **facts}, separators=(",", ":"))
        file.write(head[:-1].encode() + b',"traceEvents":[\n')
        file.write(b",\n".join(json.dumps(one, separators=(",", ":")).encode() for one in more))
        is_first = not more
        for fragment in fragments:
            with gzip.open(io.BytesIO(fragment)) as source:
                chunk = source.read(_CHUNK_BYTES)
                if not chunk:
                    continue
                file.write(chunk if is_first else b",\n" + chunk)
                is_first = False
                shutil.copyfileobj(source, file, _CHUNK_BYTES)
        file.write(b"\n]}\n")
