# An ExceptionGroup from a task is caught with except*.
import ray
from conform import facts


@ray.remote(max_retries=0)
def f():
    raise ExceptionGroup("several", [ValueError("a"), KeyError("b")])


ray.init(num_cpus=1, include_dashboard=False)
try:
    ray.get(f.remote())
except ExceptionGroup as error:
    print(type(error).__name__, [type(e).__name__ for e in error.exceptions])
try:
    ray.get(f.remote())
except* ValueError as group:
    print("ValueErrors", len(group.exceptions))
except* KeyError as group:
    print("KeyErrors", len(group.exceptions))
