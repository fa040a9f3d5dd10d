# One object may hold thousands of refs, and one get may fetch them.
import ray

ray.init(num_cpus=1, include_dashboard=False)
refs = [ray.put(i) for i in range(3000)]
print(
    sum(ray.get(refs)),
    len(ray.get(ray.put(refs))),
    ray.get(ray.remote(lambda box: ray.get(box[-1])).remote(refs)),
)
