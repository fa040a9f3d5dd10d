"""Stops at which tasks and actors wait for a debugger, for ray.util.rpdb and ray_debugpy."""

from __future__ import annotations

import json
import os
import time
import uuid

from ray._private.session import global_worker
from ray.experimental import internal_kv


def host() -> str:
    return (
        global_worker.context["node_ip"]
        if os.environ.get("RAY_DEBUGGER_EXTERNAL") == "1"
        else "127.0.0.1"
    )


class Waiting:
    """A stop that waits for a debugger.

    Until removed it is listed in the head's key-value store (namespace `pdb`, keys
    RAY_PDB_<uuid>).
    """

    def __init__(self, place: str, address: str, kind: str, name: str | None):
        self._key = f"RAY_PDB_{name or uuid.uuid4().hex}"
        entry = {
            "place": place,
            "pdb_address": address,
            "kind": kind,
            "pid": os.getpid(),
            "timestamp": time.time(),
        }
        internal_kv._internal_kv_put(self._key, json.dumps(entry), namespace="pdb")

    def remove(self) -> None:
        internal_kv._internal_kv_del(self._key, namespace="pdb")
