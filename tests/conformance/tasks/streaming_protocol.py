# send(), throw() and close() of the generator protocol are not implemented.
import asyncio
import ray
from conform import show


@ray.remote
def f():
    yield 1


ray.init(num_cpus=1, include_dashboard=False)
generator = f.remote()
show("send", lambda: generator.send(1))
show("throw", lambda: generator.throw(ValueError("x")))
show("close", lambda: generator.close())
show("asend", lambda: asyncio.run(generator.asend(1)))
show("athrow", lambda: asyncio.run(generator.athrow(ValueError("x"))))
show("iter is itself", lambda: iter(generator) is generator)
show("len", lambda: len(generator))
