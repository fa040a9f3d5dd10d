"""The files of a profile, in <storage_path>/<name>.profiles/<id>/ beside the run's folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import time
from typing import Any, Iterator

from ray import _raylet
from ray.train.filesystem import LOCAL, FileSystem, copy_tree, operations
from ray.train.profiles import digest
from ray.train.profiles.order import Order

MERGED, SUMMARY_JSON, SUMMARY_TEXT = "merged.trace.json.gz", "summary.json", "summary.txt"
# A trace with more bytes than this is not read, because parsing takes ten to twenty times as much
# memory.
MOST_TRACE_BYTES = 256 << 20
# Names of folders in which one process makes its files begin with this.
_UNFINISHED = ".unfinished-"


def folder_of(storage: Any, profile_id: str) -> str:
    """Returns the folder of a profile, in the file system of the storage."""
    return f"{storage.experiment_fs_path}.profiles/{profile_id}"


@contextlib.contextmanager
def unfinished_files(files: FileSystem, folder: str, name: str) -> Iterator[str]:
    """A local directory for files in the making; at the end of the block they are in the folder.

    Nothing of it is left if the block raises.
    """
    if files.is_local:
        place = os.path.join(folder, f"{_UNFINISHED}{name}")
        os.makedirs(place, exist_ok=True)
    else:
        place = tempfile.mkdtemp(prefix="profile-", dir=_raylet.context()["session_dir"])
    try:
        yield place
        if files.is_local:
            for one in os.listdir(place):
                os.replace(os.path.join(place, one), os.path.join(folder, one))
        else:
            copy_tree(LOCAL, place, files, folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def remove_unfinished(files: FileSystem, folder: str) -> None:
    """Removes what killed processes have left, and the folder if nothing is in it."""
    if not files.is_local or not os.path.isdir(folder):
        return
    for name in os.listdir(folder):
        if name.startswith(_UNFINISHED):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    for place in (folder, os.path.dirname(folder)):
        try:
            os.rmdir(place)
        except OSError:
            # The folder has files.
            return


class RankFiles:
    """Writes the files of one rank, in its process."""

    def __init__(self, order: Order, session: Any):
        self._order, self._session = order, session
        self._files = operations(session.storage.storage_filesystem)

    def write(self, profiler: Any, spans: list, boundaries: list) -> dict[str, Any]:
        """Returns the paths, the digest (digest.py) and the fragment of the merged trace.

        profiler: a TorchProfiler that has stopped. Raises what fails.
        """
        session, order = self._session, self._order
        rank, folder = session.world_rank, order.directory
        trace_name = f"{socket.gethostname()}_{os.getpid()}.{time.time_ns()}.pt.trace.json"
        memory_name = f"rank{rank}_memory.json"
        with unfinished_files(self._files, folder, f"rank{rank}") as place:
            trace, memory = os.path.join(place, trace_name), os.path.join(place, memory_name)
            notes = profiler.notes()
            profiler.export(trace)
            has_memory, problem = _exported(profiler, memory)
            notes += problem
            found, data = _digested(
                {
                    "rank": rank,
                    "label": f"{session.node_ip}, pid {os.getpid()}",
                    "trace": trace,
                    "fragment": os.path.join(place, "fragment.gz"),
                    "memory": memory if has_memory else None,
                    "origin_ns": order.origin_ns,
                    "spans": spans,
                    "boundaries": boundaries,
                }
            )
        found["notes"] = notes + found["notes"]
        return {
            "trace": f"{folder}/{trace_name}",
            "memory": f"{folder}/{memory_name}" if has_memory else None,
            "digest": found,
            "fragment": data,
        }


def _exported(profiler: Any, path: str) -> tuple[bool, list[str]]:
    """Returns whether there is a timeline of memory, and sentences that say why not."""
    try:
        return profiler.export_memory(path), []
    except Exception as error:
        if os.path.exists(path):
            os.unlink(path)
        return False, [f"The memory timeline failed: {type(error).__name__}: {error}"]


def _digested(order: dict) -> tuple[dict, bytes]:
    """Returns the digest and the fragment. The trace stays when they cannot be made."""
    try:
        size = os.path.getsize(order["trace"])
        if size > MOST_TRACE_BYTES:
            raise RuntimeError(
                f"it has {size >> 20} MiB, more than {MOST_TRACE_BYTES >> 20}. Record fewer steps, "
                "or no stacks"
            )
        found = digest.in_a_process(order)
        with open(order["fragment"], "rb") as file:
            data = file.read()
        os.unlink(order["fragment"])
        return found, data
    except Exception as error:
        if os.path.exists(order["fragment"]):
            os.unlink(order["fragment"])
        note = f"The trace of rank {order['rank']} could not be summarised: {error}"
        return digest.empty(note), b""
