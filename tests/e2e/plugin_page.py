"""TensorBoard with its PyTorch plug-in, as a person opens it on the traces of a run.

The plug-in's page asks two hosts on the Internet for scripts. Tests reach none, and serve them from
files: charts from a stand-in of their own (google_charts.js), and for the view of a trace an npm
package, which scripts/train_extras puts beside the interpreter.
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import urllib.request

import pytest
from browser import browser
from ports import free_port
from waiting import eventually

WEB_COMPONENTS = pathlib.Path(
    sys.prefix, "page", "node_modules", "webcomponents.js", "webcomponents.min.js"
)
FILES = {
    "https://www.gstatic.com/charts/loader.js": pathlib.Path(__file__).parent / "google_charts.js",
    "https://cdnjs.cloudflare.com/ajax/libs/webcomponentsjs/0.7.24/webcomponents.min.js": (
        WEB_COMPONENTS
    ),
}
ROUTE = "data/plugin/pytorch_profiler"
# The frame of the plug-in in TensorBoard's page, and the frame of the trace viewer in the plug-in's
# page.
FRAME = "document.querySelector('iframe')?.contentDocument?.body?.innerText"


@contextlib.contextmanager
def tensorboard(directory):
    """Yields the URL of a TensorBoard which has read all traces below a directory."""
    url = f"http://127.0.0.1:{free_port()}/"
    port = url.rstrip("/").rpartition(":")[2]
    words = ["--logdir", directory, "--host", "127.0.0.1", "--port", port]
    with open(directory.parent / "tensorboard.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", *map(str, words)], stdout=log, stderr=log
        )
    try:

        def has_read_all():
            assert process.poll() is None, pathlib.Path(log.name).read_text()
            try:
                with urllib.request.urlopen(f"{url}{ROUTE}/runs", timeout=60) as answer:
                    said = json.load(answer)
            except OSError:
                return False
            return bool(said["runs"]) and not said["loading"]

        assert eventually(has_read_all, 120), pathlib.Path(log.name).read_text()
        yield url
    finally:
        process.terminate()
        process.wait(120)


class PluginPage:
    """The plug-in's own page in a tab, without TensorBoard's bar above it."""

    def __init__(self, tab, url):
        self.tab, self.url = tab, url
        tab.serve({name: file for name, file in FILES.items() if file.exists()})
        self.start()

    def start(self):
        self.view = "Overview"
        self.tab.size(1280, 1000)
        # An empty page comes first; otherwise the browser would take the URL for another place in
        # the present page.
        self.tab.open("about:blank")
        self.tab.open(f"{self.url}{ROUTE}/index.html")
        self.tab.has("Performance Recommendation", 60)

    def choices(self, current):
        """Opens the list that shows `current`, and returns the choices that it offers."""
        self.tab.click("[role=button]", current)
        self.tab.until("document.querySelector('[role=listbox] [role=option]') !== null")
        texts = "[...document.querySelectorAll('[role=listbox] [role=option]')].map((one) => one.innerText)"
        return self.tab.run(texts)

    def pick(self, choice):
        """Takes a choice of an open list by script, because the list is still moving to its place
        and the mouse would miss it."""
        options = "[...document.querySelectorAll('[role=option]')]"
        self.tab.run(f"{options}.find((one) => one.innerText === {json.dumps(choice)}).click()")
        self.tab.until("document.querySelector('[role=listbox]') === null")

    def choose(self, view):
        self.choices(self.view)
        self.pick(view)
        self.view = view

    def choose_run(self, current, run):
        """Chooses a run in the list that shows `current`. The plug-in then shows the overview
        again."""
        self.choices(current)
        self.pick(run)
        self.tab.has("Step Time Breakdown")
        self.view = "Overview"

    def check_trace(self, *names):
        """Checks that the plug-in's viewer shows a trace with spans of these names."""
        if not WEB_COMPONENTS.exists():
            pytest.skip(f"the trace viewer's polyfill is not in {WEB_COMPONENTS.parent}")
        self.choose("Trace")
        self.tab.until(f"{FRAME}?.includes('ray::RayTrainWorker')", 60)
        slices = (
            "Object.values(document.querySelector('iframe').contentDocument"
            ".querySelector('tr-ui-timeline-view').model.processes).flatMap((process) =>"
            " Object.values(process.threads).flatMap((thread) =>"
            " thread.sliceGroup.slices.map((slice) => slice.title)))"
        )
        shown = set(self.tab.run(slices))
        assert set(names) <= shown, set(names) - shown


@contextlib.contextmanager
def plugin_page(logs, directory):
    with tensorboard(logs) as url, browser(directory) as chromium:
        yield PluginPage(chromium.page(), url)
