# The groups of a driver go with it, detached ones stay; another driver finds those by name.
import subprocess
import sys
import ray
from conform import show
from ray.util import placement_group, placement_group_table
from waiting import until

CHILD = """
import sys
import ray
from ray.util import get_placement_group, placement_group, remove_placement_group
ray.init(address=sys.argv[1], namespace=sys.argv[2], log_to_driver=False, logging_level="error")
"""
MAKE = """
for lifetime in (None, "detached"):
    word = lifetime or "plain"
    made = placement_group([{"CPU": 1}], name=word, lifetime=lifetime)
    print(word, made.wait(30))
    placement_group([{"CPU": 50}], name=f"pending {word}", lifetime=lifetime)
"""
FIND = """
for name in ("plain", "detached", "pending detached"):
    try:
        group = get_placement_group(name)
        print(name, group.bundle_specs, group.wait(1))
    except ValueError as error:
        print(name, "ValueError")
"""
REMOVE = """
remove_placement_group(get_placement_group("detached"))
"""


def driver(code, namespace="one"):
    done = subprocess.run(
        [sys.executable, "-c", CHILD + code, address, namespace], capture_output=True, text=True
    )
    print(done.stdout, end="")


def state(name):
    return next(row["state"] for row in placement_group_table().values() if row["name"] == name)


context = ray.init(num_cpus=3, namespace="one", include_dashboard=False)
address = context.address_info["address"]
driver(MAKE)
until(lambda: state("plain") == "REMOVED" and state("pending plain") == "REMOVED")
show("states", lambda: sorted((r["name"], r["state"]) for r in placement_group_table().values()))
for namespace in ("one", "two"):
    print("namespace", namespace)
    driver(FIND, namespace)
driver(REMOVE)
until(lambda: state("detached") == "REMOVED")
show("removed by another driver", lambda: state("detached"))
show("the name is free", lambda: placement_group([{"CPU": 1}], name="detached").wait(30))
