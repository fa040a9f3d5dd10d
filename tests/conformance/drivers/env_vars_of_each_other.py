# env_vars may refer to the environment, to their job's and to each other.
import os
import ray

os.environ["OF_DRIVER"] = "of the driver's process"
JOB = {
    "B": "job_b",
    "Z": "${A_LATER}",
    "A_LATER": "later",
    "WITH_PATH": "/x:${PATH}",
    "OF_DRIVER": "${OF_DRIVER}",
}
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": JOB})


@ray.remote
def read(*names):
    return [os.environ.get(name) for name in names]


print(
    ray.get(read.remote("B", "Z", "A_LATER")),
    ray.get(read.remote("WITH_PATH"))[0].startswith("/x:/"),
)
own = {
    "C": "${B}/c",
    "D": "${C}/d",
    "AA": "${D}",
    "E": "${NOT_SET}x",
    "F": "$B",
    "G": "$NOT_SET",
    "HASHES": "$ ${ $$",
}
print(ray.get(read.options(runtime_env={"env_vars": own}).remote(*own)))
print(ray.get(read.options(runtime_env={"env_vars": {"B": "${B}+own"}}).remote("B", "Z")))
