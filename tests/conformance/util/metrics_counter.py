# Counter: names, tags, and values that are refused.
import ray
from conform import show
from ray.util.metrics import Counter

ray.init(num_cpus=1, include_dashboard=False)
show("empty name", lambda: Counter(""))
show("wrong name", lambda: Counter(5))
show("list of tags", lambda: Counter("a", tag_keys=["x"]))
show("tag of int", lambda: Counter("a", tag_keys=(1,)))
counter = Counter("requests", description="All", tag_keys=("route", "code"))
show("info", lambda: counter.info)
show("missing tag", lambda: counter.inc(1, tags={"route": "/"}))
show("unknown tag", lambda: counter.inc(1, tags={"route": "/", "code": "1", "x": "y"}))
show("inc", lambda: counter.inc(1, tags={"route": "/", "code": "200"}))
show("zero", lambda: counter.inc(0, tags={"route": "/", "code": "200"}))
show("negative", lambda: counter.inc(-1, tags={"route": "/", "code": "200"}))
show("string", lambda: counter.inc("1", tags={"route": "/", "code": "200"}))
show("int tag", lambda: counter.inc(1, tags={"route": "/", "code": 200}))
show("defaults", lambda: counter.set_default_tags({"code": "500"}) is counter)
show("with default", lambda: counter.inc(tags={"route": "/"}))
show("bad default", lambda: counter.set_default_tags({"x": "y"}))
show("default type", lambda: counter.set_default_tags({"code": 5}))
