# A ref tells the address of its owner and the call site where it was made.
import ray

ray.init(num_cpus=1)


@ray.remote
def f():
    return 1


for ref in (f.remote(), ray.put(1)):
    address = ref.owner_address()
    print(
        type(address).__name__,
        len(address) > 0,
        type(ref.call_site()).__name__,
        ref.call_site() == ref.call_site(),
        ref.tensor_transport(),
    )
