"""Makes the process of a test a rank of a run, without a cluster."""

import types

from ray.train.session import set_session
from ray.train.times import Times


def become_rank(world_size=1, **changes):
    """Sets the session of this process: rank 0 of `world_size` ranks, with these changes."""
    fields = {
        "world_rank": 0,
        "world_size": world_size,
        "local_rank": 0,
        "local_world_size": world_size,
        "node_rank": 0,
        "node_ip": "127.0.0.1",
        "gpu_ids": [],
        "is_local": False,
        "times": Times(None),
        "steps": None,
    }
    set_session(types.SimpleNamespace(**{**fields, **changes}))
