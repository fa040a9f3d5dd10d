// A text that can be followed and searched: logs, stack traces.
import { ask } from "./api.js";
import { el } from "./dom.js";

// `path` is the URL of the text, or a function that returns it. `read` returns a promise of the
// text of an answer. `source` returns a line about the origin of an answer.
export function textView(
  title,
  path,
  { tools = [], follow = true, read = (answer) => answer.text(), source = null } = {},
) {
  const where = typeof path === "function" ? path : () => path;
  const search = el("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": "Search the text",
    }),
    found = el("span", { class: "soft", role: "status" });
  const following = el("input", { type: "checkbox", checked: follow }),
    said = el("p", { class: "soft" }),
    pre = el("pre", { class: "text", tabindex: 0 });
  const download = el("a", { class: "button", download: "" }, "Download");
  let text = null;
  const draw = () => {
    const parts = search.value ? split(text, search.value) : [text];
    pre.replaceChildren(...parts.map((part, i) => (i % 2 ? el("mark", {}, part) : part)));
    const count = (parts.length - 1) / 2;
    found.textContent = search.value ? `${count} found` : "";
    if (search.value && count) pre.querySelector("mark").scrollIntoView({ block: "nearest" });
    else if (following.checked) pre.scrollTop = pre.scrollHeight;
  };
  search.addEventListener("input", draw);
  return {
    element: el(
      "section",
      {},
      el("h1", {}, title),
      el(
        "div",
        { class: "tools" },
        search,
        found,
        follow ? el("label", {}, following, " follow") : null,
        ...tools,
        download,
      ),
      said,
      pre,
    ),
    async refresh() {
      const answer = await ask(where()),
        fresh = await read(answer);
      download.href = where();
      if (source) said.textContent = source(answer);
      if (fresh === text) return;
      text = fresh;
      draw();
    },
  };
}

// Splits the text into [between, match, between, ..., between]. Matches keep their spelling.
function split(text, words) {
  const escaped = words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.split(new RegExp(`(${escaped})`, "i"));
}
