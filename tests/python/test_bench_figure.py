"""bench/figure.py: the figure shows every line that was measured, and refuses what has none."""

import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

FIGURE = pathlib.Path(__file__).resolve().parents[2] / "bench" / "figure.py"
SVG = "{http://www.w3.org/2000/svg}"
RESULTS = {
    "about": {
        "ours": "0.1.0",
        "ray": "2.60.0",
        "machine": "2 cores of A & B <C>",
        "date": "2026-11-05",
        "method": "two rounds of one second a line",
    },
    "single client tasks sync": {"ours": [15000.0, 10.0], "ray": [500.0, 2.0]},
    "single client put gigabytes": {"ours": [26.66, 0.3], "ray": [1.333, 0.2]},
    "a line that failed in Ray": {"ours": [1.0, 0.0], "ray": None},
    "programs": {
        "ours": {"ray.init() s": 0.05, "first result s": 0.03, "idle cluster unshared MB": 30.0},
        "ray": {"ray.init() s": 2.0, "first result s": 0.012, "idle cluster unshared MB": 390.0},
    },
    "recording": {"a burst": 4.6},
}


def draw(directory, results):
    source = directory / "bench.json"
    source.write_text(json.dumps(results))
    return subprocess.run(
        [sys.executable, FIGURE, source, directory / "figure.svg"],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def svg(tmp_path_factory):
    directory = tmp_path_factory.mktemp("figure")
    done = draw(directory, RESULTS)
    assert done.returncode == 0, done.stderr
    return ElementTree.parse(directory / "figure.svg").getroot()


def texts(element):
    return [found.text for found in element.iter(f"{SVG}text")]


def row(svg, name):
    (found,) = [group for group in svg.iter(f"{SVG}g") if texts(group)[0] == name]
    return texts(found)[1:]


def test_every_line_has_its_figures_and_its_ratio(svg):
    assert row(svg, "single client tasks sync") == ["15.0 k/s", "500 /s", "30×"]
    assert row(svg, "single client put gigabytes") == ["26.7 GB/s", "1.33 GB/s", "20×"]
    # Seconds and megabytes: less is better.
    assert row(svg, "ray.init()") == ["50.0 ms", "2.00 s", "40×"]
    assert row(svg, "first result after ray.init()") == ["30.0 ms", "12.0 ms", "0.4×"]
    assert row(svg, "memory of an idle cluster") == ["30.0 MB", "390 MB", "13×"]
    assert len(list(svg.iter(f"{SVG}g"))) == 6


def test_a_side_that_failed_has_no_bar(svg):
    assert row(svg, "a line that failed in Ray") == ["1.00 /s", "—"]


def test_bars_are_inside_and_say_which_side_is_better(svg):
    width = float(svg.get("width"))
    bars = [rect for rect in svg.iter(f"{SVG}rect") if rect.get("class") != "ground"]
    assert sorted(bar.get("class") for bar in bars) == ["faster"] * 4 + ["slower"]
    for bar in bars:
        assert 0 < float(bar.get("x")) < float(bar.get("x")) + float(bar.get("width")) < width


def test_it_says_what_was_measured_where_and_when(svg):
    said = " ".join(texts(svg))
    for fact in (
        "ray-runtime 0.1.0",
        "Ray 2.60.0",
        "2 cores of A & B <C>",
        "5 November 2026",
        "two rounds of one second a line",
        "logarithmic",
        "1×",
        "10×",
    ):
        assert fact in said


def test_results_without_ray_are_refused(tmp_path):
    done = draw(tmp_path, {"single client tasks sync": {"ours": [15000.0, 10.0]}})
    assert done.returncode == 1 and "make bench-compare" in done.stderr
    assert not (tmp_path / "figure.svg").exists()
