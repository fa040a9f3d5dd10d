"""The address of this node, under the private name by which packages ask for it."""

from ray.util import get_node_ip_address

__all__ = ["get_node_ip_address"]
