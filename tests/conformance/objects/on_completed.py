# _on_completed calls back with the value.
import threading
import ray

ray.init(num_cpus=1, include_dashboard=False)
done = threading.Event()
values = []
ref = ray.remote(lambda: 7).remote()
ref._on_completed(lambda value: (values.append(value), done.set()))
print(done.wait(20), values)
