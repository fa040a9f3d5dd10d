# Handles have a repr, equality, a hash, dir() and can be pickled.
import pickle
import ray


@ray.remote
class A:
    def m(self):
        return 1

    def _hidden(self):
        return 2


ray.init(num_cpus=1, include_dashboard=False)
a, b = A.remote(), A.remote()
again = pickle.loads(pickle.dumps(a)) if True else None
print(repr(a) == f"Actor(A, {a._actor_id.hex()})", str(a) == repr(a))
print(again == a, again is a, a == b, a != b, hash(again) == hash(a), len({a, again, b}), a == 1)
print([name for name in dir(a) if "ray" not in name and not name.startswith("__")])
print(ray.get(again.m.remote()), ray.get(a._hidden.remote()))
print(type(a).__name__, isinstance(a, ray.actor.ActorHandle), len(a._actor_id.hex()))
