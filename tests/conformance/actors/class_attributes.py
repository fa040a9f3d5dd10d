# Class attributes of an actor class can be read in the driver and in its own methods.
import ray
from conform import show


@ray.remote
class Worker:
    STATES = ("idle", "busy")
    count = 0
    registry = {}

    def __init__(self):
        self.state = Worker.STATES[0]

    def get(self):
        Worker.count += 1
        Worker.registry["key"] = Worker.count
        return self.state, Worker.count, Worker.registry

    @staticmethod
    def parse(text):
        return int(text)


ray.init(num_cpus=1, include_dashboard=False)
show("constant", lambda: Worker.STATES)
show("static method", lambda: Worker.parse("3"))
worker = Worker.remote()
show("in methods", lambda: ray.get([worker.get.remote(), worker.get.remote()]))
show("in the driver", lambda: (Worker.count, Worker.registry))
show("none", lambda: Worker.nothing)
show("without a cluster", lambda: Worker.__ray_metadata__.modified_class.parse("4"))
show("its instance", lambda: Worker.__ray_metadata__.modified_class().state)
show("its name", lambda: Worker.__ray_metadata__.class_name)
