"""Shows the page of training runs in headless Chromium: runs, ranks with their buttons, what is
reported.

RAY_TEST_SCREENSHOTS=DIRECTORY keeps pictures.
"""

import os
import pathlib
import re
import threading

import pytest
from browser import CHROMIUM, browser
from cluster import cluster
from gate import Gate
from waiting import until

import ray
import ray.train
from ray.train import RunConfig, ScalingConfig, WorkerGroupError, collective
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
PICTURES = os.environ.get("RAY_TEST_SCREENSHOTS")


def learns(config):
    """Reports until the gate is open. Rank 0 looks at the gate for all ranks, and rank 1 is
    late."""
    opened = config["gate"].wait.remote()
    pause = 0.1 * ray.train.get_context().get_world_rank()
    for epoch in range(1, 10_000):
        ray.train.report({"loss": 4.0 / epoch, "reward": epoch - 5.0})
        done = bool(ray.wait([opened], timeout=pause)[0])
        if collective.broadcast_from_rank_zero(done):
            return


def trainer(function, name, path, config=None):
    return DataParallelTrainer(
        function,
        train_loop_config=config,
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(name=name, storage_path=str(path)),
    )


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """A cluster with a run that has failed and another one that goes on."""
    path = tmp_path_factory.mktemp("runs")
    with cluster(cpus=4, connect=False, dashboard_port=0) as made:
        ray.init(address=made.address, log_to_driver=False)
        made.web = f"http://{ray._private.worker.global_worker.context['dashboard_address']}"
        made.token = (made.shell.scratch / ".ray" / "auth_token").read_text().strip()

        def breaks():
            print("about to break")
            raise ValueError("<b>broken</b>")

        with pytest.raises(WorkerGroupError):
            trainer(breaks, "fails", path).fit()
        gate = Gate.remote()
        thread = threading.Thread(target=trainer(learns, "learns", path, {"gate": gate}).fit)
        thread.start()
        made.go_on = lambda: (ray.get(gate.open.remote()), thread.join(60))
        yield made
        made.go_on()


@pytest.fixture(scope="module")
def page(training, tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as chromium:
        tab = chromium.page()
        tab.size(1280, 900)
        tab.open(training.web)
        tab.until("document.querySelector('#login').open")
        tab.click("#token")
        tab.type(training.token)
        tab.press_enter()
        tab.has("1 of 1")
        tab.problems = []
        yield tab
        assert not tab.problems, tab.problems


def picture(tab, name):
    if PICTURES:
        for width, height in ((400, 900), (1280, 900)):
            tab.size(width, height)
            tab.run("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 300))")
            tab.screenshot(pathlib.Path(PICTURES) / f"{name}-{width}.png")


def test_runs_are_listed(page):
    page.click("nav a", "Train")
    page.has("learns")
    page.has("ERRORED")
    page.has("RUNNING")
    assert not page.run("document.querySelector('td b')"), "text is never markup"
    picture(page, "train")


def test_a_run_shows_its_ranks_and_what_it_reports(page):
    page.click("nav a", "Train")
    page.click("td a", "learns")
    page.has("Ranks of attempt 1")
    ranks = "[...document.querySelectorAll('tbody tr')]"
    page.until(f"{ranks}.length === 2 && {ranks}.every((row) => row.innerText.includes('ALIVE'))")
    page.until("document.querySelectorAll('#reported figure').length === 3")
    page.has("Seconds per report")
    curves = "[...document.querySelectorAll('#reported canvas')].map((it) => Chart.getChart(it))"
    page.until(f"{curves}.filter((it) => it.data.datasets[0]?.data.length > 1).length === 3")
    picture(page, "train-run")
    # The lines of a metric below zero stay inside their chart.
    outside = page.run(
        f"{curves}.flatMap((it) => it.getDatasetMeta(0).data.filter("
        "({ y }) => !(y >= it.chartArea.top && y <= it.chartArea.bottom)).length)"
    )
    assert outside == [0, 0, 0]


def test_the_rank_that_is_late_is_named(page):
    page.click("nav a", "Train")
    page.click("td a", "learns")
    page.has("Ranks of attempt 1")
    page.until("document.body.innerText.match(/learns \\(test_browser_train\\.py:\\d+\\)/)")
    sentence = "document.querySelector('#straggler').textContent"
    late = (
        r"Rank 1 on node [0-9a-f]{12} \(127\.0\.0\.1\) is the straggler: "
        r"in 2\.0 s it waits \d+ % of the time"
    )

    def verdict():
        page.click("#look")
        page.until(f"!document.querySelector('#look').disabled && {sentence}")
        return page.run(sentence)

    # During a single look on a busy machine, the other rank may be late, too.
    until(verdict, lambda said: re.match(late, said))
    page.until("document.querySelectorAll('#stragglers tbody tr').length === 2")
    picture(page, "train-stragglers")


def test_a_rank_s_stack_trace_and_logs(page):
    page.click("nav a", "Train")
    page.click("td a", "learns")
    page.has("Ranks of attempt 1")
    page.click("td a", "Stack Trace")
    page.has("learns (")
    picture(page, "train-stack")
    page.click("nav a", "Train")
    page.click("td a", "fails")
    page.has("Ranks of attempt 1")
    page.click("td a", "Logs")
    page.has("about to break")


def test_a_run_that_has_ended(page, training):
    training.go_on()
    page.click("nav a", "Train")
    page.click("td a", "learns")
    page.has("FINISHED")
    page.until("document.querySelectorAll('td .links').length === 0")
    page.until(
        "document.querySelector('#look') && !document.querySelector('#look').checkVisibility()"
    )


def test_a_long_name_does_not_widen_the_page(page):
    page.run("document.querySelector('h1').prepend('x'.repeat(500))")
    assert page.run("document.documentElement.scrollWidth <= window.innerWidth")
