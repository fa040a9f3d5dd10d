# A driver without a namespace has one of its own, a UUID.
import uuid
import ray

ray.init(num_cpus=1, include_dashboard=False)
namespace = ray.get_runtime_context().namespace
print(str(uuid.UUID(namespace)) == namespace)
