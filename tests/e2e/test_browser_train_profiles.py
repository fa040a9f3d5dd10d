"""The profiles of a training run on the page, in headless Chromium; the controller is a stand-in.

RAY_TEST_SCREENSHOTS=DIRECTORY keeps pictures.
"""

import gzip
import json
import os
import pathlib
import time

import pytest
from browser import CHROMIUM, browser
from cluster import cluster
from profiled_run import Controller

import ray
from ray import _raylet

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
PICTURES = os.environ.get("RAY_TEST_SCREENSHOTS")
RUN = "ab" * 16


def sign_in(tab, token):
    tab.click("#token")
    tab.type(token)
    tab.press_enter()
    tab.has("1 of 1")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with cluster(dashboard_port=0, connect=False) as made:
        ray.init(address=made.address, log_to_driver=False)
        controller = Controller.remote("digits", RUN, str(tmp_path_factory.mktemp("runs")))
        ray.get(controller.pid.remote())
        with browser(tmp_path_factory.mktemp("browser")) as chromium:
            tab = chromium.page()
            tab.chromium, tab.controller = chromium, controller
            tab.size(1280, 900)
            address = ray._private.worker.global_worker.context["dashboard_address"]
            tab.open(f"http://{address}")
            tab.until("document.querySelector('#login').open")
            sign_in(tab, (made.shell.scratch / ".ray" / "auth_token").read_text().strip())
            tab.problems = []
            tab.click("nav a", "Train")
            tab.click("td a", "digits")
            yield tab


def table(selector):
    """Returns the texts of a table's rows, by the names of the columns."""
    return (
        f"[...document.querySelectorAll('{selector} tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.innerText.trim()))"
    )


def test_a_profile_is_recorded_by_the_form(page):
    page.has("Record a profile")
    assert page.run("document.querySelector('#profile').hidden"), "there is nothing to show yet"
    page.run("document.querySelector('#record [name=steps]').value = '2'")
    page.click("#record button", "Record a profile")
    page.until("!document.querySelector('#profile').hidden")
    rows = page.run(table("#profiles > div:not([id])"))
    assert [row[0] for row in rows] == ["profile_1"] and "RECORDED" in rows[0]
    assert "1 of 2" in rows[0] and "rank 1: it has ended" in rows[0]
    page.has("profile_1: 2 steps of 2 ranks")
    page.has("Rank 1 is slow: it computes for <b>long</b>.")
    steps = page.run(table("#profile > div"))[:4]
    assert [row[:2] for row in steps] == [["0", "5"], ["0", "6"], ["1", "5"], ["1", "6"]]
    assert steps[0][2:6] == ["1.0 ms", "600 µs 60 %", "200 µs 20 %", "150 µs 15 %"]
    page.has("Memory of rank 0")
    page.has("activation")
    lines = (
        "[...document.querySelectorAll('#memory canvas')].map((it) => Chart.getChart(it))"
        ".flatMap((it) => it.data.datasets.filter(({ data }) => data.length > 1)).length"
    )
    assert page.run(lines) == 2
    if PICTURES:
        for width in (400, 1280):
            page.size(width, 900)
            page.run("document.querySelector('#profiles').scrollIntoView()")
            page.run("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 300))")
            page.screenshot(pathlib.Path(PICTURES) / f"train-profiles-{width}.png")
        page.size(1280, 900)
    assert not page.problems, page.problems


def test_the_summary_lists_operators(page):
    page.click("#profile summary")
    page.has("gloo:all_reduce")
    rows = page.run(table("#profile details"))
    assert rows[0] == ["0", "aten::addmm", "900 µs", "6"]


def test_the_trace_is_a_download(page):
    page.click("#profiles td a", "Trace")
    file = page.chromium.downloaded_file()
    assert file.name == "profile_1.trace.json.gz"
    assert len(json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]) == 1000


def test_what_the_controller_refuses_is_said(page):
    page.run("document.querySelector('#record [name=steps]').value = '500'")
    page.click("#record button", "Record a profile")
    page.has("another profile is under way")
    page.problems = [one for one in page.problems if "500" not in one]
    page.run("document.querySelector('#record [name=steps]').value = '1'")
    page.click("#record button", "Record a profile")
    page.has("profile_2: 1 steps of 2 ranks")
    page.click("#profiles td button", "profile_1")
    page.has("profile_1: 2 steps of 2 ranks")


def test_tensorboard_is_linked_while_it_is_renewed(page):
    viewer = {"url": "http://localhost:6006/", "owner": "a test", "time_ms": 1000 * time.time()}
    key = RUN.encode()
    _raylet.kv_put(b"train_tensorboards", key, json.dumps(viewer).encode(), True)
    page.until("document.querySelector('#tensorboard a')?.href === 'http://localhost:6006/'")
    viewer["url"] = "javascript:alert(1)"
    _raylet.kv_put(b"train_tensorboards", key, json.dumps(viewer).encode(), True)
    page.until("!document.querySelector('#tensorboard a')")


def test_a_run_that_has_ended_takes_no_profile(page):
    ray.get(page.controller.write.remote(status="FINISHED", end_time_ns=time.time_ns()))
    page.until("document.querySelector('#record').hidden")
    page.has("profile_2")
