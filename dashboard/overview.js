// The first view: figures of the whole cluster, its resources, and its tasks by name.
import { json, list } from "./api.js";
import { Curve } from "./chart.js";
import { bytes, el } from "./dom.js";
import { Plots } from "./plots.js";
import { link } from "./profiles.js";

function tile(label) {
  const value = el("div", { class: "value" }, "–"),
    curve = new Curve();
  return {
    element: el(
      "div",
      { class: "tile" },
      el("div", { class: "label" }, label),
      value,
      curve.element,
    ),
    set(number, text, ceiling) {
      value.textContent = text ?? number;
      curve.add(number, ceiling);
    },
  };
}

export function overview() {
  const tiles = {
    nodes: tile("Nodes alive"),
    cpu: tile("CPUs in use"),
    running: tile("Tasks running"),
    waiting: tile("Tasks waiting"),
    actors: tile("Actors alive"),
    groups: tile("Groups placed"),
    store: tile("Object memory"),
  };
  const resources = el("div"),
    tasksByName = el("div"),
    plots = new Plots();
  return {
    element: el(
      "section",
      {},
      el("h1", {}, "Overview"),
      el(
        "div",
        { class: "tiles" },
        Object.values(tiles).map((one) => one.element),
      ),
      plots.element,
      el("h2", {}, "Resources"),
      resources,
      el("h2", {}, "Tasks by name"),
      tasksByName,
    ),
    async refresh() {
      const [nodes, status, tasks, actors, objects, groups] = await Promise.all([
        list("nodes"),
        json("api/cluster_status"),
        json("api/v0/tasks/summarize"),
        json("api/v0/actors/summarize"),
        json("api/v0/objects/summarize"),
        json("api/v0/placement_groups/summarize"),
      ]);
      const alive = nodes.rows.filter((node) => node.state === "ALIVE");
      tiles.nodes.set(alive.length, `${alive.length} of ${nodes.rows.length}`);
      const names = [...new Set(alive.flatMap((node) => Object.keys(node.resources_total || {})))]
        .filter((name) => !name.startsWith("node:"))
        .sort();
      // The answer has [used, total] and [used, reserved] under names in camel case. What is
      // reserved counts as used there, and here as far as something runs with it.
      const report = status.data.clusterStatus.loadMetricsReport;
      const reservedOf = (name) => report.reserved[camelCase(name)] || [0, 0];
      const of = (name) => {
        const [used, total] = report.usage[camelCase(name)] || [0, 0],
          [inside, reserved] = reservedOf(name);
        return [used - reserved + inside, total];
      };
      const [used, total] = of("CPU");
      tiles.cpu.set(used, `${Number(used.toFixed(2))} of ${total}`, total);
      const functions = Object.values(tasks.data.result.result.node_id_to_summary.cluster.summary);
      const count = (wanted) =>
        functions.reduce(
          (sum, one) =>
            sum +
            Object.entries(one.state_counts).reduce(
              (n, [name, k]) => n + (wanted(name) ? k : 0),
              0,
            ),
          0,
        );
      const running = count((name) => name.startsWith("RUNNING"));
      tiles.running.set(running);
      tiles.waiting.set(
        count((name) => name.startsWith("PENDING") || name.startsWith("SUBMITTED")),
      );
      const classes = Object.values(actors.data.result.result.node_id_to_summary.cluster.summary);
      tiles.actors.set(classes.reduce((sum, one) => sum + (one.state_counts.ALIVE || 0), 0));
      const strategies = Object.values(
          groups.data.result.result.node_id_to_summary.cluster.summary,
        ),
        groupsIn = (...wanted) =>
          strategies.reduce(
            (sum, one) => sum + wanted.reduce((n, name) => n + (one.state_counts[name] || 0), 0),
            0,
          ),
        waiting = groupsIn("PENDING", "PREPARED", "RESCHEDULING");
      tiles.groups.set(
        groupsIn("CREATED"),
        waiting ? `${groupsIn("CREATED")}, ${waiting} wait` : undefined,
      );
      const store = objects.data.result.result.node_id_to_summary.cluster;
      tiles.store.set(
        store.total_size_mb || 0,
        `${(store.total_size_mb || 0).toFixed(1)} MB in ${store.total_objects || 0}`,
      );
      resources.replaceChildren(...names.map((name) => bar(name, of(name), reservedOf(name))));
      tasksByName.replaceChildren(summaryTable(functions));
      await plots.refresh();
    },
  };
}

const camelCase = (name) => name.replace(/_+([^_]|$)/g, (_, letter) => letter.toUpperCase());

function bar(name, [used, total], [inside, reserved]) {
  const amount = (n) => (name.includes("memory") ? bytes(n) : Number(n.toFixed(3)));
  return el(
    "div",
    {},
    `${name}: ${amount(used)} of ${amount(total)}`,
    reserved ? ` (${amount(inside)} used of ${amount(reserved)} reserved in placement groups)` : "",
    el("div", { class: "bar" }, el("i", { style: `width:${total ? (100 * used) / total : 0}%` })),
  );
}

function summaryTable(functions) {
  const states = [...new Set(functions.flatMap((one) => Object.keys(one.state_counts)))].sort();
  const rows = functions.sort((a, b) => a.func_or_class_name.localeCompare(b.func_or_class_name));
  return el(
    "div",
    { class: "scroll" },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["Name", "Type", ...states].map((name, i) =>
            el("th", { class: i > 1 ? "number" : null }, name),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((one) =>
          el(
            "tr",
            {},
            el("td", {}, link("tasks", { name: one.func_or_class_name }, one.func_or_class_name)),
            el("td", {}, one.type || ""),
            states.map((name) => el("td", { class: "number" }, one.state_counts[name] || "")),
          ),
        ),
      ),
    ),
  );
}
