# A spawned process may call init itself.
import multiprocessing
import ray


def child(address, queue):
    ray.init(address=address, logging_level="error", log_to_driver=False)
    queue.put(ray.get(ray.remote(lambda: "child").remote()))


if __name__ == "__main__":
    context = ray.init(num_cpus=1, include_dashboard=False)
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    process = spawn.Process(target=child, args=(context.address_info["address"], queue))
    process.start()
    print(queue.get(timeout=120))
    process.join()
    print(process.exitcode)
