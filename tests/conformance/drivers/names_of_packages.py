# Names outside the documented interface that packages built on Ray import.
import logging

import ray
import ray.job_submission
from conform import show

show("the logger", lambda: ray.logger is logging.getLogger("ray"))

from ray._private.ray_constants import MIN_RESOURCE_GRANULARITY
from ray._private.runtime_env.constants import RAY_JOB_CONFIG_JSON_ENV_VAR
from ray._private.services import get_node_ip_address
from ray.util import PublicAPI
from ray.util.client import num_connected_contexts, ray as ray_client

show("constants", lambda: (MIN_RESOURCE_GRANULARITY, RAY_JOB_CONFIG_JSON_ENV_VAR))
show("Ray Client", lambda: (ray_client.is_connected(), num_connected_contexts()))
show("PublicAPI", lambda: PublicAPI is ray.util.annotations.PublicAPI)

# The address is known before ray.init(), and asking for it starts nothing.
show("address", lambda: (get_node_ip_address().count("."), ray.is_initialized()))
show(
    "address, once more", lambda: (ray.util.get_node_ip_address().count("."), ray.is_initialized())
)

# Modin passes this for each cluster that it starts; without a Redis it has no effect.
ray.init(num_cpus=2, include_dashboard=False, _redis_password="secret")
show("same address", lambda: get_node_ip_address() == ray.nodes()[0]["NodeManagerAddress"])

from ray.autoscaler.sdk import request_resources

show("request", lambda: request_resources(num_cpus=1))
show("request of bundles", lambda: request_resources(bundles=[{"CPU": 1}]))
show("num_cpus", lambda: request_resources(num_cpus="a"))
show("a fraction", lambda: request_resources(num_cpus=1.5))
show("bundles", lambda: request_resources(bundles="x"))
show("a bundle", lambda: request_resources(bundles=[1]))
show("an amount", lambda: request_resources(bundles=[{"CPU": "a"}]))
show(
    "selectors",
    lambda: request_resources(bundles=[{"CPU": 1}], bundle_label_selectors=[]),
)

from ray.dashboard.modules.job.common import JobStatus
from ray.dashboard.modules.job.pydantic_models import JobDetails
from ray.dashboard.modules.job.sdk import JobSubmissionClient

show("JobStatus", lambda: JobStatus is ray.job_submission.JobStatus)
show("JobDetails", lambda: JobDetails is ray.job_submission.JobDetails)
show("JobSubmissionClient", lambda: JobSubmissionClient is ray.job_submission.JobSubmissionClient)

state = ray._private.state.state
group = ray.util.placement_group([{"CPU": 1}])
ray.get(group.ready())
show(
    "group", lambda: state.placement_group_table(group.id) == ray.util.placement_group_table(group)
)
show("groups", lambda: list(state.placement_group_table()) == [group.id.hex()])
show("nodes", lambda: [node["Alive"] for node in state.node_table()])
show("cluster_resources", lambda: state.cluster_resources()["CPU"])
show("available_resources", lambda: state.available_resources()["CPU"])
show("per node", lambda: [each["CPU"] for each in state.available_resources_per_node().values()])
show("total", lambda: [each["CPU"] for each in state.total_resources_per_node().values()])
show("workers", lambda: type(state.workers()).__name__)

worker = ray._private.worker.global_worker
show("worker", lambda: ray.get_runtime_context().worker is worker)
show("mode", lambda: worker.mode == ray.SCRIPT_MODE)
show("its address", lambda: worker.node_ip_address == get_node_ip_address())
show("its node", lambda: worker.current_node_id.hex() == ray.get_runtime_context().get_node_id())
