// The profiles of a training run: a form that records one, and what was recorded.
import { ask, json } from "./api.js";
import { TimeChart } from "./chart.js";
import { bytes, check, el, state, when } from "./dom.js";
import { Table } from "./table.js";

const NS_PER_MS = 1e6,
  US_PER_MS = 1e3;
// How many operators of a rank are shown.
const OPERATORS = 8;

const time = (us) =>
  us >= 1e6
    ? `${(us / 1e6).toFixed(2)} s`
    : us >= 1e3
      ? `${(us / 1e3).toFixed(1)} ms`
      : `${Math.round(us)} µs`;

// A column with a part of a step, and its share.
const part = (name, field) => ({
  name,
  value: (row) => row[field],
  show: (row) => {
    const share = row.total_us > 0 ? ` ${Math.round((100 * row[field]) / row.total_us)} %` : "";
    return row[field] === undefined ? "" : `${time(row[field])}${share}`;
  },
  number: true,
});

function stepsTable() {
  return new Table([
    { name: "Rank", value: (row) => row.rank, number: true },
    { name: "Step", value: (row) => row.step, number: true },
    {
      name: "Total",
      value: (row) => row.total_us,
      show: (row) => time(row.total_us),
      number: true,
    },
    part("Compute", "compute_us"),
    part("Communication", "communication_us"),
    part("Data loading", "data_us"),
    part("Idle", "idle_us"),
    part("of it in report()", "report_us"),
  ]);
}

function operatorsTable() {
  return new Table(
    [
      { name: "Rank", value: (row) => row.rank, number: true },
      { name: "Operator, without those that it calls", value: (row) => row.name, wrap: true },
      {
        name: "Time",
        value: (row) => row.total_us,
        show: (row) => time(row.total_us),
        number: true,
      },
      { name: "Calls", value: (row) => row.count, number: true },
    ],
    { sort: 2, descending: true },
  );
}

// Shows one profile: sentences, the steps of its ranks, operators, memory.
class Details {
  constructor() {
    this.title = el("h3");
    this.notes = el("div", { class: "notes" });
    this.steps = stepsTable();
    this.operators = operatorsTable();
    this.charts = new Map();
    this.memory = el("div", { class: "charts", id: "memory" });
    this.shown = "";
    this.element = el(
      "div",
      { id: "profile", hidden: true },
      this.title,
      this.notes,
      this.steps.element,
      el("details", {}, el("summary", {}, "The operators that cost most"), this.operators.element),
      this.memory,
    );
  }

  set(profile) {
    this.element.hidden = !profile?.summary;
    if (this.element.hidden) return;
    // Profiles do not change once they have a summary, and charts are slow to draw.
    if (this.shown === profile.id) return;
    this.shown = profile.id;
    const { summary } = profile;
    this.title.textContent = `${profile.id}: ${summary.what}`;
    this.notes.replaceChildren(...summary.notes.map((note) => el("p", {}, note)));
    this.steps.set(
      summary.ranks.flatMap((rank) => rank.steps.map((step) => ({ rank: rank.rank, ...step }))),
    );
    this.operators.set(
      summary.ranks.flatMap((rank) =>
        rank.operators.slice(0, OPERATORS).map((one) => ({ rank: rank.rank, ...one })),
      ),
    );
    this.memory.replaceChildren(
      ...Object.entries(profile.memory || {})
        .filter(([, found]) => found?.times_us?.length)
        .map(([rank, found]) => this.memoryOf(rank, found)),
    );
  }

  // The chart of one rank's memory, with a line for each use of it.
  memoryOf(rank, { times_us, categories }) {
    if (!this.charts.has(rank))
      this.charts.set(
        rank,
        new TimeChart(`Memory of rank ${rank}`, {
          show: bytes,
          binary: true,
          axis: (ms) => `${ms.toFixed(1)} ms`,
        }),
      );
    const chart = this.charts.get(rank);
    const times = times_us.map((us) => us / US_PER_MS);
    chart.set(
      Object.entries(categories).map(([name, values]) => ({
        name: name.replaceAll("_", " "),
        times,
        values,
      })),
      times[0],
      times.at(-1),
      Number.POSITIVE_INFINITY,
    );
    return chart.element;
  }
}

// The file in which all ranks are.
function traceLink(profile) {
  if (!profile.log_file || !profile.node_id) return profile.trace || "";
  const name = `${profile.id}.trace.json.gz`;
  const query = new URLSearchParams({
    node_id: profile.node_id,
    filename: profile.log_file,
    lines: -1,
    download_filename: name,
  });
  return el(
    "a",
    { class: "button", href: `api/v0/logs/file?${query}`, download: name, title: profile.trace },
    "Trace",
  );
}

function ranksOf(profile) {
  const recorded = profile.ranks.filter((rank) => rank.status === "RECORDED").length;
  return recorded === profile.ranks.length
    ? String(recorded)
    : `${recorded} of ${profile.ranks.length}`;
}

export class Profiles {
  constructor(runId) {
    this.path = `api/train/v2/runs/v1/${runId}`;
    this.chosen = "";
    this.profiles = [];
    this.details = new Details();
    this.viewer = el("p", { id: "tensorboard" });
    this.hint = el(
      "p",
      { class: "soft" },
      "Traces have all ranks. To look at one, open ",
      el(
        "a",
        { href: "https://ui.perfetto.dev", target: "_blank", rel: "noreferrer" },
        "ui.perfetto.dev",
      ),
      " and drop the file there (it stays on your machine).",
    );
    this.table = new Table(
      [
        {
          name: "Profile",
          value: (row) => row.id,
          show: (row) => el("button", { onclick: () => this.choose(row.id) }, row.id),
        },
        { name: "", value: () => "", show: traceLink },
        { name: "Status", value: (row) => row.status, show: (row) => state(row.status) },
        {
          name: "Recorded",
          value: (row) => row.time_ns,
          show: (row) => when(row.time_ns / NS_PER_MS),
        },
        { name: "Steps", value: (row) => row.steps, number: true },
        { name: "Ranks", value: ranksOf },
        { name: "Why", value: (row) => row.detail, wrap: true },
        { name: "Folder", value: (row) => row.path, wrap: true },
      ],
      { sort: 3, descending: true },
    );
    this.makeForm();
    this.list = el("div", { hidden: true }, this.table.element, this.hint);
    this.element = el(
      "section",
      { id: "profiles" },
      el("h2", {}, "Profiles"),
      this.form,
      this.said,
      this.viewer,
      this.list,
      this.details.element,
    );
  }

  makeForm() {
    const steps = { type: "number", name: "steps", min: 1, max: 1000, value: 3 };
    const ranks = { name: "ranks", size: 8, placeholder: "all", pattern: "[0-9]+(,[0-9]+)*" };
    this.button = el("button", { type: "submit" }, "Record a profile");
    this.said = el("p", { id: "recording", role: "status" });
    this.form = el(
      "form",
      {
        class: "tools",
        id: "record",
        onsubmit: (event) => {
          event.preventDefault();
          this.record();
        },
      },
      this.button,
      el("label", {}, " of ", el("input", { ...steps, "aria-label": "Steps" }), " steps"),
      el(
        "label",
        {},
        " of ranks ",
        el("input", { ...ranks, "aria-label": "Ranks", title: "Numbers, such as 0,2" }),
      ),
      check("profile_memory", "memory", "1"),
      check("with_stack", "Python stacks", "1"),
      check("record_shapes", "shapes", "1"),
    );
  }

  choose(id) {
    this.chosen = id;
    this.show();
  }

  // Shows the chosen profile, or the newest one that was recorded.
  show() {
    this.details.set(
      this.profiles.find((one) => one.id === this.chosen) ||
        this.profiles.findLast((one) => one.summary),
    );
  }

  say(text, kind) {
    this.said.textContent = text;
    this.said.className = kind;
  }

  async record() {
    const query = new URLSearchParams();
    for (const field of this.form.querySelectorAll("input")) {
      const value = field.type === "checkbox" ? Number(field.checked) : field.value.trim();
      if (value !== "") query.set(field.name, value);
    }
    this.button.disabled = true;
    this.say("Recording: this ends when the ranks have made their steps …", "soft");
    try {
      const answer = await ask(`${this.path}/profile?${query}`, {
        headers: { "X-Ray-Profile": "1" },
      });
      this.chosen = (await answer.json()).id;
      this.say("", "");
      await this.refresh();
    } catch (error) {
      this.say(error.message, "error");
    } finally {
      this.button.disabled = false;
    }
  }

  // lives: whether the run is under way, so that a profile can be recorded.
  set(lives) {
    this.form.hidden = !lives;
    return this.refresh();
  }

  async refresh() {
    const { profiles, tensorboard } = await json(`${this.path}/profiles`);
    this.profiles = profiles;
    this.table.set(profiles);
    this.list.hidden = !profiles.length;
    this.viewer.replaceChildren(
      tensorboard
        ? el("a", { href: tensorboard.url, target: "_blank", rel: "noreferrer" }, "TensorBoard")
        : "",
      tensorboard ? ` shows them until its command ends (${tensorboard.url}).` : "",
    );
    this.element.hidden = this.form.hidden && !profiles.length && !tensorboard;
    this.show();
  }
}
