"""Draws what bench/compare.py measured: one bar a line, how many times as fast as Ray.

figure.py RESULTS.json FIGURE.svg

The file of results maps the name of each line to {"ours": [mean, deviation], "ray": ...}, in
operations (or gigabytes) a second; "programs" holds the seconds and megabytes of
bench/programs.py, and "about" says what was measured when and where. A side that failed is null.
The figure has its own background, light or dark as the reader prefers. `make bench-compare` makes
docs/performance.svg.
"""

import datetime
import json
import math
import sys
from xml.sax.saxutils import escape, quoteattr

TITLE = "How many times as fast as Ray"
WIDTH = 960
MARGIN = 28
HERE_X, RAY_X = 396, 486  # The right edges of the two columns of figures.
# Right of the plot there is room for the ratio of the longest bar.
PLOT_LEFT, PLOT_RIGHT = 506, 872
ROW, BAR = 22, 12
NOT_LINES = ("programs", "recording", "about")

# The lines of bench/programs.py that the figure shows: the name there, the name here, the unit.
FIRST_MINUTES = (
    ("ray.init() s", "ray.init()", "s"),
    ("first result s", "first result after ray.init()", "s"),
    ("squares.py whole process s", "squares.py, the whole process", "s"),
    ("20 actors created and called s", "20 actors created and called", "s"),
    ("idle cluster unshared MB", "memory of an idle cluster", "MB"),
)

STYLE = """
  svg { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
  .ground { fill: #ffffff; stroke: #d1d9e0; }
  text { fill: #1f2328; font-size: 13px; }
  .title { font-size: 20px; font-weight: 600; }
  .group { font-weight: 600; }
  .muted, .axis { fill: #59636e; font-size: 12px; }
  .number { font-variant-numeric: tabular-nums; text-anchor: end; }
  .ray { fill: #59636e; }
  .ratio { font-weight: 600; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
  .axis { text-anchor: middle; }
  .grid { stroke: #e4e8ec; }
  .same { stroke: #59636e; }
  .faster { fill: #1769aa; }
  .slower { fill: #c2570c; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #3d444d; }
    text { fill: #e6edf3; }
    .muted, .axis, .ray { fill: #9198a1; }
    .ratio { stroke: #0d1117; }
    .grid { stroke: #262c36; }
    .same { stroke: #9198a1; }
    .faster { fill: #4493d8; }
    .slower { fill: #e0823d; }
  }
"""


def three_digits(value):
    """Writes a number with three significant digits and commas: 9,260 or 26.7 or 0.051."""
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    rounded = round(value, 2 - math.floor(math.log10(abs(value))))
    return f"{rounded:,.{decimals}f}"


def quantity(value, unit):
    """Writes a measured value for people; an em dash stands for a side that failed."""
    if value is None:
        return "\N{EM DASH}"
    if unit == "s":
        return f"{three_digits(value * 1000)} ms" if value < 1 else f"{three_digits(value)} s"
    if unit == "/s" and value >= 1e6:
        return f"{three_digits(value / 1e6)} M/s"
    if unit == "/s" and value >= 1e4:
        return f"{three_digits(value / 1e3)} k/s"
    return f"{three_digits(value)} {unit}"


def times(ratio):
    digits = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"
    return digits + "\N{MULTIPLICATION SIGN}"


class Row:
    """One line of the figure. `ratio` is above 1 where this project is better; None: unknown."""

    def __init__(self, name, unit, here, ray, less_is_better):
        self.name, self.here, self.ray = name, quantity(here, unit), quantity(ray, unit)
        self.ratio = None
        if here and ray:
            self.ratio = ray / here if less_is_better else here / ray


def groups_of(results):
    """Yields (title, rows) for the microbenchmark, and for the programs if they were measured."""

    def mean(side):
        return side[0] if side else None

    rows = []
    for name, sides in results.items():
        if name not in NOT_LINES:
            unit = "GB/s" if "gigabytes" in name else "/s"
            rows.append(Row(name, unit, mean(sides.get("ours")), mean(sides.get("ray")), False))
    yield "The standard microbenchmark", rows
    programs = results.get("programs") or {}
    ours, ray = programs.get("ours") or {}, programs.get("ray") or {}
    rows = [
        Row(title, unit, ours.get(key), ray.get(key), True)
        for key, title, unit in FIRST_MINUTES
        if key in ours or key in ray
    ]
    if rows:
        yield "The first minutes", rows


class Axis:
    """A logarithmic axis of ratios that ends at 1, 2 or 5 times a power of ten."""

    def __init__(self, ratios):
        low, high = min([1, *ratios]), max([10, *ratios])
        steps = [
            digit * 10.0**power
            for power in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
            for digit in (1, 2, 5)
        ]
        self.low = max(step for step in steps if step <= low)
        self.high = min(step for step in steps if step >= high)

    def x(self, ratio):
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return PLOT_LEFT + share * (PLOT_RIGHT - PLOT_LEFT)

    def ticks(self):
        power = math.ceil(math.log10(self.low) - 1e-9)
        while 10.0**power <= self.high * (1 + 1e-9):
            yield 10.0**power
            power += 1


def text(x, y, words, kind=""):
    attribute = f" class={quoteattr(kind)}" if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{attribute}>{escape(words)}</text>'


def draw_row(row, axis, y):
    """Yields the elements of a row whose middle is at `y`."""
    yield "<g>"
    ratio = "not known" if row.ratio is None else times(row.ratio)
    yield f"<title>{escape(f'{row.name}: {row.here} here, {row.ray} with Ray: {ratio}')}</title>"
    yield text(MARGIN, y + 4, row.name)
    yield text(HERE_X, y + 4, row.here, "number")
    yield text(RAY_X, y + 4, row.ray, "number ray")
    if row.ratio is not None:
        left, right = sorted((axis.x(1), axis.x(row.ratio)))
        kind = "faster" if row.ratio >= 1 else "slower"
        yield (
            f'<rect x="{left:.1f}" y="{y - BAR / 2:g}" width="{max(right - left, 1):.1f}" '
            f'height="{BAR}" rx="2" class="{kind}"/>'
        )
        yield text(round(right + 7, 1), y + 4, times(row.ratio), "ratio")
    yield "</g>"


def draw_axis(axis, top, bottom):
    for tick in axis.ticks():
        x = axis.x(tick)
        kind = "same" if tick == 1 else "grid"
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" class="{kind}"/>'
        label = f"{tick:,g}" if tick < 1 else f"{tick:,.0f}"
        yield text(round(x, 1), bottom + 17, f"{label}\N{MULTIPLICATION SIGN}", "axis")
    middle = (PLOT_LEFT + PLOT_RIGHT) / 2
    yield text(
        middle, bottom + 36, "times as fast as Ray; memory: times less (logarithmic)", "axis"
    )


def figure(results):
    """Returns the figure as the text of an SVG file."""
    about = results.get("about") or {}
    groups = [(title, rows) for title, rows in groups_of(results) if rows]
    axis = Axis([row.ratio for _, rows in groups for row in rows if row.ratio])
    facts = [
        f"ray-runtime {about['ours']}" if about.get("ours") else "",
        f"Ray {about['ray']}" if about.get("ray") else "",
        about.get("machine") or "",
        date(about.get("date")),
    ]
    subtitles = [
        "The standard microbenchmark, each line on both systems in turn, and whole programs; "
        + ", ".join(filter(None, ["one run", about.get("method")]))
        + ".",
        " \N{MIDDLE DOT} ".join(fact for fact in facts if fact),
        about.get("note") or "",
    ]
    y = MARGIN + 18
    body = [text(MARGIN, y, TITLE, "title")]
    y += 6
    for line in filter(None, subtitles):
        y += 18
        body.append(text(MARGIN, y, line, "muted"))
    y += 34
    body.append(text(HERE_X, y, "ray-runtime", "number muted"))
    body.append(text(RAY_X, y, "Ray", "number muted"))
    top = y - 12
    for title, rows in groups:
        body.append(text(MARGIN, y, title, "group"))
        y += ROW
        for row in rows:
            body += draw_row(row, axis, y - 4)
            y += ROW
        y += 12
    bottom = y - ROW - 4
    height = bottom + 36 + MARGIN - 8
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}" '
            f'viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{TITLE}">',
            f"<style>{STYLE}</style>",
            f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:g}" rx="8" '
            'class="ground"/>',
            *draw_axis(axis, top, bottom),
            *body,
            "</svg>\n",
        ]
    )


def date(iso):
    """Returns 2026-11-22 as 22 November 2026, and any other text as it is."""
    try:
        day = datetime.date.fromisoformat(iso or "")
    except ValueError:
        return iso or ""
    return f"{day.day} {day:%B %Y}"


def main():
    if len(sys.argv) != 3:
        print("usage: figure.py RESULTS.json FIGURE.svg", file=sys.stderr)
        return 2
    source, target = sys.argv[1:]
    try:
        with open(source) as file:
            results = json.load(file)
    except (OSError, ValueError) as error:
        print(f"figure.py: {source}: {error}", file=sys.stderr)
        return 1
    if not any(row.ratio for _, rows in groups_of(results) for row in rows):
        print(
            f"figure.py: {source} has no line with figures of both systems: `make bench-compare` "
            "measures them",
            file=sys.stderr,
        )
        return 1
    with open(target, "w", encoding="utf-8") as file:
        file.write(figure(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
