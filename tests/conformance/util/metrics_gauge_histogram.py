# Gauge and Histogram: values and boundaries.
import ray
from conform import show
from ray.util.metrics import Gauge, Histogram

ray.init(num_cpus=1, include_dashboard=False)
gauge = Gauge("level", description="d")
show("set", lambda: gauge.set(3))
show("float", lambda: gauge.set(-1.5))
show("none", lambda: gauge.set(None))
show("string", lambda: gauge.set("x"))
show("info", lambda: gauge.info)
show("no boundaries", lambda: Histogram("h"))
show("empty boundaries", lambda: Histogram("h", boundaries=[]))
show("zero boundary", lambda: Histogram("h", boundaries=[0, 1]))
show("negative boundary", lambda: Histogram("h", boundaries=[-1, 1]))
histogram = Histogram("h", boundaries=[1, 2], tag_keys=("a",))
show("info", lambda: histogram.info)
show("observe", lambda: histogram.observe(1.5, tags={"a": "b"}))
show("observe without tag", lambda: histogram.observe(1.5))
show("observe string", lambda: histogram.observe("x", tags={"a": "b"}))
