# _generator_backpressure_num_objects makes the producer wait for the consumer.
import os
import tempfile
import time
import ray

folder = tempfile.mkdtemp()


@ray.remote(_generator_backpressure_num_objects=2)
def f():
    for i in range(6):
        open(os.path.join(folder, str(i)), "w").close()
        yield i


ray.init(num_cpus=1, include_dashboard=False)
generator = f.remote()
while len(os.listdir(folder)) < 2:
    time.sleep(0.01)
time.sleep(0.5)
print("produced before anyone consumed:", len(os.listdir(folder)))
print([ray.get(ref) for ref in generator], len(os.listdir(folder)))
