"""ray.util.pdb.set_trace, which is that of ray.util.rpdb."""

from ray.util.rpdb import post_mortem, set_trace

__all__ = ["post_mortem", "set_trace"]
