# bundle_label_selector refuses selectors of the wrong form.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=2, include_dashboard=False)


def make(selector):
    return placement_group([{"CPU": 0.1}], bundle_label_selector=[selector]) and "accepted"


for selector in ({"a": 1}, {1: "a"}, {"a": None}, "a", None, {"a": ["b"]}):
    show(repr(selector), lambda: make(selector), "list of string dictionary")
for selector in ({"a": "in()"}, {"a": "in(b"}, {"a": "exists()"}, {"a": "b c"}, {"a": "b" * 64}):
    show(repr(selector)[:30], lambda: make(selector), "bundle_label_selector")
for selector in ({"-a": "b"}, {"a b": "c"}):
    show(repr(selector), lambda: make(selector), "bundle_label_selector")
for selector in ({"a": "!b"}, {"a": "in(b,c)"}, {"a": "!in(b,c)"}, {"a": ""}):
    show(repr(selector), lambda: make(selector))
