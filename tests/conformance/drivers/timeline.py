# ray.timeline() returns a list of events or writes a file.
import json
import os
import tempfile
import time
import ray


@ray.remote
def work():
    with ray.profile("inside") if hasattr(ray, "profile") else open("/dev/null"):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
ray.get(work.remote())
for _ in range(100):
    events = ray.timeline()
    if any("work" in str(event.get("name")) for event in events):
        break
    time.sleep(0.1)
print(
    type(events).__name__,
    any("work" in str(event.get("name")) for event in events),
    {event["ph"] for event in events} <= {"X", "M", "s", "f", "i"},
)
path = os.path.join(tempfile.mkdtemp(), "t.json")
print(ray.timeline(path), isinstance(json.load(open(path)), list))
