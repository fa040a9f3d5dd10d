# init can be called from a thread other than the main one.
import threading
import ray


def work():
    ray.init(num_cpus=1, include_dashboard=False)
    print(ray.get(ray.put(1)))


thread = threading.Thread(target=work)
thread.start()
thread.join()
print(ray.is_initialized(), ray.get(ray.remote(lambda: 2).remote()))
