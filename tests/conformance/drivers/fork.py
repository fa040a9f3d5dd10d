# A forked child that does not use Ray leaves the driver unharmed.
import os
import ray

ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put("kept")
pid = os.fork()
if pid == 0:
    os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(ray.get(ref), ray.get(ray.remote(lambda: 1).remote()))
