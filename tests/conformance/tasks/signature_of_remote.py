# f.remote has the signature of f, and attributes of a remote function travel with it.
import functools
import inspect
import pickle
import ray


@ray.remote
def f(a: int, b="x") -> str:
    """Of f."""
    return f"{a}{b}"


f.tag = "a mark"


@ray.remote
def reads():
    return getattr(f, "tag", None), ray.get(f.remote(3))


@functools.wraps(f.remote)
def wrapped(*args, **kwargs):
    return f.remote(*args, **kwargs)


ray.init(num_cpus=2, include_dashboard=False)
print(
    inspect.signature(f.remote),
    f.remote.__name__,
    f.remote.__doc__,
    f.remote.__annotations__,
    callable(f.remote),
)
print(
    f.remote.__wrapped__ is f._function,
    inspect.unwrap(f.remote) is f._function,
    f.remote.__module__,
)
print(inspect.signature(wrapped), wrapped.__name__, ray.get([wrapped(1), wrapped(1, b="y")]))
submit = f.remote
print(
    ray.get(submit(1)),
    ray.get(functools.partial(submit, b="z")(2)),
    ray.get(list(map(submit, [1, 2]))),
)
print(inspect.signature(f.remote).bind(1, b=2).arguments)
print(ray.get(reads.remote()), f.tag)
try:
    submit()
except TypeError as error:
    print(error)
