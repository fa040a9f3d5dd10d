# The id of a ref holds the task's id and the index of the return; puts count from above.
import ray

ray.init(num_cpus=1, include_dashboard=False)
two = ray.remote(num_returns=2)(lambda: (1, 2)).remote()
index = [int.from_bytes(r.binary()[24:], "little") for r in two]
print(
    index, two[0].task_id() == two[1].task_id(), two[0].binary()[:24] == two[0].task_id().binary()
)
put = ray.put(1)
print(
    int.from_bytes(put.binary()[24:], "little") > 100_000_000,
    put.job_id() == two[0].job_id(),
    len(put.task_id().hex()),
    len(put.job_id().hex()),
)
print(put.job_id().hex() == ray.get_runtime_context().get_job_id())
