# log_once, get_node_ip_address and friends.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
show(
    "log_once", lambda: [ray.util.log_once("k"), ray.util.log_once("k"), ray.util.log_once("other")]
)
show("ip", lambda: ray.util.get_node_ip_address().count("."))
show(
    "names",
    lambda: [
        name
        for name in (
            "ActorPool",
            "accelerators",
            "as_completed",
            "disable_log_once_globally",
            "enable_periodic_logging",
            "get_current_placement_group",
            "get_node_instance_id",
            "get_node_ip_address",
            "get_placement_group",
            "inspect_serializability",
            "iter",
            "list_named_actors",
            "log_once",
            "map_unordered",
            "metrics",
            "pdb",
            "placement_group",
            "placement_group_table",
            "queue",
            "register_serializer",
            "deregister_serializer",
            "remove_placement_group",
            "rpdb",
            "state",
            "connect",
            "disconnect",
            "scheduling_strategies",
            "multiprocessing",
            "joblib",
        )
        if not hasattr(ray.util, name)
        and not __import__("importlib").util.find_spec("ray.util." + name)
    ],
)
show(
    "accelerators",
    lambda: (ray.util.accelerators.NVIDIA_H100, ray.util.accelerators.NVIDIA_TESLA_V100),
)
