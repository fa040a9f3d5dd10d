# Cyclic data and shared parts keep their shape.
import ray

ray.init(num_cpus=1, include_dashboard=False)
value = [1]
value.append(value)
back = ray.get(ray.put(value))
print(back[1] is back, back[0])
shared = {"x": 1}
back = ray.get(ray.remote(lambda v: v).remote([shared, shared]))
print(back[0] is back[1])
