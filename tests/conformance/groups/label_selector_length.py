# bundle_label_selector has one selector for each bundle.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=2, include_dashboard=False, labels={"zone": "a"})


def make(selectors):
    return placement_group([{"CPU": 0.1}] * 2, bundle_label_selector=selectors).wait(30)


show("none", lambda: make(None))
show("empty ones", lambda: make([{}, {}]))
show("one for each", lambda: make([{"zone": "a"}, {}]))
for selectors in ([], {}, [{"zone": "a"}], [{"zone": "a"}] * 3):
    show(repr(selectors), lambda: make(selectors), "length", "bundles")
show("a dict", lambda: make({"zone": "a", "b": "c"}), "must be a list")
