# .options() checks num_returns as the decorator does.
import ray
from conform import show

f = ray.remote(lambda: 1)
for value in (-1, 1.5, "two", [1], "streaming", "dynamic", None, 0):
    show(repr(value), lambda: f.options(num_returns=value) and "accepted")
