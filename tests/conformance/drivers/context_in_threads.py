# The runtime context in threads of user code and in asyncio tasks that outlive their call.
import asyncio
import concurrent.futures
import threading
import ray

IDS = (
    "get_job_id",
    "get_node_id",
    "get_worker_id",
    "get_actor_id",
    "get_actor_name",
    "get_assigned_resources",
)


def own():
    context = ray.get_runtime_context()
    return {name: getattr(context, name)() for name in IDS}


def facts(expected):
    context = ray.get_runtime_context()
    same = [name for name in IDS if getattr(context, name)() == expected[name]]
    try:
        actor = type(context.current_actor).__name__
    except RuntimeError as error:
        actor = str(error)
    return (
        len(same) == len(IDS),
        len(context.get_task_id()),
        context.namespace,
        actor,
        context.get_runtime_env_string(),
        context.get_placement_group_id(),
        ray.get_gpu_ids(),
        bool(context.get_task_name()),
        bool(context.get_task_function_name()),
    )


def in_thread(go=None):
    expected, found = own(), []

    def run():
        if go:
            go.wait()
        found.append(facts(expected))

    thread = threading.Thread(target=run)
    thread.start()
    if go:
        return thread, found
    thread.join()
    return found[0]


@ray.remote
def task():
    return in_thread()


@ray.remote
class Plain:
    def __init__(self):
        self.of_constructor = in_thread()
        self.go = threading.Event()
        self.thread, self.found = in_thread(self.go)

    def during(self):
        return self.of_constructor, in_thread()

    def after(self):
        self.go.set()
        self.thread.join()
        return self.found[0], ray.get_runtime_context().was_current_actor_reconstructed


@ray.remote(max_concurrency=2)
class Threaded:
    def pool(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(facts, own()).result()


@ray.remote
class Async:
    async def executor(self):
        return await asyncio.get_running_loop().run_in_executor(None, facts, own())

    async def to_thread(self):
        return await asyncio.to_thread(facts, own())

    async def begin(self):
        async def later(expected):
            await asyncio.sleep(0.1)
            return facts(expected)

        self.later = asyncio.create_task(later(own()))

    async def end(self):
        return await self.later


ray.init(num_cpus=2, include_dashboard=False, namespace="mine")
print("task", ray.get(task.remote()))
plain = Plain.options(name="plain", num_cpus=1).remote()
print("actor", ray.get(plain.during.remote()))
print("later", ray.get(plain.after.remote()))
print("threaded", ray.get(Threaded.remote().pool.remote()))
actor = Async.remote()
print("executor", ray.get(actor.executor.remote()))
print("to_thread", ray.get(actor.to_thread.remote()))
ray.get(actor.begin.remote())
print("asyncio task", ray.get(actor.end.remote()))
