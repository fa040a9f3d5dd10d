// Lines over time and the small curves of tiles, drawn by Chart.js, which index.html loads.
import { el } from "./dom.js";

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
const { Chart } = window;

const clock = (time) =>
  new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

// Returns the colour that the page's style sheet has under this name, light or dark.
const styled = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

// The elements under the pointer are the nearest one of each line, since the lines of nodes have
// samples of different times.
Chart.Interaction.modes.eachLine = (chart, { x }) =>
  chart.getSortedVisibleDatasetMetas().flatMap(({ data, index: datasetIndex }) => {
    let nearest = 0;
    data.forEach((element, i) => {
      if (Math.abs(element.x - x) < Math.abs(data[nearest].x - x)) nearest = i;
    });
    return data.length ? [{ element: data[nearest], datasetIndex, index: nearest }] : [];
  });

// Chart.js keeps every chart until it is destroyed, also after its view has been left.
export function destroyCharts() {
  for (const chart of Object.values(Chart.instances)) chart.destroy();
}

// Options that both kinds have in common. The data are given as Chart.js keeps them, in order.
const COMMON = {
  type: "line",
  data: { datasets: [] },
  options: {
    animation: false,
    parsing: false,
    normalized: true,
    maintainAspectRatio: false,
    elements: { point: { radius: 0, hitRadius: 0 }, line: { borderWidth: 1.6 } },
  },
};

// Marks at both ends of an axis of times and in its middle.
const timeMarks = (scale) => {
  scale.ticks = [0, 0.5, 1].map((share) => ({
    value: scale.min + (scale.max - scale.min) * share,
  }));
};

export class TimeChart {
  // `show` turns a value into text, and `axis` a time. The top of the axis is never below `least`.
  // The marks of a binary axis, which shows bytes, are multiples of a power of two.
  constructor(
    title,
    {
      show = (value) => String(Math.round(value * 100) / 100),
      binary = false,
      least = 0,
      axis = clock,
    } = {},
  ) {
    this.show = show;
    this.binary = binary;
    const canvas = el("canvas", { role: "img", "aria-label": title });
    this.legend = el("div", { class: "legend" });
    this.element = el(
      "figure",
      { class: "chart" },
      el("figcaption", {}, title),
      el("div", { class: "plot" }, canvas),
      this.legend,
    );
    const grid = { color: () => styled("--line") },
      color = () => styled("--soft");
    this.chart = new Chart(canvas, {
      ...COMMON,
      data: { datasets: [] },
      options: {
        ...COMMON.options,
        interaction: { mode: "eachLine", intersect: false },
        scales: {
          x: {
            type: "linear",
            grid: { display: false },
            afterBuildTicks: timeMarks,
            ticks: { callback: axis, color, align: "inner", maxRotation: 0 },
          },
          y: {
            grid,
            beginAtZero: true,
            suggestedMax: least || undefined,
            ticks: { callback: (value) => show(value), color, maxTicksLimit: 5 },
          },
        },
        plugins: {
          legend: { display: false },
          tooltip: {
            callbacks: {
              title: ([first]) => (first ? axis(first.parsed.x) : ""),
              label: ({ dataset, parsed }) => `${dataset.label}: ${show(parsed.y)}`,
            },
          },
        },
      },
    });
  }

  // lines: [{ name, times, values }], with ascending times in ms since the epoch. Samples that are
  // more than `gap` ms apart are not joined.
  set(lines, from, to, gap) {
    const { chart } = this;
    chart.data.datasets = lines.map(({ name, times, values }, i) => ({
      label: name,
      borderColor: COLOURS[i % COLOURS.length],
      backgroundColor: COLOURS[i % COLOURS.length],
      spanGaps: gap,
      data: times.map((time, at) => ({ x: time, y: values[at] })),
    }));
    Object.assign(chart.options.scales.x, { min: from, max: to });
    if (this.binary) {
      const most = Math.max(4, ...lines.flatMap(({ values }) => values));
      chart.options.scales.y.ticks.stepSize = 2 ** Math.ceil(Math.log2(most / 4));
    }
    chart.update();
    this.legend.replaceChildren(
      ...lines.map(({ name, values }, i) =>
        el(
          "span",
          {},
          el("i", { style: `background:${COLOURS[i % COLOURS.length]}` }),
          `${name} `,
          el("b", {}, values.length ? this.show(values.at(-1)) : "–"),
        ),
      ),
    );
  }
}

// The curve of the last values without axes, for the tiles of the overview.
export class Curve {
  constructor(points = 300) {
    this.points = points;
    this.values = [];
    const canvas = el("canvas", { "aria-hidden": "true" });
    this.element = el("div", { class: "curve" }, canvas);
    const accent = styled("--accent").trim();
    this.chart = new Chart(canvas, {
      ...COMMON,
      data: {
        datasets: [{ data: [], borderColor: accent, backgroundColor: `${accent}1f`, fill: true }],
      },
      options: {
        ...COMMON.options,
        events: [],
        scales: {
          x: { type: "linear", display: false, min: 1 - points, max: 0 },
          y: { display: false, min: 0 },
        },
        plugins: { legend: { display: false }, tooltip: { enabled: false } },
      },
    });
  }

  // Adds a value at the right end. The top of the curve is not below `ceiling`.
  add(value, ceiling = null) {
    this.values.push(value);
    if (this.values.length > this.points) this.values.shift();
    const { chart, values } = this;
    chart.data.datasets[0].data = values.map((y, i) => ({ x: i + 1 - values.length, y }));
    chart.options.scales.y.max = Math.max(ceiling || 0, ...values, 1);
    chart.update();
  }
}
