"""ray.util.metrics: what is refused, and what arrives at the node-managers."""

import gc
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import ray
from ray.cluster_utils import Cluster
from ray.util.metrics import Counter, Gauge, Histogram
from waiting import until


RAYCTL = shutil.which("rayctl") or str(
    pathlib.Path(ray.__file__).resolve().parents[2] / "build" / "bin" / "rayctl"
)


def metrics_text():
    from ray._private.worker import global_worker

    return subprocess.run(
        [RAYCTL, "metrics", f"--address={global_worker.context['head_address']}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def samples(name):
    """Returns {(tags without the common ones): value} of all nodes, summed over processes."""
    found = {}
    for line in metrics_text().splitlines():
        match = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line)
        if match and match[1] == name:
            tags = tuple(
                tag
                for tag in re.findall(r'\w+="[^"]*"', match[2])
                if tag.split("=")[0]
                not in ("SessionName", "Version", "NodeAddress", "Component", "WorkerId")
            )
            found[tags] = found.get(tags, 0) + float(match[3])
    return found


def becomes(question, wanted):
    until(question, lambda answer: answer == wanted)


def test_wrong_metrics_are_refused():
    for call, kind in (
        (lambda: Counter(""), ValueError),
        (lambda: Counter(5), TypeError),
        (lambda: Counter("a", tag_keys=["x"]), TypeError),
        (lambda: Counter("a", tag_keys="x"), TypeError),
        (lambda: Counter("a", description=3), TypeError),
        (lambda: Counter("a").inc(0), ValueError),
        (lambda: Counter("a").inc(-1), ValueError),
        (lambda: Counter("a").inc(None), TypeError),
        (lambda: Counter("a", tag_keys=("k",)).inc(), ValueError),
        (lambda: Counter("a", tag_keys=("k",)).inc(1, {"k": 5}), TypeError),
        (lambda: Gauge("a").set("1"), TypeError),
        (lambda: Histogram("a"), ValueError),
        (lambda: Histogram("a", boundaries=[0, 1]), ValueError),
        (lambda: Counter("a").set_default_tags({"x": "y"}), ValueError),
    ):
        with pytest.raises(kind):
            call()


def test_a_bad_name_is_warned_about_and_discarded(cluster, caplog):
    Counter("two words").inc()
    assert "not valid" in caplog.text
    assert Gauge("level").set(None) is None


def test_values_of_driver_and_tasks_are_summed(cluster):
    @ray.remote
    def count(n):
        Counter("seen", "what was seen", tag_keys=("kind",)).inc(n, {"kind": "task"})
        return os.getpid()

    Counter("seen", "what was seen", tag_keys=("kind",)).inc(0.5, {"kind": "driver"})
    ray.get([count.remote(1) for _ in range(20)])
    becomes(lambda: samples("ray_seen_total"), {('kind="driver"',): 0.5, ('kind="task"',): 20.0})
    assert "# TYPE ray_seen_total counter" in metrics_text()


def test_counts_of_ended_processes_stay_and_their_gauges_go(cluster):
    @ray.remote
    class Meter:
        def measure(self):
            Counter("work").inc(7)
            Gauge("temperature").set(21)
            Histogram("size", boundaries=[1, 10]).observe(5)

    meter = Meter.remote()
    ray.get(meter.measure.remote())
    becomes(lambda: samples("ray_temperature"), {(): 21.0})
    ray.get(meter.measure.remote())
    meter.__ray_terminate__.remote()
    del meter
    gc.collect()
    becomes(lambda: samples("ray_temperature"), {})
    # The last values were sent before the process ended.
    assert samples("ray_work_total") == {(): 14.0}
    assert samples("ray_size_count") == {(): 2.0} and samples("ray_size_sum") == {(): 10.0}
    assert samples("ray_size_bucket") == {('le="1"',): 0.0, ('le="10"',): 2.0, ('le="+Inf"',): 2.0}


def test_pickled_metrics_count_on_but_leave_default_tags_behind(cluster):
    counter = Counter("travelled", tag_keys=("k",)).set_default_tags({"k": "v"})

    @ray.remote
    def use(counter):
        assert counter.info["default_tags"] == {}
        counter.inc(2, {"k": "there"})

    ray.get(use.remote(counter))
    becomes(lambda: samples("ray_travelled_total"), {('k="there"',): 2.0})


def test_several_nodes_and_a_driver_that_came_back(no_cluster):
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1, resources={"other": 1})
        ray.init(address=cluster.address)

        @ray.remote(resources={"other": 0.1})
        def there():
            Counter("where").inc()

        counter = Counter("driver")
        counter.inc(3)
        ray.get(there.remote())
        becomes(
            lambda: (samples("ray_where_total"), samples("ray_driver_total")),
            ({(): 1.0}, {(): 3.0}),
        )
        ray.shutdown()
        ray.init(address=cluster.address)
        counter.inc(1)
        # 3 come from the sums of ended processes, 1 from this connection.
        becomes(lambda: samples("ray_driver_total"), {(): 4.0})
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_too_many_series_are_warned_about_once(cluster):
    code = (
        "import warnings; warnings.simplefilter('always')\nfrom ray.util.metrics import Counter\nc = Counter('many', tag_keys=('i',))\n"
        "for i in range(10_010): c.inc(1, {'i': str(i)})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("more than 10000 series") == 1
