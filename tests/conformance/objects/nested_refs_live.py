# An object that contains refs keeps their objects alive, two levels deep.
import gc
import ray

ray.init(num_cpus=1, include_dashboard=False)
inner = ray.put("deep")
middle = ray.put([inner])
outer = ray.put({"m": middle})
del inner, middle
gc.collect()
print(ray.get(ray.get(ray.get(outer)["m"])[0]))
