// The views of training runs: all of them, and one with its ranks and what it has reported.
import { json } from "./api.js";
import { TimeChart } from "./chart.js";
import { duration, el, id, state, when } from "./dom.js";
import { link, profileLinks } from "./profiles.js";
import { Table } from "./table.js";
import { Profiles } from "./train_profiles.js";
import { missingText, Places, Stragglers } from "./train_ranks.js";

const NS_PER_MS = 1e6;
const ms = (ns) => (ns ? ns / NS_PER_MS : 0);
const ENDED = new Set(["FINISHED", "ERRORED", "ABORTED"]);

async function runsNow() {
  return (await json("api/train/v2/runs/v1")).train_runs;
}

// The newest attempt that has ranks, or else the newest one.
const newest = (run) =>
  run.attempts.findLast((attempt) => attempt.workers.length) || run.attempts.at(-1);
const ranksOf = (run) => newest(run)?.workers.length || 0;
const lasted = (one) =>
  ENDED.has(one.status) && !one.end_time_ns
    ? ""
    : duration(ms(one.start_time_ns), ms(one.end_time_ns));

export function train() {
  const table = new Table(
    [
      {
        name: "Run",
        value: (row) => row.name,
        show: (row) => link("trainrun", { id: row.id }, row.name, row.id),
      },
      { name: "Status", value: (row) => row.status, show: (row) => state(row.status) },
      { name: "Attempts", value: (row) => row.attempts.length, number: true },
      { name: "Ranks", value: ranksOf, number: true },
      {
        name: "Started",
        value: (row) => row.start_time_ns,
        show: (row) => when(ms(row.start_time_ns)),
      },
      {
        name: "Lasted",
        value: (row) => (ms(row.end_time_ns) || Date.now()) - ms(row.start_time_ns),
        show: lasted,
        number: true,
      },
      { name: "Job", value: (row) => row.job_id },
      { name: "Why", value: (row) => row.status_detail, wrap: true },
    ],
    { sort: 4, descending: true },
  );
  return {
    element: el("section", {}, el("h1", {}, "Training runs"), table.element),
    async refresh() {
      table.set(await runsNow());
    },
  };
}

const logName = (path) => `train/${path.split("/").at(-1)}`;

function linksOf(worker) {
  if (worker.status !== "ALIVE") return worker.log_file_path ? logOf(worker) : "";
  return el("span", {}, profileLinks(worker), " ", logOf(worker));
}

const logOf = (worker) =>
  link("logs", { node_id: worker.node_id, filename: logName(worker.log_file_path) }, "Logs");

const seconds = (value) => (value === undefined ? "" : `${value.toFixed(2)} s`);

function ranksTable() {
  return new Table([
    { name: "Rank", value: (row) => row.world_rank, number: true },
    { name: "", value: () => "", show: linksOf },
    { name: "Status", value: (row) => row.status, show: (row) => state(row.status) },
    { name: "Local", value: (row) => row.local_rank, number: true },
    {
      name: "Node",
      value: (row) => row.node_rank,
      show: (row) => el("span", {}, `${row.node_rank}: ${row.node_ip} `, id(row.node_id)),
    },
    { name: "PID", value: (row) => row.pid, number: true },
    { name: "Where it is now", value: (row) => row.where, wrap: true },
    { name: "GPUs", value: (row) => row.gpu_ids.join(", ") },
    {
      name: "CPU",
      value: (row) => row.processStats?.cpuPercent,
      show: (row) => (row.processStats ? `${Math.round(row.processStats.cpuPercent)} %` : ""),
      number: true,
    },
    {
      name: "A step",
      value: (row) => row.times?.step_s,
      show: (row) => (row.times?.step_s ? `${row.times.step_s.toFixed(3)} s` : ""),
      number: true,
    },
    ...[
      ["report()", "report_s"],
      ["of it for others", "sync_s"],
      ["uploads", "transfer_s"],
      ["collectives", "collective_s"],
      ["data", "data_s"],
    ].map(([name, field]) => ({
      name,
      value: (row) => row.times?.[field],
      show: (row) => seconds(row.times?.[field]),
      number: true,
    })),
  ]);
}

const short = (value) => String(Number(value.toPrecision(4)));

// Seconds from one report to the next, averaged from one kept moment to the next.
function stepTimes({ time_ms: times, reports }) {
  const line = { name: "seconds", times: [], values: [] };
  for (let i = 1; i < times.length; ++i) {
    const made = reports[i] - reports[i - 1];
    if (made <= 0) continue;
    line.times.push(times[i]);
    line.values.push((times[i] - times[i - 1]) / 1000 / made);
  }
  return line;
}

// Charts of what a run has reported, one for each metric.
class Reported {
  constructor() {
    this.charts = new Map();
    this.element = el("div", { class: "charts", id: "reported" });
  }

  set(metrics) {
    const { time_ms: times } = metrics;
    if (!times.length) return;
    const from = times[0],
      to = Math.max(times.at(-1), from + 1);
    const draw = (name, lines) => {
      if (!this.charts.has(name)) this.charts.set(name, new TimeChart(name, { show: short }));
      this.charts.get(name).set(lines, from, to, Number.POSITIVE_INFINITY);
    };
    const steps = stepTimes(metrics);
    if (steps.times.length) draw("Seconds per report", [steps]);
    for (const [name, values] of Object.entries(metrics.metrics)) {
      const there = values.map((value) => value !== null);
      draw(name, [
        {
          name: "rank 0",
          times: times.filter((_, i) => there[i]),
          values: values.filter((_, i) => there[i]),
        },
      ]);
    }
    this.element.replaceChildren(...[...this.charts.values()].map((chart) => chart.element));
  }
}

function attemptLine(attempt) {
  return el(
    "li",
    {},
    `Attempt ${attempt.attempt_id.split("_").at(-1)}: `,
    state(attempt.status),
    ` started ${when(ms(attempt.start_time_ns))}, lasted ${lasted(attempt) || "?"}`,
    attempt.status_detail ? `: ${attempt.status_detail.split("\n")[0]}` : "",
    attempt.waiting ? el("div", { class: "warn" }, missingText(attempt)) : "",
  );
}

export function trainrun(parameters) {
  const title = el("h1", {}, "Training run"),
    facts = el("p"),
    attempts = el("ul", { id: "attempts" }),
    note = el("h2", {}, "Ranks"),
    ranks = ranksTable(),
    places = new Places(),
    stragglers = new Stragglers(parameters.id),
    profiles = new Profiles(parameters.id),
    reported = new Reported(),
    settings = el("pre");
  return {
    element: el(
      "section",
      {},
      title,
      facts,
      attempts,
      note,
      ranks.element,
      stragglers.element,
      reported.element,
      profiles.element,
      el("details", {}, el("summary", {}, "Settings"), settings),
    ),
    async refresh() {
      const run = (await runsNow()).find((one) => one.id === parameters.id);
      if (!run) return facts.replaceChildren("No such run is known any more.");
      const metrics = await json(`api/train/v2/runs/v1/${run.id}/metrics`);
      title.replaceChildren(`Training run ${run.name} `, state(run.status));
      facts.replaceChildren(
        `Started ${when(ms(run.start_time_ns))}, lasted ${lasted(run) || "?"}, job ${run.job_id}. `,
        run.status_detail ? el("span", { class: "warn" }, run.status_detail) : "",
        " ",
        run.controller_log_file_path && run.controller_node_id
          ? link(
              "logs",
              {
                node_id: run.controller_node_id,
                filename: logName(run.controller_log_file_path),
              },
              "Controller's log",
            )
          : "",
      );
      attempts.replaceChildren(...run.attempts.map(attemptLine));
      const last = newest(run),
        where = await places.of(run),
        times = new Map(metrics.ranks.map((rank) => [rank.world_rank, rank]));
      note.textContent = last ? `Ranks of attempt ${last.attempt_id.split("_").at(-1)}` : "Ranks";
      ranks.set(
        (last?.workers || []).map((worker) => ({
          ...worker,
          times: times.get(worker.world_rank),
          where: worker.status === "ALIVE" ? where.get(worker.world_rank) || "" : "",
        })),
      );
      stragglers.set((last?.workers || []).some((worker) => worker.status === "ALIVE"));
      reported.set(metrics);
      await profiles.set(!ENDED.has(run.status));
      settings.textContent = JSON.stringify(run.run_settings, null, 2);
    },
  };
}
