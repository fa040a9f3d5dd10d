# With RAY_PROFILING, a program's calls and its own events are spans of the timeline.
# env: RAY_PROFILING=1
import time
import ray
from ray._private.profiling import profile


@ray.remote
def work():
    with profile("inside", {"key": "value"}):
        return 1


@ray.remote
def nested():
    ref = work.remote()
    ray.wait([ref])
    ray.put(2)
    return ray.get(ref)


@ray.remote
def slow():
    time.sleep(2)


@ray.remote
class Actor:
    def method(self):
        return 1


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
ray.get(nested.remote())
actor = Actor.remote()
ray.get(actor.method.remote())
ray.wait([ray.put(1)])
with profile("mine") as context:
    print(context)
with profile("named", {"name": "its name", "cname": "good", "number": 7}):
    time.sleep(0.05)
try:
    with profile("failed", {"key": "value"}):
        raise KeyError("gone")
except KeyError as error:
    print("passed on:", error)
try:
    ray.get(slow.remote(), timeout=0.1)
except Exception as error:
    print(type(error).__name__)
WANTED = {
    "submit_task": 5,
    "ray.get": 4,
    "ray.put": 2,
    "ray.wait": 2,
    "mine": 1,
    "named": 1,
    "failed": 1,
    "inside": 1,
    "wait_for_function": 3,
}
deadline = time.monotonic() + 120
while time.monotonic() < deadline:
    events = ray.timeline()
    found = {kind: [event for event in events if event["cat"] == kind] for kind in WANTED}
    if all(len(found[kind]) >= count for kind, count in WANTED.items()):
        break
for kind, spans in found.items():
    print(
        kind,
        len(spans),
        sorted(span["tid"].partition(":")[0] for span in spans),
        {(span["name"], span["cname"], span["ph"]) for span in spans},
    )
    print(" ", sorted({key for span in spans for key in span["args"]}))
[named] = found["named"]
print(named["args"], 50_000 <= named["dur"] < 5_000_000)
[failed] = found["failed"]
print(
    failed["args"]["type"],
    failed["args"]["value"],
    failed["args"]["traceback"].startswith("Traceback (most recent call last):"),
)
body = next(event for event in events if event["cat"] == "task::work")
[inside] = found["inside"]
print(
    inside["args"],
    inside["tid"] == body["tid"],
    body["ts"] <= inside["ts"] and inside["ts"] + inside["dur"] <= body["ts"] + body["dur"],
)
