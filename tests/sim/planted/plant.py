"""The form of a planted decision, and names that the lists of plants use."""

from dataclasses import dataclass

NODE = "daemons/node_manager/core/"
HEAD = "daemons/head/core/"
STORE = "daemons/object_store/core/"
WORKER = "worker/core/"
SCHEDULING = "common/scheduling/"


@dataclass(frozen=True)
class Plant:
    core: str
    decision: str
    file: str
    old: str
    new: str = ";"
