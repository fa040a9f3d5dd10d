"""Makes the directory of tests/e2e/stored_states for a release: the durable state of a head that
has something of everything (`rayctl start --head --state-dir`), which all later releases must read.

    tests/e2e/stored_state.py DIRECTORY

Uses the programs in build/, whose path becomes a part of what is stored: run it in a tree that is
mounted at /opt/ray. Nothing stored depends on the version of Python: what is pickled is a class of
the standard library, by its name.
"""

import pathlib
import sys

from cluster import cluster
from waiting import until

NAMESPACE = "stored"
SUBMISSION = "stored-job"
COUNTED = [("a", 2), ("b", 1)]
PROGRAM = f"""
import collections
import operator
import ray
from ray import _raylet
from ray.util.placement_group import placement_group

ray.init(namespace="{NAMESPACE}", log_to_driver=False)
Counter = ray.remote(collections.Counter)
kept = Counter.options(name="kept", lifetime="detached", max_restarts=-1).remote("aab")
assert ray.get(kept.most_common.remote()) == {COUNTED}
killed = Counter.options(name="killed", lifetime="detached").remote()
ray.get(killed.most_common.remote())
ray.kill(killed)
group = placement_group([{{"CPU": 1}}], name="group", lifetime="detached")
assert group.wait(30)
assert ray.get(ray.remote(operator.add).options(name="added").remote(1, 2)) == 3
_raylet.kv_put("{NAMESPACE}", "key", b"value", True)
"""


def store(directory):
    with cluster(cpus=2, connect=False, state_dir=directory) as made:
        said = made.shell.ok(
            "job",
            "submit",
            f"--address={made.address}",
            f"--submission-id={SUBMISSION}",
            '--metadata-json={"kept": "yes"}',
            "--",
            "/usr/bin/python3",
            "-c",
            PROGRAM,
        )
        assert "succeeded" in said, said

        def has_history():
            return made.shell.ok(
                "list", "tasks", f"--address={made.address}", "--filter=name=added"
            )

        until(has_history, lambda text: "FINISHED" in text)


if __name__ == "__main__":
    # The head runs in another directory.
    store(pathlib.Path(sys.argv[1]).resolve())
