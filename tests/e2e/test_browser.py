"""The head's page in headless Chromium, as a person uses it: signs in, looks at stacks and flame
graphs, logs, the trace, a failed task's line, objects.

RAY_TEST_SCREENSHOTS=DIRECTORY keeps a picture of every view, wide and narrow.
"""

import json
import os
import pathlib
import time

import pytest
from browser import CHROMIUM, browser
from cluster import cluster
from waiting import eventually, until
from http_api import Api

import ray

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
PICTURES = os.environ.get("RAY_TEST_SCREENSHOTS")


@ray.remote
class Spinner:
    def spin(self):
        print("the spinner spins")
        print("as it was told")
        while True:
            self.turn()

    # Rests most of the time, since the spinner is there for as long as the tests of this file.
    def turn(self):
        time.sleep(0.01)
        return sum(i * i for i in range(10_000))

    def say(self, text):
        print(text, flush=True)


@ray.remote(max_retries=0)
def breaks():
    raise ValueError("the <b>first</b> cause")


@ray.remote(max_retries=0)
def passes_on(value):
    return value


@ray.remote(max_retries=0)
def parent():
    try:
        ray.get(passes_on.remote(breaks.remote()))
    except ray.exceptions.RayTaskError:
        return "seen"


@ray.remote(max_retries=0)
def leaves():
    os._exit(3)


@pytest.fixture(scope="module")
def busy():
    """A cluster that gives every view something to show: a running actor, its log, a job, a failed
    task with a parent and a cause, an object."""
    with cluster(cpus=4, connect=False, dashboard_port=0) as made:
        shell = made.shell
        shell.ok(
            "job",
            "submit",
            f"--address={made.address}",
            "--submission-id=keeps-running",
            "--no-wait",
            "--",
            "python",
            "-c",
            "import ray, time; ray.init(); print('the job has begun', flush=True); time.sleep(3600)",
        )
        ray.init(address=made.address, log_to_driver=False)
        made.actor = Spinner.options(max_concurrency=2, name="top", num_cpus=1).remote()
        made.spinning = made.actor.spin.remote()
        assert ray.get(parent.remote()) == "seen"
        made.object = ray.put(b"x" * 5_000_000)
        made.web = f"http://{ray._private.worker.global_worker.context['dashboard_address']}"
        made.token = (shell.scratch / ".ray" / "auth_token").read_text().strip()
        assert eventually(
            lambda: (
                {
                    task["state"]
                    for task in ray.util.state.list_tasks()
                    if task["name"] in ("breaks", "passes_on", "parent")
                }
                == {"FAILED", "FINISHED"}
            ),
            30,
        )
        with pytest.raises(ray.exceptions.WorkerCrashedError):
            ray.get(leaves.remote())
        yield made


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as made:
        yield made


def enter_token(tab, token):
    """Types the token as a person would, in place of one that was refused."""
    tab.click("#token")
    tab.run("document.querySelector('#token').value = ''")
    tab.type(token)
    tab.press_enter()


@pytest.fixture(scope="module")
def page(busy, chromium):
    """A tab that has signed in."""
    tab = chromium.page()
    tab.size(1280, 800)
    tab.open(busy.web)
    tab.until("document.querySelector('#login').open")
    picture(tab, "login")
    enter_token(tab, "not the token")
    tab.has("Invalid authentication token")
    enter_token(tab, busy.token)
    tab.has("1 of 1")
    refused, tab.problems = tab.problems, []
    assert all("401" in text or "403" in text for text in refused), refused
    cookies = tab.call("Network.getCookies")["cookies"]
    assert [
        (cookie["name"], len(cookie["value"]), cookie["httpOnly"], cookie["sameSite"])
        for cookie in cookies
    ] == [("ray-authentication-token", 64, True, "Strict")]
    assert cookies[0]["value"] != busy.token
    yield tab


@pytest.fixture(autouse=True)
def quiet(page, busy):
    """After every test there must be no error in the console and no request to another host."""
    page.problems, page.requests = [], []
    yield
    page.run("1")
    assert page.problems == []
    assert [
        url for url in page.requests if not url.startswith((busy.web, "blob:" + busy.web, "data:"))
    ] == []


def picture(page, name):
    if PICTURES:
        for width, height in ((400, 800), (1280, 800)):
            page.size(width, height)
            page.run("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 300))")
            page.screenshot(pathlib.Path(PICTURES) / f"{name}-{width}.png")


def show(page, view, text):
    page.click("nav a", view)
    page.has(text)
    picture(page, view.lower())


def row_of(text):
    return f"[...document.querySelectorAll('tbody tr')].find((row) => row.innerText.includes({json.dumps(text)}))"


def click_in_row(page, text, button=None):
    """Clicks the button (else the first link) of the row that has a text. It waits for the row,
    because rows come with an answer and are replaced at every refresh."""
    wanted = "true" if button is None else f"one.textContent === {json.dumps(button)}"
    page.until(
        f"(() => {{ const row = {row_of(text)}; const found = row && [...row.querySelectorAll('a')].find((one) => {wanted}); if (found) found.click(); return !!found; }})()"
    )


def test_the_page_stays_signed_in(page, busy):
    page.open(busy.web + "/?again")
    page.has("1 of 1")
    assert not page.run("document.querySelector('#login').open")
    show(page, "Overview", "Tasks by name")
    show(page, "Nodes", "ALIVE")


def test_what_is_used_is_shown_of_the_cluster_and_of_each_node(page):
    show(page, "Overview", "Tasks by name")
    page.has("1 of 4")
    page.has("Tasks now, without calls of actors")
    page.has("CPU: 1 of 4")
    page.until("document.querySelector('.bar i').style.width === '25%'")
    show(page, "Nodes", "ALIVE")
    page.has("1/4 CPU")
    page.until("/\\d %\\s+[\\d.]+ [MG]iB of [\\d.]+ GiB\\s+4.8 MiB/.test(document.body.innerText)")


def test_an_actor_s_stack_trace(page):
    show(page, "Actors", "Spinner")
    click_in_row(page, "Spinner", "Stack Trace")
    page.has("spin (")
    page.has("py-spy")
    picture(page, "stack")
    assert "PythonExecutor" not in page.run("document.querySelector('pre.text').textContent")
    page.click("label", "native frames")
    page.until("document.querySelector('pre.text').textContent.includes('PythonExecutor')")
    assert "native=1" in page.run("location.hash")
    page.click("input[type=search]")
    page.type("SPIN (")
    page.until("document.querySelectorAll('mark').length > 0")


def test_an_actor_s_flame_graph_zooms_and_opens_in_speedscope(page, chromium):
    show(page, "Actors", "Spinner")
    click_in_row(page, "Spinner", "CPU Flame Graph")
    page.until("document.querySelector('input[name=duration]') !== null")
    page.run("location.hash = location.hash.replace('duration=5', 'duration=1') + '&native=1'")
    page.until(
        "document.querySelector('input[name=native]').checked && document.querySelector('input[name=duration]').value === '1'"
    )
    page.until(
        "document.querySelector('a[download]:not([hidden])') && document.querySelector('section [role=status]').textContent.startsWith('Sampled')"
    )
    # Before this sample, the sample of five seconds had to end. Until it ended, the process refused
    # requests, which the console has noted.
    page.problems = [text for text in page.problems if "worker/cpu_profile" not in text]
    picture(page, "flame")
    # The frame gets its text with an answer.
    (frame,) = eventually(lambda: page.run("1") and page.frames)
    boxes = "[...document.querySelectorAll('g')].filter((box) => box.style.display !== 'none').map((box) => box.querySelector('title').textContent)"
    # The frame exists before its picture is drawn.
    before = eventually(lambda: page.run(boxes, frame))
    assert any("spin (" in name for name in before) and any("turn (" in name for name in before), (
        before
    )
    # The chosen box fills the width. The boxes beside it are hidden, because they would now be
    # beyond the edges.
    chosen = "[...document.querySelectorAll('g')].find((box) => box.querySelector('title').textContent.includes('turn ('))"
    page.run(f"{chosen}.dispatchEvent(new MouseEvent('click'))", frame)
    assert page.run(
        f"Number({chosen}.querySelector('rect').getAttribute('width')) === Number(document.querySelector('#ground').getAttribute('width'))",
        frame,
    )
    assert any("turn (" in name for name in page.run(boxes, frame))
    edges = "[...document.querySelectorAll('g')].filter((box) => box.style.display !== 'none').map((box) => ['x', 'width'].map((name) => Number(box.querySelector('rect').getAttribute(name))))"
    full = page.run("Number(document.querySelector('#ground').getAttribute('width'))", frame)
    assert all(-1 < x and x + width < full + 1 for x, width in page.run(edges, frame)), (
        full,
        page.run(edges, frame),
    )
    page.click("section a", "Download")
    assert "turn (" in chromium.downloaded()
    page.run("document.querySelector('select[name=format]').value = 'speedscope'")
    page.click("button", "Sample again")
    inside = "document.querySelector('iframe').contentDocument.body"
    if page.run("fetch('speedscope/', {method: 'HEAD'}).then((answer) => answer.status)") == 404:
        page.has("speedscope is not part of this build")
        page.problems.clear()
        return
    page.until("document.querySelector('iframe').src.includes('speedscope')")
    page.until(f"{inside} && {inside}.innerText.includes('Left Heavy')")
    page.until("document.querySelector('iframe').contentDocument.title.includes('process')")
    picture(page, "speedscope")


def test_processes_say_what_they_run_and_take_and_how_they_ended(page):
    job = ray.get_runtime_context().get_job_id()
    show(page, "Processes", "Spinner (top)")
    page.until(
        f"(() => {{ const row = {row_of('Spinner (top)')}; return row && /WORKER\\s+Spinner \\(top\\)\\s+{job}\\s+\\d+ %\\s+[\\d.]+ MiB/.test(row.innerText); }})()"
    )
    page.until(f"{row_of('keeps-running')}?.innerText.includes('import ray, time')")
    page.until(
        "[...document.querySelectorAll('td .bad')].some((one) => one.innerText === 'DEAD: exited with code 3' && one.title.startsWith('worker process'))"
    )


def test_how_a_job_ended_is_in_sight(page, busy):
    assert (
        busy.shell.run(
            "job",
            "submit",
            f"--address={busy.address}",
            "--submission-id=fails-at-once",
            "--",
            "python",
            "-c",
            "raise SystemExit(7)",
        ).returncode
        == 7
    )
    page.size(1280, 800)
    show(page, "Jobs", "fails-at-once")
    page.until(
        f"[...{row_of('fails-at-once')}?.cells || []].some((one) => one.textContent === '7')"
    )
    right = "document.querySelectorAll('th').values().find((one) => one.innerText.startsWith({}))?.getBoundingClientRect().right"
    for heading in ("Exit code", "Message", "Started"):
        assert 0 < page.run(right.format(json.dumps(heading))) <= 1280, heading


def test_a_process_and_a_job_have_the_buttons(page):
    show(page, "Processes", "WORKER")
    # The process id tells this driver from the other one.
    click_in_row(page, str(os.getpid()), "Stack Trace")
    page.has("test_browser.py")
    show(page, "Jobs", "keeps-running")
    click_in_row(page, "keeps-running", "Stack Trace")
    page.has("<module> (")
    show(page, "Jobs", "keeps-running")
    click_in_row(page, "keeps-running", "CPU Flame Graph")
    page.has("Sampling for")


def test_logs_are_found_followed_and_searched(page, busy):
    show(page, "Jobs", "keeps-running")
    click_in_row(page, "keeps-running", "Log")
    page.has("the job has begun")
    show(page, "Logs", "Node")
    picture(page, "logs")
    page.until(
        "[...document.querySelectorAll('li')].some((one) => /^\\d+\\.out \\d+\\.err Spinner \\(top\\)$/.test(one.innerText.trim()))"
    )
    page.until(
        "[...document.querySelectorAll('li')].some((one) => one.innerText.includes('breaks') && one.querySelector('a').title.startsWith('worker-'))"
    )
    page.click("li a", "job-driver-keeps-running.log")
    page.has("the job has begun")
    show(page, "Actors", "Spinner")
    click_in_row(page, "Spinner", "Logs")
    page.has("the spinner spins")
    ray.get(busy.actor.say.remote("a line that came later"))
    page.has("a line that came later")
    page.click("input[type=search]")
    page.type("line THAT")
    page.until(
        "document.querySelector('mark') && document.querySelector('mark').textContent === 'line that'"
    )
    page.has("1 found")
    picture(page, "log")


def test_the_line_of_an_error(page):
    show(page, "Tasks", "passes_on")
    click_in_row(page, "passes_on")
    page.has("the <b>first</b> cause")
    page.until(
        "[...document.querySelectorAll('.causes li')].some((one) => one.innerText.includes('breaks'))"
    )
    picture(page, "task")


def test_what_a_task_printed_is_a_click_from_it(page):
    show(page, "Tasks", "Spinner.spin")
    click_in_row(page, "Spinner.spin")
    page.click("a", "stdout")
    page.has("as it was told")
    assert ":task_id:" not in page.run("document.querySelector('pre.text').textContent"), (
        "the lines of the task alone"
    )


def test_who_called_a_failed_task(page):
    show(page, "Tasks", "passes_on")
    click_in_row(page, "passes_on")
    page.click(".line a", "parent")
    page.until(
        "document.querySelector('h2') && document.querySelector('h2').innerText.startsWith('parent FINISHED')"
    )
    page.click(".line a", "breaks")
    page.has("the <b>first</b> cause")


def test_the_page_of_objects_shows_their_size(page):
    show(page, "Objects", "4.8 MiB")


def test_the_trace_downloads(page, chromium):
    show(page, "Timeline", "chrome://tracing")
    job = ray.get_runtime_context().get_job_id()
    page.until(f"document.querySelector('select[name=job_id] option[value=\"{job}\"]') !== null")
    # Measures the button's place without the jobs and with them. The script removes and restores
    # the options, because a test cannot be sure to look before the answer that brings them.
    without, with_them = page.run("""(() => {
        const place = () => { const box = document.querySelector('a.button').getBoundingClientRect(); return [box.x, box.y]; };
        const field = document.querySelector('select[name=job_id]'), jobs = [...field.options].slice(1), full = place();
        for (const one of jobs) one.remove();
        const empty = place();
        field.append(...jobs);
        return [empty, full];
    })()""")
    assert without == with_them, "what one is about to click stays where it is"
    page.click("a.button", "Download")
    events = json.loads(chromium.downloaded())
    assert any(
        event["name"] == "breaks" or "breaks" in event.get("cat", "") for event in events
    ) and any(event["ph"] == "s" for event in events)
    page.has("ui.perfetto.dev")
    # Then the trace of one job and of its last hour, without arrows.
    page.click("label", "arrows from who submitted a task to where it ran")
    for name, value in (("job_id", job), ("last", "3600")):
        page.run(
            f"(() => {{ const field = document.querySelector('select[name={name}]'); field.value = '{value}'; field.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
        )
    assert (
        page.run(
            "new URLSearchParams(document.querySelector('a.button').href.split('?')[1]).toString()"
        )
        == f"download=1&arrows=0&job_id={job}&last=3600"
    )
    page.click("a.button", "Download")
    events = json.loads(chromium.downloaded())
    assert any("breaks" in event.get("cat", "") for event in events) and not any(
        event["ph"] == "s" for event in events
    )


def test_a_sign_in_that_has_ended_is_asked_for_again(page, busy):
    show(page, "Nodes", "ALIVE")
    page.call("Network.clearBrowserCookies")
    page.until("document.querySelector('#login').open")
    enter_token(page, busy.token)
    page.until("!document.querySelector('#login').open")
    page.problems.clear()


def test_signing_out_ends_the_session(page, busy):
    show(page, "Nodes", "ALIVE")
    session = page.call("Network.getCookies")["cookies"][0]["value"]
    page.click("button", "Sign out")
    page.until("document.querySelector('#login')?.open")
    # The form also opens when a refresh is refused, which may come before the answer to signing
    # out.
    until(lambda: page.call("Network.getCookies")["cookies"], [].__eq__)
    api = Api(busy.web.removeprefix("http://"), busy.token)
    assert (
        api.request(
            "GET",
            "/api/v0/nodes",
            token=False,
            headers={"Cookie": f"ray-authentication-token={session}"},
        )[0]
        == 403
    )
    enter_token(page, busy.token)
    page.until("!document.querySelector('#login').open")
    page.problems.clear()
