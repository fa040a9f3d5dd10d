# The error of a task is a RayTaskError and an instance of the user's class.
import ray
from conform import facts, show


class Mine(ValueError):
    def __init__(self, a, b):
        super().__init__(a, b)
        self.a = a


@ray.remote(max_retries=0)
def f():
    raise Mine(1, "two")


ray.init(num_cpus=1, include_dashboard=False)
try:
    ray.get(f.remote())
except Mine as error:
    print(facts(error))
    print(
        isinstance(error, ray.exceptions.RayTaskError),
        isinstance(error, ray.exceptions.RayError),
        isinstance(error, Mine),
    )
    show("args", lambda: error.args == (error.cause,))
    show("attribute", lambda: error.a)
    show(
        "cause",
        lambda: (
            type(error.cause).__name__,
            error.cause.args,
            error.cause.b if hasattr(error.cause, "b") else None,
        ),
    )
    show("mro", lambda: [k.__name__ for k in type(error).__mro__[:4]])
    show("function_name", lambda: error.function_name)
    show(
        "has",
        lambda: [
            hasattr(error, name)
            for name in ("traceback_str", "pid", "ip", "proctitle", "actor_repr")
        ],
    )
