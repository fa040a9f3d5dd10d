# list_named_actors lists those of this namespace or of all.
import ray


@ray.remote
class A:
    def m(self):
        return 1


ray.init(num_cpus=1, namespace="home", include_dashboard=False)
actors = [
    A.options(name="b").remote(),
    A.options(name="a").remote(),
    A.options(name="c", namespace="away").remote(),
    A.remote(),
]
ray.get([a.m.remote() for a in actors])
print(sorted(ray.util.list_named_actors()))
print(sorted((d["namespace"], d["name"]) for d in ray.util.list_named_actors(all_namespaces=True)))
