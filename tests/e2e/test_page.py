"""The head's web page: what a stranger gets of it, and that a browser shows the cluster."""

import http.client
import re

import pytest

import ray
from cluster import cluster


def get(address, path, **headers):
    connection = http.client.HTTPConnection(address, timeout=120)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode(errors="replace")
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
    assert (
        "default-src 'self'" in headers["Content-Security-Policy"]
        and headers["X-Frame-Options"] == "DENY"
    )
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
    assert get(running, "/static/nothing.js")[0] == 404 and get(running, "/static/../main.cc")[
        0
    ] in (401, 404)
    assert not re.search(r"https?://(?!www\.w3\.org)", page), "nothing of another host"


def test_speedscope_is_served_from_here_or_said_to_be_absent(running):
    status, headers, page = get(running, "/speedscope/")
    if status == 404:
        assert "speedscope is not part of this build" in page
        pytest.skip(page)
    assert (
        status == 200
        and "frame-ancestors 'self'" in headers["Content-Security-Policy"]
        and headers.get_all("X-Frame-Options") == ["SAMEORIGIN"]
    )
    for name in re.findall(r'(?:src|href)="([^"]+)"', page):
        status, headers, _ = get(running, f"/speedscope/{name}")
        assert status == 200 and not headers["Content-Type"].startswith("text/plain"), name
    assert "Permission is hereby granted" in get(running, "/speedscope/LICENSE")[2]
    assert (
        get(running, "/speedscope")[0] == 302 and get(running, "/speedscope/nothing.js")[0] == 404
    )


def test_a_graph_s_script_has_no_rights(running):
    status, headers, _ = get(running, "/static/graph.html")
    assert (
        status == 200
        and headers["Content-Security-Policy"].startswith(
            "sandbox allow-scripts; default-src 'none'"
        )
        and headers.get_all("X-Frame-Options") == ["SAMEORIGIN"]
    )


def test_what_it_shows_needs_the_token(running):
    assert get(running, "/api/v0/nodes")[0] == 401
    assert (
        get(running, "/api/v0/nodes", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"})[
            0
        ]
        == 403
    )
