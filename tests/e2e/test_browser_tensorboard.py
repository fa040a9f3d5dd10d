"""A profile of the example of docs/training.md: its files, TensorBoard's PyTorch plug-in with each
view that the document shows, and the pages of memory.

RAY_TEST_SCREENSHOTS=DIRECTORY keeps the pictures; `make train-extras PICTURES=docs/images` makes
those of the document.
"""

import os
import pathlib
import subprocess
import sys

import fashion_mnist
import pytest
import rank_traces
from browser import CHROMIUM
from cluster import world
from plugin_page import FRAME, plugin_page
from test_train_example import EXAMPLE

pytestmark = [
    pytest.mark.train_extras,
    pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed"),
]
PICTURES = os.environ.get("RAY_TEST_SCREENSHOTS")
SPANS = {"forward_pass", "backward_pass", "optimizer_step"}


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """Runs the example with --profile, and returns the run's storage path."""
    directory = tmp_path_factory.mktemp("profiled")
    fashion_mnist.write(directory / "data", train=1280, test=128)
    words = ["--data", directory / "data", "--storage", directory / "runs", "--profile"]
    with world() as shell:
        done = subprocess.run(
            [sys.executable, EXAMPLE, *map(str, words)],
            env=shell.env,
            cwd=shell.scratch,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory / "runs"


@pytest.fixture(scope="module")
def opened(profiled, tmp_path_factory):
    with plugin_page(profiled / "logs", tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture
def page(opened):
    opened.start()
    return opened


def picture(tab, name, height, kept=None):
    """Saves the upper part of a tab of this height with few colours, because the picture is kept in
    the repository."""
    if not PICTURES:
        return
    from PIL import Image

    path = pathlib.Path(PICTURES) / f"train-{name}.png"
    tab.size(1280, height)
    tab.run("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 500))")
    tab.screenshot(path)
    image = Image.open(path).convert("RGB").crop((0, 0, 1280, kept or height))
    image.quantize(64).save(path, optimize=True)


def test_each_rank_leaves_a_trace(profiled):
    for trace in rank_traces.read(profiled / "logs" / "example", 2).values():
        rank_traces.check(trace, 2, "train_fashion_mnist.py")
        assert SPANS <= trace.names("user_annotation")


def test_tensorboard_shows_the_plugin(page):
    page.tab.open(f"{page.url}#pytorch_profiler")
    page.tab.until(rf"/Number of Worker\(s\)\s*2/.test({FRAME})", 60)
    page.tab.until(f"{FRAME}.includes('CPU Exec')")
    picture(page.tab, "tensorboard", 900)


def test_the_plugin_offers_runs_views_and_workers(page):
    assert page.choices("example") == ["example"]
    page.pick("example")
    views = {"Overview", "Operator", "Trace", "Distributed", "Memory", "Module"}
    assert views <= set(page.choices("Overview"))
    page.pick("Overview")
    page.tab.has("Step Time Breakdown")


def test_operators_and_memory(page):
    page.choose("Operator")
    page.tab.has("aten::convolution_backward")
    page.choose("Memory")
    page.tab.has("Peak Memory Usage")
    page.tab.until("document.querySelectorAll('.chart polyline').length > 0")
    picture(page.tab, "tensorboard-memory", 900)


def test_ranks_beside_each_other(page, profiled):
    page.choose("Distributed")
    page.tab.has("Synchronizing/Communication Overview")
    page.tab.has("gloo:all_reduce")
    bars = page.tab.until(
        "(() => { const found = [...document.querySelectorAll('.chart svg')].slice(0, 2)"
        ".map((svg) => svg.querySelectorAll('rect').length); return found.length === 2 && found; })()"
    )
    # There are two ranks. The first chart has four bars for each (computation, overlap,
    # communication, the rest), the second has two (transfer and waiting).
    assert bars == [8, 4]
    for trace in rank_traces.read(profiled / "logs" / "example", 2).values():
        page.tab.has(f"_{trace.pid}")
    picture(page.tab, "tensorboard-distributed", 960)


def test_the_view_of_the_trace_shows_steps_and_operators(page):
    page.check_trace("ProfilerStep#2", "ProfilerStep#4", "aten::conv2d", *SPANS)
    picture(page.tab, "tensorboard-trace", 1300, kept=890)


def test_pages_of_memory(page, profiled):
    for rank in (0, 1):
        page.tab.open((profiled / "fashion" / f"rank{rank}_memory.html").as_uri())
        assert page.tab.until("document.querySelector('img').naturalWidth") > 600
    page.tab.run("document.querySelector('img').style.width = '100%'")
    picture(page.tab, "memory-timeline", 720)
