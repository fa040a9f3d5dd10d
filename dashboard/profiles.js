// Views of stack traces and flame graphs of one process.
import { ask, json } from "./api.js";
import { check, choice, el } from "./dom.js";
import { textView } from "./text.js";

export const link = (view, parameters, text, title) =>
  el("a", { class: "button", href: `#${view}?${new URLSearchParams(parameters)}`, title }, text);

export function profileLinks(process) {
  if (!process.pid || !process.node_id) return "";
  const at = { pid: process.pid, node_id: process.node_id };
  return el(
    "span",
    { class: "links" },
    link("stack", at, "Stack Trace"),
    " ",
    link("flame", { ...at, duration: 5 }, "CPU Flame Graph"),
  );
}

const SAMPLERS = { auto: "py-spy, else built-in", "py-spy": "py-spy", builtin: "built-in" };
const RETRY_MS = 1000;
const FORMATS = { flamegraph: "flame graph", speedscope: "speedscope" };

// Puts the parameters of the view into the URL, so that it can be edited by hand and bookmarked.
function remember(view, query) {
  history.replaceState(null, "", `#${view}?${query}`);
}

function queryOf(parameters, tools) {
  const query = new URLSearchParams(parameters);
  for (const field of tools.querySelectorAll("input, select")) {
    const value = field.type === "checkbox" ? (field.checked ? "1" : "") : field.value;
    if (value && value !== "auto") query.set(field.name, value);
    else query.delete(field.name);
  }
  return query;
}

export function stack(parameters) {
  const tools = el(
    "span",
    { class: "tools" },
    check("native", "native frames", parameters.native),
    choice("sampler", SAMPLERS, parameters.sampler || "auto", "Sampler"),
    el("button", { onclick: () => view.refresh() }, "Look again"),
  );
  const path = () => `worker/traceback?${queryOf(parameters, tools)}`;
  const view = textView(`Stack trace of process ${parameters.pid}`, path, {
    tools: [tools],
    follow: false,
    source: (answer) => `Taken by ${samplerOf(answer)}, ${new Date().toLocaleTimeString()}`,
  });
  const refresh = view.refresh;
  view.refresh = async () => {
    remember("stack", queryOf(parameters, tools));
    await refresh();
  };
  tools.addEventListener("change", () => view.refresh());
  view.once = true;
  return view;
}

const samplerOf = (answer) =>
  answer.headers.get("X-Ray-Profiling-Sampler") === "builtin" ? "the built-in sampler" : "py-spy";

// Returns what py-spy needs, if the built-in sampler answered because py-spy could not.
async function adviceFor(answer) {
  if (
    answer.headers.get("X-Ray-Profiling-Sampler") !== "builtin" ||
    !/installed|ermi|PTRACE|password/.test(answer.headers.get("X-Ray-Profiling-Note") || "")
  )
    return [];
  const { pyspyAdvice } = (await json("api/profiling_enabled")).data;
  return [
    el(
      "details",
      { class: "warn" },
      el("summary", {}, answer.headers.get("X-Ray-Profiling-Note")),
      el("pre", {}, pyspyAdvice),
    ),
  ];
}

// Shows a graph in a frame of another origin, from which its script cannot reach this page.
function showGraph(frame, text) {
  const handed = (event) => {
    if (event.source !== frame.contentWindow || event.data !== "ready") return;
    removeEventListener("message", handed);
    frame.contentWindow.postMessage(text, "*");
  };
  addEventListener("message", handed);
  frame.src = "static/graph.html";
}

// Only one profile of a process runs at a time. An earlier one, perhaps of a view that was left,
// ends soon, so the request is repeated until then or until `wanted` returns false.
async function retryWhileBusy(question, note, wanted) {
  for (const text = note.textContent; ; note.textContent = text) {
    try {
      return await question();
    } catch (error) {
      if (!error.message.includes("is under way") || !wanted()) throw error;
      note.textContent = "Waits until another profile of this process has ended …";
      await new Promise((done) => setTimeout(done, RETRY_MS));
    }
  }
}

export function flame(parameters) {
  const format = choice("format", FORMATS, parameters.format || "flamegraph", "Shown as");
  const tools = el(
    "div",
    { class: "tools" },
    el(
      "label",
      {},
      "Seconds ",
      el("input", {
        type: "number",
        name: "duration",
        min: 1,
        max: 60,
        value: parameters.duration || 5,
      }),
    ),
    check("native", "native frames", parameters.native),
    check("idle", "also time asleep", parameters.idle),
    format,
    choice("sampler", SAMPLERS, parameters.sampler || "auto", "Sampler"),
  );
  const again = el("button", { onclick: () => start() }, "Sample again"),
    save = el("a", { class: "button", hidden: true }, "Download");
  tools.append(again, save);
  const place = el("div"),
    note = el("p", { class: "soft", role: "status" }),
    advice = el("div");
  const show = (answer, text) => {
    const frame = el("iframe", { title: "Flame graph" }),
      speedscope = format.value === "speedscope";
    URL.revokeObjectURL(save.href);
    save.href = URL.createObjectURL(
      new Blob([text], { type: speedscope ? "application/json" : "image/svg+xml" }),
    );
    save.download = `process-${parameters.pid}.${speedscope ? "speedscope.json" : "svg"}`;
    save.hidden = false;
    if (speedscope)
      frame.src = `speedscope/#profileURL=${encodeURIComponent(save.href)}&title=${encodeURIComponent(`process ${parameters.pid}`)}`;
    else showGraph(frame, text);
    place.replaceChildren(frame);
    note.textContent = `Sampled by ${samplerOf(answer)}, ${new Date().toLocaleTimeString()}.`;
  };
  const start = async () => {
    const query = queryOf(parameters, tools);
    remember("flame", query);
    note.textContent = `Sampling for ${query.get("duration")} s …`;
    note.className = "soft";
    again.disabled = true;
    try {
      if (format.value === "speedscope")
        await ask("speedscope/", { method: "HEAD" }).catch(() => ask("speedscope/"));
      const answer = await retryWhileBusy(
        () => ask(`worker/cpu_profile?${query}`),
        note,
        () => place.isConnected,
      );
      show(answer, await answer.text());
      advice.replaceChildren(...(await adviceFor(answer)));
    } catch (error) {
      note.textContent = error.message;
      note.className = "error";
    } finally {
      again.disabled = false;
    }
  };
  return {
    element: el(
      "section",
      {},
      el("h1", {}, `CPU flame graph of process ${parameters.pid}`),
      tools,
      note,
      advice,
      place,
    ),
    refresh: start,
    once: true,
  };
}
