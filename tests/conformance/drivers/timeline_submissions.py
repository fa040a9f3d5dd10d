# ray.timeline() has a span for each submission, on the thread of the submitter.
import time
import ray


@ray.remote
def inner():
    return 1


@ray.remote
def outer():
    return ray.get([inner.remote() for _ in range(3)])


@ray.remote
class Actor:
    def method(self):
        return ray.get(inner.remote())


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
ray.get(outer.remote())
actor = Actor.remote()
ray.get([actor.method.remote() for _ in range(2)])
deadline = time.monotonic() + 120
while time.monotonic() < deadline:
    events = ray.timeline()
    bodies = [event for event in events if event["cat"].startswith("task::")]
    spans = [event for event in events if event["cat"] == "submit_task"]
    if len(bodies) >= 9 and len(spans) >= 9:
        break
print(
    len(spans),
    "submissions,",
    sum(span["tid"].startswith("driver:") for span in spans),
    "of the driver",
)
outer_body = next(event for event in bodies if event["cat"] == "task::outer")
print(
    sum(
        span["tid"] == outer_body["tid"]
        and outer_body["ts"] <= span["ts"] <= outer_body["ts"] + outer_body["dur"]
        for span in spans
    ),
    "in outer()",
)
print(
    {(span["name"], span["ph"], span["cname"], str(span["args"])) for span in spans}, list(spans[0])
)
print(
    {span["pid"] for span in spans} == {body["pid"] for body in bodies},
    all(span["dur"] > 0 for span in spans),
)
