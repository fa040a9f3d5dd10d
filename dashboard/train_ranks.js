// Where the ranks of a training run are, and which one the others wait for.
import { json } from "./api.js";
import { el, id, when } from "./dom.js";
import { Table } from "./table.js";

const NS_PER_MS = 1e6;
const PATIENCE_MS = 500;

// Where each rank of a run is now, by its number; empty if nothing can be said. Ranks are asked one
// question at a time, so one that hangs does not collect questions.
export class Places {
  constructor() {
    this.asking = false;
    this.last = new Map();
  }

  async of(run) {
    const lives = run.attempts.some((attempt) =>
      attempt.workers.some((worker) => worker.status === "ALIVE"),
    );
    if (!lives) this.last = new Map();
    else if (!this.asking)
      // The rest of the view does not wait for a rank that hangs.
      await Promise.race([this.#ask(run), new Promise((done) => setTimeout(done, PATIENCE_MS))]);
    return this.last;
  }

  async #ask(run) {
    this.asking = true;
    try {
      const { ranks } = await json(`api/train/v2/runs/v1/${run.id}/ranks`);
      // A rank that is being sampled cannot be looked at, and keeps the place that it had.
      for (const rank of ranks) this.last.set(rank.world_rank, rank.where);
    } catch {
      // The run has just gone: the rest of the view does not need it.
      this.last = new Map();
    } finally {
      this.asking = false;
    }
  }
}

// The ranks of an attempt that others have waited for as long as for a warning, as a sentence.
export function missingText({ waiting, workers }) {
  if (!waiting) return "";
  const name = (rank) => {
    const worker = workers.find((one) => one.world_rank === rank);
    return worker
      ? `rank ${rank} (${worker.node_ip} ${worker.node_id.slice(0, 12)}, process ${worker.pid})`
      : `rank ${rank}`;
  };
  const calls = Object.entries(waiting.calls).map(([rank, call]) => `rank ${rank} in ${call}()`);
  const late = waiting.missing_ranks.map(name);
  return `${late.join(", ")} ${late.length === 1 ? "has" : "have"} not come since ${when(waiting.since_time_ns / NS_PER_MS)}, for which wait: ${calls.join(", ")}`;
}

const percent = (name, ...kinds) => {
  const share = (row) => kinds.reduce((sum, kind) => sum + row.shares[kind], 0);
  return { name, value: share, show: (row) => `${Math.round(100 * share(row))} %`, number: true };
};

function sharesTable() {
  return new Table([
    { name: "Rank", value: (row) => row.world_rank, number: true },
    {
      name: "Node",
      value: (row) => row.node_ip,
      show: (row) => el("span", {}, `${row.node_ip} `, id(row.node_id)),
    },
    {
      name: "A step",
      value: (row) => row.step_s,
      show: (row) => (row.step_s ? `${row.step_s.toFixed(3)} s` : ""),
      number: true,
    },
    percent("in collectives", "collective"),
    percent("for ranks", "for_ranks"),
    percent("report()", "report"),
    percent("data", "data"),
    percent("asleep", "own_asleep"),
    percent("own work", "own"),
    { name: "Where most of all", value: (row) => row.where, wrap: true },
  ]);
}

// A section with a button that samples the ranks of a run for some seconds.
export class Stragglers {
  constructor(runId) {
    this.runId = runId;
    this.seconds = el("input", {
      type: "number",
      name: "seconds",
      min: 1,
      max: 600,
      value: 2,
      "aria-label": "Seconds",
    });
    this.button = el("button", { id: "look", onclick: () => this.look() }, "Compare the ranks");
    this.sentence = el("p", { id: "straggler", role: "status" });
    this.notes = el("div", { class: "soft" });
    this.table = sharesTable();
    this.table.element.style.display = "none";
    this.tools = el(
      "span",
      { class: "tools" },
      this.button,
      el("label", {}, " for ", this.seconds, " seconds"),
    );
    this.element = el(
      "section",
      { id: "stragglers" },
      this.tools,
      this.sentence,
      this.table.element,
      this.notes,
    );
  }

  // Whether ranks can be compared.
  set(lives) {
    this.tools.style.display = lives ? "" : "none";
  }

  say(text, kind) {
    this.sentence.textContent = text;
    this.sentence.className = kind;
  }

  async look() {
    const seconds = Number(this.seconds.value) || 2;
    this.button.disabled = true;
    this.say(`Looking at the ranks for ${seconds} s …`, "soft");
    try {
      const look = await json(`api/train/v2/runs/v1/${this.runId}/ranks?seconds=${seconds}`);
      const late = look.verdict === "STRAGGLER" || look.verdict === "ALL_WAIT";
      this.say(look.sentence, late ? "warn" : "");
      this.table.element.style.display = "";
      this.table.set(look.ranks);
      this.notes.replaceChildren(
        ...[...look.missing, ...look.notes].map((note) => el("div", {}, note)),
      );
    } catch (error) {
      this.say(error.message, "error");
    } finally {
      this.button.disabled = false;
    }
  }
}
