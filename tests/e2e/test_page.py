"""The head's web page: what a stranger gets of it, and that a browser shows the cluster."""
import http.client
import re
import shutil
import subprocess

import pytest

import ray
from cluster import cluster

CHROMIUM = shutil.which("chromium")


def get(address, path, **headers):
    connection = http.client.HTTPConnection(address, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def running():
    with cluster(cpus=2, connect=False) as made:
        ray.init(address=made.address, log_to_driver=False)
        yield ray._private.worker.global_worker.context["dashboard_address"]


def test_the_page_is_whole_and_open(running):
    status, headers, page = get(running, "/")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'self'" in headers["Content-Security-Policy"] and headers["X-Frame-Options"] == "DENY"
    wanted, seen = re.findall(r'(?:src|href)="(static/[^"]+)"', page), set()
    while wanted:
        path = wanted.pop()
        if path in seen:
            continue
        seen.add(path)
        status, headers, text = get(running, "/" + path)
        assert status == 200 and text, path
        wanted += ["static/" + name for name in re.findall(r'from "\./([^"]+)"', text)]
    assert len(seen) >= 7
    assert get(running, "/favicon.ico")[0] == 200
    assert get(running, "/static/nothing.js")[0] == 404 and get(running, "/static/../main.cc")[0] in (401, 404)
    assert not re.search(r"https?://(?!www\.w3\.org)", page), "nothing of another host"


def test_what_it_shows_needs_the_token(running):
    assert get(running, "/api/v0/nodes")[0] == 401
    assert get(running, "/api/v0/nodes", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"})[0] == 403


@pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
def test_a_browser_asks_for_the_token_and_lists_tasks(running, tmp_path):
    def browse(view):
        done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--virtual-time-budget=8000", "--dump-dom",
                               f"http://{running}/#{view}"], capture_output=True, text=True, timeout=90)
        return done.stdout
    page = browse("tasks")
    assert re.search(r'<dialog id="login"[^>]* open', page) and "Sign in" in page
