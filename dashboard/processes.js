// The view of processes: what each of them runs and how much of its node it uses.
import { json, list } from "./api.js";
import { bytes, el, id, state, when } from "./dom.js";
import { profileLinks } from "./profiles.js";
import { Table } from "./table.js";

// The use of processes is requested from at most this many nodes.
const MOST_NODES = 32;
const CRASHES = new Set(["SYSTEM_ERROR", "USER_ERROR", "NODE_OUT_OF_MEMORY"]);

export const place = (node, pid) => `${node}:${pid}`;

// Returns a map from place() to what a process runs: an actor's class and name, or else the names
// of tasks. With `running`, only tasks that run at the moment count.
export async function roles(running) {
  const [actors, tasks] = await Promise.all([
    list("actors", { detail: false }),
    list("tasks", {
      detail: false,
      limit: 1000,
      filters: running ? [["state", "=", "RUNNING"]] : [["type", "=", "NORMAL_TASK"]],
    }),
  ]);
  const names = new Map(),
    found = new Map();
  for (const task of tasks.rows) {
    if (!task.worker_pid) continue;
    const at = place(task.node_id, task.worker_pid);
    if (!names.has(at)) names.set(at, new Set());
    names.get(at).add(task.name || task.func_or_class_name);
  }
  for (const [at, some] of names) found.set(at, [...some].sort().join(", "));
  for (const actor of actors.rows) {
    if (actor.pid)
      found.set(
        place(actor.node_id, actor.pid),
        actor.name ? `${actor.class_name} (${actor.name})` : actor.class_name,
      );
  }
  return found;
}

// Returns a map from place() to what the node reports about the process: cpuPercent, memoryInfo,
// jobId.
async function usage(nodes) {
  // A node may leave meanwhile, so failed requests are ignored.
  const answers = await Promise.allSettled(
    nodes.slice(0, MOST_NODES).map((node) => json(`nodes/${node}`)),
  );
  return new Map(
    answers.flatMap((answer, i) =>
      (answer.value?.data.detail.workers || []).map((worker) => [
        place(nodes[i], worker.pid),
        worker,
      ]),
    ),
  );
}

// The end of a process, without the words that repeat the row.
const how = (row) =>
  row.is_alive
    ? "ALIVE"
    : `DEAD: ${(row.exit_detail || "").replace(/^worker process \d+ on node \S+ (was ended: )?/, "")}`;

export function workers() {
  const table = new Table([
    { name: "PID", value: (row) => row.pid, number: true },
    {
      name: "",
      value: () => "",
      show: (row) => (row.is_alive ? profileLinks({ pid: row.pid, node_id: row.node_id }) : ""),
    },
    { name: "Type", value: (row) => row.worker_type },
    { name: "Runs", value: (row) => row.role, short: true },
    { name: "Job", value: (row) => row.job, short: true },
    {
      name: "CPU",
      value: (row) => row.use?.cpuPercent,
      show: (row) => (row.use ? `${Math.round(row.use.cpuPercent)} %` : ""),
      number: true,
    },
    {
      name: "Memory",
      value: (row) => row.use?.memoryInfo.rss,
      show: (row) => bytes(row.use?.memoryInfo.rss),
      number: true,
    },
    { name: "Node", value: (row) => row.node_id, show: (row) => id(row.node_id) },
    {
      name: "Started",
      value: (row) => row.start_time_ms,
      show: (row) => when(row.start_time_ms),
      wrap: true,
    },
    {
      name: "State or end",
      value: how,
      show: (row) =>
        row.is_alive
          ? state("ALIVE")
          : el(
              "span",
              { class: CRASHES.has(row.exit_type) ? "bad" : null, title: row.exit_detail },
              how(row),
            ),
      wrap: true,
    },
  ]);
  return {
    element: el("section", {}, el("h1", {}, "Processes"), table.element),
    async refresh() {
      const [{ rows, notes }, role, jobs] = await Promise.all([
        list("workers"),
        roles(true),
        json("api/jobs/"),
      ]);
      const use = await usage([
        ...new Set(rows.filter((row) => row.is_alive).map((row) => row.node_id)),
      ]);
      const drivers = new Map(
        jobs
          .filter((job) => job.driver_info)
          .map((job) => [place(job.driver_node_id, job.driver_info.pid), job]),
      );
      table.set(
        rows.map((row) => {
          const at = place(row.node_id, row.pid),
            now = row.is_alive ? use.get(at) : undefined,
            driver = row.worker_type === "DRIVER" ? drivers.get(at) : undefined;
          return {
            ...row,
            use: now,
            role: driver ? driver.entrypoint : role.get(at),
            job: driver?.submission_id || driver?.job_id || now?.jobId,
          };
        }),
        notes,
      );
    },
  };
}
