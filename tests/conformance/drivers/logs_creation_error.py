# A failed constructor is reported even if nobody calls the actor.
import sys
import time
import ray


class Lines:
    """Notes which parts the report has; its frames and ids differ from run to run."""

    seen = set()

    def write(self, text):
        for part in (
            "Exception raised in creation task: The actor died because of an error raised in its creation task, ",
            "ray::Fails.__init__()",
            "(Fails pid=",
            "in __init__",
            'raise ValueError("no good " + x)',
            "ValueError: no good argument",
        ):
            if part in text:
                self.seen.add(part)

    def flush(self):
        pass


@ray.remote
class Fails:
    def __init__(self, x):
        raise ValueError("no good " + x)


ray.init(num_cpus=1, include_dashboard=False, logging_level="error")
terminal, sys.stderr = sys.stderr, Lines()
actor = Fails.remote("argument")
deadline = time.monotonic() + 120
while len(Lines.seen) < 6 and time.monotonic() < deadline:
    time.sleep(0.1)
sys.stderr = terminal
print(sorted(Lines.seen))
