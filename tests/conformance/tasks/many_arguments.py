# A task may have hundreds of arguments, refs among them.
import ray

ray.init(num_cpus=1, include_dashboard=False)
total = ray.remote(lambda *args, **kwargs: sum(args) + sum(kwargs.values()))
refs = [ray.put(i) for i in range(100)]
print(ray.get(total.remote(*refs, *range(200), **{f"k{i}": refs[i] for i in range(50)})))
