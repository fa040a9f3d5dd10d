// Makes elements without a template language: text is always text, never markup.

// Makes an element. Attributes that are null, undefined or false are left out, `on...` adds a
// listener, and children may be nested arrays, nodes, or values that become text.
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined)
      .map((child) => (child instanceof Node ? child : String(child))),
  );
  return node;
}

export function bytes(n) {
  if (n === null || n === undefined || n < 0) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) {
    n /= 1024;
    ++at;
  }
  return `${at && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[at]}`;
}

export function when(ms) {
  return ms > 0 ? new Date(ms).toLocaleString() : "";
}

// The time from `from` to `to`, or until the present if `to` is not set; both in ms since the
// epoch.
export function duration(from, to) {
  if (!(from > 0)) return "";
  const s = ((to > 0 ? to : Date.now()) - from) / 1000;
  if (s < 60) return `${s.toFixed(s < 10 ? 2 : 0)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s / 60) % 60)} min`;
}

const GOOD = new Set(["ALIVE", "RUNNING", "SUCCEEDED", "FINISHED", "CREATED", "RECORDED"]),
  OVER = new Set(["REMOVED"]),
  BAD = new Set(["DEAD", "FAILED", "STOPPED", "ERRORED", "ABORTED"]);
export function state(text) {
  return el(
    "span",
    {
      class: GOOD.has(text) ? "good" : BAD.has(text) ? "bad" : OVER.has(text) ? "soft" : "warn",
    },
    text || "",
  );
}

// An abbreviated id. Ids of put objects begin alike and differ at the end, so their end is shown.
export function id(text) {
  return el(
    "code",
    { title: text },
    /^f{12}/.test(text || "") ? `…${text.slice(-14)}` : (text || "").slice(0, 12),
  );
}

export function choice(name, options, chosen, label) {
  return el(
    "select",
    { name, "aria-label": label },
    Object.entries(options).map(([value, text]) =>
      el("option", { value, selected: value === chosen }, text),
    ),
  );
}

export const check = (name, text, chosen) =>
  el("label", {}, el("input", { type: "checkbox", name, checked: chosen === "1" }), " ", text);
