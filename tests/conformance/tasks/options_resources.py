# The `resources` option refuses names of other options, negative and too fine amounts.
import ray
from conform import show

for value in (
    {"CPU": 1},
    {"GPU": 1},
    {"memory": 1},
    {"object_store_memory": 1},
    {"a": 1},
    {"a": 0.5},
    {"a": 1.5},
    {"a": 0},
    {"a": -1},
    {"a": 0.00001},
    {"a": "1"},
    {},
    {1: 1},
    {"accelerator_type:X": 1},
    {"node:1.2.3.4": 0.1},
):
    show(repr(value), lambda: ray.remote(resources=value)(lambda: 1) and "accepted")
