// One function for each view: build(parameters) -> { element, refresh(), once? }. refresh() runs
// every two seconds while the view is open, or only once if `once` is set.
import { json, list } from "./api.js";
import { bytes, duration, el, id, state, when } from "./dom.js";
import { place, roles } from "./processes.js";
import { link, profileLinks } from "./profiles.js";
import { Table } from "./table.js";
import { textView } from "./text.js";

export { groups } from "./groups.js";
export { overview } from "./overview.js";
export { workers } from "./processes.js";
export { flame, stack } from "./profiles.js";
export { timeline } from "./trace.js";
export { train, trainrun } from "./train.js";

// Shows a resource of the state API as a table.
function listView(title, resource, columns, { sort = 0, descending = false, before = [] } = {}) {
  const table = new Table(columns, { sort, descending });
  return {
    element: el("section", {}, el("h1", {}, title), ...before, table.element),
    async refresh() {
      const { rows, notes } = await list(resource);
      table.set(rows, notes);
    },
  };
}

// Shows facts about nodes from the state API, and the current use that each node reports.
export function nodes() {
  const table = new Table([
    { name: "Node", value: (row) => row.node_id, show: (row) => id(row.node_id) },
    { name: "Address", value: (row) => row.node_ip },
    { name: "Name", value: (row) => row.node_name },
    { name: "State", value: (row) => row.state, show: (row) => state(row.state) },
    {
      name: "Head",
      value: (row) => row.is_head_node,
      show: (row) => (row.is_head_node ? "yes" : ""),
    },
    {
      name: "CPU",
      value: (row) => row.now.cpu,
      show: (row) => (row.now.cpu === undefined ? "" : `${Math.round(row.now.cpu)} %`),
      number: true,
    },
    {
      name: "Memory",
      value: (row) => row.now.mem?.[3],
      show: (row) => (row.now.mem ? `${bytes(row.now.mem[3])} of ${bytes(row.now.mem[0])}` : ""),
      number: true,
    },
    {
      name: "Objects",
      value: (row) => row.now.raylet?.objectStoreUsedMemory,
      show: (row) => (row.state === "ALIVE" ? bytes(row.now.raylet?.objectStoreUsedMemory) : ""),
      number: true,
    },
    { name: "In use", value: (row) => row.in_use },
    { name: "Started", value: (row) => row.start_time_ms, show: (row) => when(row.start_time_ms) },
    { name: "Why", value: (row) => row.state_message },
    {
      name: "",
      value: () => "",
      show: (row) => (row.state === "ALIVE" ? link("logs", { node_id: row.node_id }, "Logs") : ""),
    },
  ]);
  return {
    element: el("section", {}, el("h1", {}, "Nodes"), table.element),
    async refresh() {
      const [{ rows, notes }, { data }] = await Promise.all([
        list("nodes"),
        json("nodes?view=summary"),
      ]);
      const now = Object.fromEntries(data.summary.map((node) => [node.raylet.nodeId, node]));
      const inUse = (row) =>
        row.state !== "ALIVE"
          ? ""
          : (data.nodeLogicalResources[row.node_id] || "")
              .split("\n")
              .filter((line) => !line.endsWith("memory"))
              .join(", ");
      table.set(
        rows.map((row) => ({ ...row, now: now[row.node_id] || {}, in_use: inUse(row) })),
        notes,
      );
    },
  };
}

export const actors = () =>
  listView("Actors", "actors", [
    { name: "Actor", value: (row) => row.actor_id, show: (row) => id(row.actor_id) },
    { name: "Class", value: (row) => row.class_name },
    {
      name: "",
      value: () => "",
      show: (row) =>
        row.state === "ALIVE"
          ? el(
              "span",
              {},
              profileLinks(row),
              " ",
              link("logs", { node_id: row.node_id, actor_id: row.actor_id }, "Logs"),
            )
          : "",
    },
    { name: "Name", value: (row) => row.name },
    { name: "Namespace", value: (row) => row.ray_namespace },
    { name: "State", value: (row) => row.state, show: (row) => state(row.state) },
    { name: "PID", value: (row) => row.pid, number: true },
    { name: "Restarts", value: (row) => row.num_restarts, number: true },
    { name: "Job", value: (row) => row.job_id },
    {
      name: "Group",
      value: (row) => row.placement_group_id,
      show: (row) => (row.placement_group_id ? id(row.placement_group_id) : ""),
    },
    { name: "Why", value: (row) => (row.death_cause ? JSON.stringify(row.death_cause) : "") },
  ]);

export const objects = () =>
  listView(
    "Objects",
    "objects",
    [
      { name: "Object", value: (row) => row.object_id, show: (row) => id(row.object_id) },
      {
        name: "Size",
        value: (row) => row.object_size,
        show: (row) => bytes(row.object_size),
        number: true,
      },
      { name: "Held as", value: (row) => row.reference_type },
      { name: "PID", value: (row) => row.pid, number: true },
      { name: "Type", value: (row) => row.type },
      { name: "Task", value: (row) => row.task_status },
      { name: "Made at", value: (row) => row.call_site },
    ],
    { sort: 1, descending: true },
  );

export function tasks(parameters) {
  const table = new Table(
    [
      {
        name: "Task",
        value: (row) => row.task_id,
        show: (row) =>
          link(
            "task",
            { task_id: row.task_id, attempt_number: row.attempt_number || 0 },
            row.task_id.slice(0, 12),
            row.task_id,
          ),
      },
      { name: "Name", value: (row) => row.name },
      { name: "State", value: (row) => row.state, show: (row) => state(row.state) },
      { name: "Attempt", value: (row) => row.attempt_number, number: true },
      {
        name: "Started",
        value: (row) => row.start_time_ms,
        show: (row) => when(row.start_time_ms),
      },
      {
        name: "Lasted",
        value: (row) =>
          row.start_time_ms > 0 ? (row.end_time_ms || Date.now()) - row.start_time_ms : null,
        show: (row) => duration(row.start_time_ms, row.end_time_ms),
        number: true,
      },
      { name: "Node", value: (row) => row.node_id, show: (row) => id(row.node_id) },
      { name: "PID", value: (row) => row.worker_pid, number: true },
      { name: "Error", value: (row) => row.error_type },
    ],
    { sort: 4, descending: true },
  );
  const filters = parameters.name ? [["name", "=", parameters.name]] : [];
  return {
    element: el(
      "section",
      {},
      el("h1", {}, parameters.name ? `Tasks named ${parameters.name}` : "Tasks"),
      table.element,
    ),
    async refresh() {
      const { rows, notes } = await list("tasks", { filters, limit: 1000 });
      table.set(rows, notes);
    },
  };
}

// Shows a task, the tasks that called it and those that it called, and the path of its error.
export function task(parameters) {
  const body = el("div"),
    changed = changes();
  return {
    element: el("section", {}, el("h1", {}, "Task ", el("code", {}, parameters.task_id)), body),
    async refresh() {
      const found = (await list("tasks", { filters: [["task_id", "=", parameters.task_id]] })).rows;
      if (!found.length) return body.replaceChildren("No such task is known any more.");
      const above = await callersOf(found[0]),
        below = await list("tasks", {
          filters: [["parent_task_id", "=", parameters.task_id]],
          limit: CHILDREN,
        });
      if (!changed([found, above, below])) return;
      body.replaceChildren(
        !found[0].parent_task_id
          ? ""
          : el(
              "p",
              { class: "line" },
              "Called by: ",
              above.length ? above.map((one) => [taskLink(one), " › "]) : "a driver",
              above.length ? found[0].name : "",
            ),
        below.rows.length
          ? el(
              "p",
              { class: "line" },
              "It called: ",
              below.rows.map((one) => [taskLink(one), " ", state(one.state), "  "]),
              below.notes.join(" "),
            )
          : "",
        ...found.map((row) =>
          el(
            "div",
            {},
            el("h2", {}, row.name, " ", state(row.state), ` attempt ${row.attempt_number ?? 0}`),
            el(
              "p",
              {},
              row.state === "RUNNING"
                ? profileLinks({ pid: row.worker_pid, node_id: row.node_id })
                : "",
              " ",
              ["out", "err"].map((suffix) =>
                row.worker_pid
                  ? [
                      link(
                        "logs",
                        {
                          node_id: row.node_id,
                          task_id: row.task_id,
                          attempt_number: row.attempt_number || 0,
                          suffix,
                        },
                        `std${suffix}`,
                      ),
                      " ",
                    ]
                  : "",
              ),
            ),
            row.error_message ? errorOf(row.error_message) : "",
            el(
              "details",
              { open: !row.error_message },
              el("summary", {}, "Everything that is known"),
              el("pre", {}, JSON.stringify(row, null, 2)),
            ),
          ),
        ),
      );
    },
  };
}

// Shows the tasks through which an error came, the last one to have it first, and then the text as
// the program would have printed it.
function errorOf(text) {
  const plain = text.replace(/\x1b\[[0-9;]*m/g, "");
  const through = [...plain.matchAll(/ray::([^\s(]+)\(\) \(pid=(\d+), ip=([^,)]+)/g)];
  const cause = plain.trimEnd().split("\n").at(-1);
  return el(
    "div",
    {},
    through.length
      ? el(
          "div",
          {},
          el("p", { class: "soft" }, "The error came from:"),
          el(
            "ol",
            { class: "causes" },
            through.map(([, name, pid, ip]) =>
              el("li", {}, link("tasks", { name }, name), ` in process ${pid} on ${ip}`),
            ),
            el("li", { class: "error" }, cause),
          ),
        )
      : "",
    el("pre", { class: "error" }, plain),
  );
}

// Tells whether data differs from the last call. Views redraw only then, so that what the visitor
// has opened or selected stays.
function changes() {
  let last = null;
  return (data) => {
    const text = JSON.stringify(data),
      differs = text !== last;
    last = text;
    return differs;
  };
}

const CHILDREN = 100,
  CALLERS = 20;
const taskLink = (row) => link("task", { task_id: row.task_id }, row.name, row.task_id);

async function callersOf(row) {
  const chain = [];
  for (let parent = row.parent_task_id; parent && chain.length < CALLERS; ) {
    const above = (await list("tasks", { filters: [["task_id", "=", parent]] })).rows[0];
    if (!above) break;
    chain.unshift(above);
    parent = above.parent_task_id;
  }
  return chain;
}

export function jobs() {
  const table = new Table(
    [
      { name: "Job", value: (row) => row.submission_id || row.job_id, short: true },
      {
        name: "",
        value: () => "",
        show: (row) =>
          el(
            "span",
            {},
            row.status === "RUNNING" && row.driver_info
              ? profileLinks({ pid: row.driver_info.pid, node_id: row.driver_node_id })
              : "",
            " ",
            row.submission_id ? link("joblog", { id: row.submission_id }, "Log") : "",
          ),
      },
      { name: "Status", value: (row) => row.status, show: (row) => state(row.status) },
      { name: "Exit code", value: (row) => row.driver_exit_code, number: true },
      {
        name: "Message",
        value: (row) => row.message,
        show: (row) =>
          el(
            "span",
            { title: row.message },
            (row.message || "").split(/, last available logs|\n/)[0],
          ),
        wrap: true,
      },
      { name: "Entrypoint", value: (row) => row.entrypoint, short: true },
      {
        name: "Started",
        value: (row) => row.start_time,
        show: (row) => when(row.start_time),
        wrap: true,
      },
      {
        name: "Lasted",
        value: (row) => (row.end_time || Date.now()) - row.start_time,
        show: (row) => duration(row.start_time, row.end_time),
        number: true,
      },
      { name: "Type", value: (row) => row.type },
    ],
    { sort: 6, descending: true },
  );
  return {
    element: el("section", {}, el("h1", {}, "Jobs"), table.element),
    async refresh() {
      table.set(await json("api/jobs/"));
    },
  };
}

export const joblog = (parameters) =>
  textView(
    `Log of ${parameters.id}`,
    `api/v0/logs/file?${new URLSearchParams({ submission_id: parameters.id, lines: 5000 })}`,
    { source: () => `The last 5000 lines. All of them: rayctl job logs ${parameters.id}` },
  );

export function logs(parameters) {
  if (parameters.filename || parameters.actor_id || parameters.task_id) {
    const query = new URLSearchParams({ ...parameters, lines: 5000 });
    return textView(
      parameters.filename ||
        (parameters.task_id
          ? `std${parameters.suffix} of task ${parameters.task_id}`
          : `Log of actor ${parameters.actor_id}`),
      `api/v0/logs/file?${query}`,
    );
  }
  const body = el("div"),
    changed = changes();
  return {
    element: el("section", {}, el("h1", {}, "Logs"), body),
    async refresh() {
      const nodes = parameters.node_id
        ? [{ node_id: parameters.node_id }]
        : (await list("nodes")).rows.filter((node) => node.state === "ALIVE");
      const [ran, ...answers] = await Promise.all([
        roles(false),
        ...nodes.map((node) => json(`api/v0/logs?node_id=${node.node_id}`)),
      ]);
      if (!changed([[...ran], answers])) return;
      body.replaceChildren(
        ...nodes.map((node, i) =>
          el(
            "div",
            {},
            el("h2", {}, "Node ", id(node.node_id), " ", node.node_ip || ""),
            filesOf(node.node_id, answers[i].data.result, ran),
          ),
        ),
      );
    },
  };
}

const WORKER_FILE = /-(\d+)\.(out|err)$/;
const pidOf = (name) => Number(name.match(WORKER_FILE)?.[1] || 0);
const outFirst = (a, b) => a.replace(/\.out$/, ".a").localeCompare(b.replace(/\.out$/, ".a"));

// Shows the log files of a node: one line for each worker with what it ran, its output before its
// errors, then the other kinds of files with one line each.
function filesOf(node, { worker_out: out = [], worker_err: err = [], ...others }, ran) {
  const open = (name, text) =>
    el(
      "a",
      { href: `#logs?${new URLSearchParams({ node_id: node, filename: name })}`, title: name },
      text,
    );
  const workers = new Map();
  for (const name of [...out, ...err].sort((a, b) => pidOf(a) - pidOf(b) || outFirst(a, b))) {
    const [, pid = "", suffix = ""] = name.match(WORKER_FILE) || [],
      key = pid || name;
    if (!workers.has(key)) workers.set(key, []);
    workers.get(key).push(" ", open(name, pid ? `${pid}.${suffix}` : name));
  }
  const group = (title, lines) =>
    lines.length
      ? el(
          "div",
          {},
          el("span", { class: "soft" }, title),
          el(
            "ul",
            { class: "files" },
            lines.map((line) => el("li", {}, line)),
          ),
        )
      : "";
  return [
    group(
      "workers",
      [...workers].map(([pid, links]) => [
        links,
        " ",
        el("span", { class: "soft" }, ran.get(place(node, pid)) || ""),
      ]),
    ),
    Object.entries(others).map(([kind, files]) =>
      group(
        kind,
        files.sort(outFirst).map((name) => open(name, name)),
      ),
    ),
  ];
}
