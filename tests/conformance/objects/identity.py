# Refs have equality, a hash, hex, binary, a size, a repr, and can be keys.
import ray

ray.init(num_cpus=1, include_dashboard=False)
a, b = ray.put(1), ray.put(1)
same = ray.ObjectRef(a.binary())
print(a == same, a == b, a != b, hash(a) == hash(same), len({a, same, b}), a == 3)
print(len(a.hex()), len(a.binary()), a.size(), a.is_nil(), bytes.fromhex(a.hex()) == a.binary())
print(repr(a) == f"ObjectRef({a.hex()})", str(a) == repr(a), bool(a))
print({a: 1}[same], a in [same], ray.ObjectRef is ray.ObjectID)
