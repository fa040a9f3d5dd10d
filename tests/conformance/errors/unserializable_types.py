# Unpicklable values: TypeErrors are explained, other errors are passed on unchanged.
import pickle
import threading
import ray
from conform import show


class Refuses:
    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        raise self.error


@ray.remote
def take(*args, **kwargs):
    return len(args) + len(kwargs)


@ray.remote
def give(error):
    return Refuses(error)


@ray.remote
def give_lock():
    return threading.Lock()


@ray.remote
class Actor:
    def __init__(self, *args):
        pass

    def take(self, *args):
        return len(args)


lock = threading.Lock()


@ray.remote
def closes():
    return lock


@ray.remote
class Closes:
    def method(self):
        return lock


ray.init(num_cpus=1, include_dashboard=False)
actor = Actor.remote()
for error in (
    ValueError("no way"),
    KeyError("no way"),
    pickle.PicklingError("no way"),
    RuntimeError("no way"),
    NotImplementedError("no way"),
):
    name = type(error).__name__
    show(f"put {name}", lambda: ray.put(Refuses(error)), "no way", "Could not serialize")
    show(f"argument {name}", lambda: take.remote(Refuses(error)), "no way", "Could not serialize")
    show(
        f"method {name}",
        lambda: actor.take.remote([Refuses(error)]),
        "no way",
        "Could not serialize",
    )
    show(f"result {name}", lambda: ray.get(give.remote(error)), "no way")
show(
    "put",
    lambda: ray.put(lock),
    "Could not serialize the put value <unlocked _thread.lock",
    "cannot pickle '_thread.lock' object",
    "Checking Serializability of",
)
show(
    "argument",
    lambda: take.remote(lock),
    "Could not serialize the argument <unlocked _thread.lock",
    "cannot pickle '_thread.lock' object",
)
show(
    "second argument",
    lambda: take.remote(1, [lock]),
    "Could not serialize the argument [<unlocked _thread.lock",
    "cannot pickle '_thread.lock' object",
)
show(
    "keyword",
    lambda: take.remote(1, x=[lock]),
    "Could not serialize the argument [<unlocked _thread.lock",
    "cannot pickle '_thread.lock' object",
)
show(
    "of an actor",
    lambda: Actor.remote(lock),
    "Could not serialize the argument <unlocked _thread.lock",
    "cannot pickle '_thread.lock' object",
)
show(
    "of a method",
    lambda: actor.take.remote(lock),
    "Could not serialize the argument <unlocked _thread.lock",
    "cannot pickle '_thread.lock' object",
)
show("result", lambda: ray.get(give_lock.remote()), "cannot pickle '_thread.lock' object")
show(
    "function",
    lambda: closes.remote(),
    "Could not serialize the function",
    "cannot pickle '_thread.lock' object",
)
show(
    "class",
    lambda: Closes.remote(),
    "Could not serialize the actor class",
    "cannot pickle '_thread.lock' object",
)
show("still works", lambda: (ray.get(take.remote(1)), ray.get(actor.take.remote(1))))
