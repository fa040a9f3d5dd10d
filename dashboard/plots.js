// Plots of the head's own history of metrics: the cluster, and each node if there are few enough
// to tell apart.
import { json } from "./api.js";
import { TimeChart } from "./chart.js";
import { bytes, el } from "./dom.js";

const MOST_NODES = 8,
  REFRESH_MS = 5000,
  POINTS = 240;
const RANGES = { "15 minutes": 15, "1 hour": 60, "3 hours": 180, "6 hours": 360 };

// The charts of the cluster: title, lines (label and column of the history), options.
const CLUSTER = [
  ["CPUs in use", { used: "cpus_used", "in all": "cpus" }, {}],
  ["Memory", { used: "memory_used", "in all": "memory_total" }, { show: bytes, binary: true }],
  [
    "Object store",
    { used: "store_used", "in all": "store_capacity" },
    { show: bytes, binary: true },
  ],
  ["Tasks now, without calls of actors", { running: "running", waiting: "waiting" }, {}],
  ["Tasks ended per second", { finished: "finished_per_s", failed: "failed_per_s" }, {}],
  [
    "Network",
    { received: "received_per_s", sent: "sent_per_s" },
    { show: (value) => `${bytes(value)}/s`, binary: true },
  ],
  ["Actors", { alive: "actors", pending: "actors_pending" }, {}],
  ["Nodes and jobs", { nodes: "nodes", jobs: "jobs" }, {}],
];
// The charts of nodes, with one line for each node: title, column of the history, options.
const NODES = [
  ["CPU of nodes", "cpu_percent", { show: (value) => `${Math.round(value)} %`, least: 100 }],
  ["Memory of nodes", "memory_used", { show: bytes, binary: true }],
  ["Object stores of nodes", "store_used", { show: bytes, binary: true }],
  ["Sent by nodes", "sent_per_s", { show: (value) => `${bytes(value)}/s`, binary: true }],
];

export class Plots {
  constructor() {
    this.asked = 0;
    this.range = el(
      "select",
      { "aria-label": "Time shown", onchange: () => this.refresh(true) },
      Object.entries(RANGES).map(([text, minutes]) =>
        el("option", { value: minutes, selected: minutes === 15 }, text),
      ),
    );
    this.cluster = CLUSTER.map(([title, , options]) => new TimeChart(title, options));
    this.nodes = NODES.map(([title, , options]) => new TimeChart(title, options));
    this.ofNodes = el(
      "div",
      { class: "charts" },
      this.nodes.map((chart) => chart.element),
    );
    this.note = el("p", { class: "soft" });
    this.element = el(
      "div",
      {},
      el("h2", {}, "The last ", this.range),
      this.note,
      el(
        "div",
        { class: "charts", id: "plots" },
        this.cluster.map((chart) => chart.element),
      ),
      this.ofNodes,
    );
  }

  async refresh(now = false) {
    if (!now && Date.now() - this.asked < REFRESH_MS) return;
    this.asked = Date.now();
    const minutes = Number(this.range.value);
    const found = (await json(`api/v0/metrics/history?minutes=${minutes}&points=${POINTS}`)).data;
    const to = Date.now(),
      from = to - minutes * 60000,
      gap = Math.max(3 * found.interval_ms, (3 * minutes * 60000) / POINTS);
    this.note.textContent = !found.interval_ms
      ? "No history is kept: the setting metrics_report_interval_ms is 0."
      : found.cluster.time_ms.length
        ? ""
        : `The first sample comes within ${Math.ceil(found.interval_ms / 1000)} s.`;
    const { time_ms: times, series } = found.cluster;
    CLUSTER.forEach(([, names], i) =>
      this.cluster[i].set(
        Object.entries(names).map(([name, column]) => ({ name, times, values: series[column] })),
        from,
        to,
        gap,
      ),
    );
    const known = Math.max(0, ...(series.nodes || []));
    this.ofNodes.hidden = known < 2 || known > MOST_NODES;
    if (this.ofNodes.hidden) return;
    const nodes = (
      await json(`api/v0/metrics/history?minutes=${minutes}&points=${POINTS}&node_id=all`)
    ).data.nodes.slice(0, MOST_NODES);
    const named = (node) =>
      `${node.node_ip} ${node.node_id.slice(0, 6)}${node.alive ? "" : " (left)"}`;
    NODES.forEach(([, column], i) =>
      this.nodes[i].set(
        nodes.map((node) => ({
          name: named(node),
          times: node.time_ms,
          values: node.series[column],
        })),
        from,
        to,
        gap,
      ),
    );
  }
}
