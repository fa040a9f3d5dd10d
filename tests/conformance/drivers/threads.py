# Several threads of a driver may use the API.
import threading
import ray

ray.init(num_cpus=2, include_dashboard=False)
f = ray.remote(lambda x: x * x)
results = {}


def work(k):
    results[k] = (
        sum(ray.get([f.remote(i) for i in range(k * 10, k * 10 + 10)])),
        len(ray.wait([ray.put(k)])[0]),
    )


threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(
    sum(total for total, _ in results.values()) == sum(i * i for i in range(40)),
    sorted(ready for _, ready in results.values()),
)
