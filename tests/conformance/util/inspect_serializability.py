# inspect_serializability finds the parts that cannot be pickled.
import io
import threading
import ray
from conform import show
from ray.util import inspect_serializability

lock = threading.Lock()


class Holder:
    def __init__(self):
        self.lock = lock


def captures():
    return lock


out = io.StringIO()
show("fine", lambda: inspect_serializability([1, 2], print_file=out))
for name, thing in (("lock", lock), ("holder", Holder()), ("function", captures)):

    def run():
        good, found = inspect_serializability(thing, name=name, print_file=out)
        return good, sorted(type(f).__name__ for f in found)

    show(name, run)
print("FAIL" in out.getvalue() or "not serializable" in out.getvalue())
