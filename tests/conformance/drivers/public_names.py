# The package has these names at its top.
import ray

print(
    [
        name
        for name in (
            "get",
            "put",
            "wait",
            "remote",
            "init",
            "shutdown",
            "is_initialized",
            "kill",
            "cancel",
            "get_actor",
            "nodes",
            "timeline",
            "method",
            "client",
            "cluster_resources",
            "available_resources",
            "get_gpu_ids",
            "get_runtime_context",
            "LoggingConfig",
            "ClientBuilder",
            "java_function",
            "java_actor_class",
            "ObjectRef",
            "ObjectRefGenerator",
            "DynamicObjectRefGenerator",
            "actor",
            "util",
            "exceptions",
            "internal",
            "cross_language",
            "remote_function",
            "runtime_context",
            "widgets",
        )
        if not hasattr(ray, name)
    ]
)
