// Lines over time as SVG, with axes, a legend with the latest values, and the values under the
// pointer.
import { el } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 480,
  HEIGHT = 150,
  LEFT = 62,
  RIGHT = 8,
  TOP = 8,
  BOTTOM = 20;
const COLOURS = [
  "#1769aa",
  "#c2570c",
  "#1b7f4b",
  "#8e44ad",
  "#b3261e",
  "#0e7c86",
  "#9a6700",
  "#5b6b7b",
];

function shape(name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const clock = (time) =>
  new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

// Returns the top of an axis: the next of 1, 2, 5, 10, 20, ... at or above `most`, or for bytes
// the next power of two.
function ceilingOf(most, binary) {
  if (!(most > 0)) return 1;
  const base = binary ? 1024 : 10;
  const unit = base ** Math.floor(Math.log(most) / Math.log(base));
  for (const step of binary ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] : [1, 2, 5, 10])
    if (step * unit >= most) return step * unit;
  return most;
}

export class Chart {
  // `show` turns a value into text, and `axis` a time. The top of the axis is never below `least`.
  constructor(
    title,
    {
      show = (value) => String(Math.round(value * 100) / 100),
      binary = false,
      least = 0,
      axis = clock,
    } = {},
  ) {
    Object.assign(this, { show, binary, least, axis, lines: [], times: [] });
    this.svg = shape("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": title,
    });
    this.legend = el("div", { class: "legend" });
    this.element = el(
      "figure",
      { class: "chart" },
      el("figcaption", {}, title),
      this.svg,
      this.legend,
    );
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.draw());
  }

  // lines: [{ name, times, values }], with times in ms since the epoch. Samples that are more than
  // `gap` ms apart are not joined.
  set(lines, from, to, gap) {
    Object.assign(this, { lines, from, to, gap });
    this.draw();
  }

  x(time) {
    return LEFT + ((WIDTH - LEFT - RIGHT) * (time - this.from)) / Math.max(1, this.to - this.from);
  }
  y(value) {
    const share = (value - this.bottom) / (this.top - this.bottom);
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share;
  }

  path({ times, values }) {
    let text = "";
    for (let i = 0; i < times.length; ++i) {
      const joined = i > 0 && times[i] - times[i - 1] <= this.gap;
      text += `${joined ? "L" : "M"}${this.x(times[i]).toFixed(1)} ${this.y(values[i]).toFixed(1)}`;
    }
    return text;
  }

  draw(at = null) {
    // The pointer may be here before the first values are.
    if (this.to === undefined) return;
    let most = this.least;
    for (const line of this.lines) for (const value of line.values) most = Math.max(most, value);
    this.top = ceilingOf(most, this.binary);
    let lowest = 0;
    for (const line of this.lines)
      for (const value of line.values) lowest = Math.min(lowest, value);
    this.bottom = lowest < 0 ? -ceilingOf(-lowest, this.binary) : 0;
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      const mark = this.bottom + (this.top - this.bottom) * share,
        y = this.y(mark);
      parts.push(
        shape("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: "grid" }),
        shape("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, this.show(mark)),
      );
    }
    for (const share of [0, 0.5, 1]) {
      const time = this.from + (this.to - this.from) * share;
      parts.push(
        shape(
          "text",
          {
            x: this.x(time),
            y: HEIGHT - 5,
            "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle",
          },
          this.axis(time),
        ),
      );
    }
    this.lines.forEach((line, i) =>
      parts.push(
        shape("path", { d: this.path(line), stroke: COLOURS[i % COLOURS.length], class: "line" }),
      ),
    );
    if (at !== null)
      parts.push(
        shape("line", {
          x1: this.x(at),
          x2: this.x(at),
          y1: TOP,
          y2: HEIGHT - BOTTOM,
          class: "cursor",
        }),
      );
    this.svg.replaceChildren(...parts);
    this.legend.replaceChildren(
      ...this.lines.map((line, i) =>
        el(
          "span",
          {},
          el("i", { style: `background:${COLOURS[i % COLOURS.length]}` }),
          `${line.name} `,
          el("b", {}, this.value(line, at)),
        ),
      ),
    );
  }

  // Returns the text of a line's value at the time `at`, or of the latest value if `at` is null.
  value(line, at) {
    let best = -1;
    line.times.forEach((time, i) => {
      if (
        best < 0 ||
        (at === null
          ? time > line.times[best]
          : Math.abs(time - at) < Math.abs(line.times[best] - at))
      )
        best = i;
    });
    return best < 0 || (at !== null && Math.abs(line.times[best] - at) > this.gap)
      ? "–"
      : this.show(line.values[best]);
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    if (x < LEFT || x > WIDTH - RIGHT) return this.draw();
    this.draw(this.from + ((this.to - this.from) * (x - LEFT)) / (WIDTH - LEFT - RIGHT));
  }
}
