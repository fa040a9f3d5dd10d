// The view of placement groups: which there are, where their bundles are, and why they wait.
import { list } from "./api.js";
import { el, id, state } from "./dom.js";
import { Table } from "./table.js";

// A group may have thousands of bundles: a cell shows the places of the first ones.
const MOST_PLACES = 8;

const amounts = (resources) =>
  Object.entries(resources || {})
    .map(([name, amount]) => `${name}: ${amount}`)
    .join(", ");

// Equal bundles as one text each: "{CPU: 1} × 3".
function sizes(bundles) {
  const counts = new Map();
  for (const bundle of bundles) {
    const text = amounts(bundle.unit_resources);
    counts.set(text, (counts.get(text) || 0) + 1);
  }
  const texts = [...counts].map(([text, n]) => `{${text}}${n > 1 ? ` × ${n}` : ""}`);
  const more = texts.length - MOST_PLACES;
  return texts.slice(0, MOST_PLACES).join(", ") + (more > 0 ? ` and ${more} more sizes` : "");
}

// The nodes that hold bundles, each with its number of bundles, and how many bundles have none.
function places(bundles) {
  const held = new Map();
  for (const { node_id } of bundles) held.set(node_id, (held.get(node_id) || 0) + 1);
  const homeless = held.get("") || 0;
  held.delete("");
  const shown = [...held].slice(0, MOST_PLACES);
  return el(
    "span",
    {},
    shown.map(([node, n]) => [id(node), ` × ${n} `]),
    held.size > shown.length ? `and ${held.size - shown.length} more nodes ` : "",
    homeless ? el("span", { class: "warn" }, `${homeless} without a node`) : "",
  );
}

export function groups() {
  const table = new Table(
    [
      {
        name: "Group",
        value: (row) => row.placement_group_id,
        show: (row) => id(row.placement_group_id),
      },
      { name: "Name", value: (row) => row.name },
      { name: "State", value: (row) => row.state, show: (row) => state(row.state) },
      { name: "Strategy", value: (row) => row.strategy },
      { name: "Bundles", value: (row) => row.bundles.length, number: true },
      { name: "Resources", value: (row) => sizes(row.bundles), wrap: true },
      {
        name: "Nodes",
        value: (row) => [...new Set(row.bundles.map((bundle) => bundle.node_id))].join(" "),
        show: (row) => places(row.bundles),
        wrap: true,
      },
      { name: "Job", value: (row) => row.creator_job_id },
      {
        name: "Detached",
        value: (row) => row.is_detached,
        show: (row) => (row.is_detached ? "yes" : ""),
      },
      { name: "Why", value: (row) => row.why, wrap: true },
    ],
    { sort: 2, descending: true },
  );
  return {
    element: el("section", {}, el("h1", {}, "Placement groups"), table.element),
    async refresh() {
      const { rows, notes } = await list("placement_groups", { limit: 1000 });
      table.set(rows, notes);
    },
  };
}
