# env_vars may refer to variables of the worker.
import os
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
os.environ["SET_LATER"] = "in the driver"
read = ray.remote(lambda *names: [os.environ.get(name) for name in names])
env = {
    "env_vars": {
        "A": "<${NO_SUCH_VARIABLE}>",
        "B": "$NO_SUCH_VARIABLE",
        "C": "x${EMPTY_ONE}y",
        "D": "5$",
        "E": "${SET_LATER}",
        "EMPTY_ONE": "",
        "F": "$$",
        "G": "${open",
    }
}
show("values", lambda: ray.get(read.options(runtime_env=env).remote(*"ABCDEFG")))
same = read.options(runtime_env={"env_vars": {"PATH": "/first:${PATH}"}})
show(
    "PATH",
    lambda: (
        ray.get(same.remote("PATH"))[0].removeprefix("/first:") == ray.get(read.remote("PATH"))[0]
    ),
)
