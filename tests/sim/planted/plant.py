"""The form of a planted decision, and names that the lists of plants use."""

from dataclasses import dataclass

NODE = "daemons/node_manager/core/"
HEAD = "daemons/head/core/"
STORE = "daemons/object_store/core/"
WORKER = "worker/core/"
SCHEDULING = "common/scheduling/"
HEAD_TEST, NODE_TEST = "head_core_test", "node_core_test"
WORKER_TEST = "worker_core_test"


@dataclass(frozen=True)
class Plant:
    core: str
    decision: str
    file: str
    old: str
    new: str = ";"
    # For a plant that the simulator cannot find: the reason, and the program and the name of a unit
    # test that finds it.
    elsewhere: str = ""
    unit: tuple[str, str] = ("", "")
