# .options() replaces options of the decorator one by one.
import ray


@ray.remote(num_cpus=0.5, name="fixed")
class A:
    def facts(self):
        context = ray.get_runtime_context()
        return context.get_actor_name(), context.get_assigned_resources().get("CPU")


ray.init(num_cpus=2, include_dashboard=False)
a = A.remote()
b = A.options(name="other").remote()
c = A.options(name="third", num_cpus=1).remote()
print(ray.get([a.facts.remote(), b.facts.remote(), c.facts.remote()]))
