// The timeline view: downloads the trace of tasks as a file for a trace viewer.
import { json } from "./api.js";
import { check, choice, el } from "./dom.js";

const SPANS = {
  0: "all that is recorded",
  10: "the last 10 seconds",
  60: "the last minute",
  600: "the last 10 minutes",
  3600: "the last hour",
};

export function timeline() {
  const job = choice("job_id", { "": "all jobs" }, "", "Job"),
    last = choice("last", SPANS, "0", "Time span");
  const arrows = check("arrows", "arrows from who submitted a task to where it ran", "1"),
    box = arrows.querySelector("input");
  const download = el("a", { class: "button", download: "timeline.json" }, "Download");
  const point = () => {
    const query = new URLSearchParams({ download: 1, arrows: box.checked ? 1 : 0 });
    for (const field of [job, last])
      if (field.value && field.value !== "0") query.set(field.name, field.value);
    download.href = `api/v0/tasks/timeline?${query}`;
  };
  point();
  const viewer = (href, text) => el("a", { href, target: "_blank", rel: "noreferrer" }, text);
  return {
    element: el(
      "section",
      { onchange: point },
      el("h1", {}, "Timeline"),
      el("p", {}, "When each task ran, and where: a file with one bar a task, one row a process."),
      el("div", { class: "tools" }, job, last, arrows, download),
      el(
        "p",
        { class: "soft" },
        "To look at it, open ",
        viewer("https://ui.perfetto.dev", "ui.perfetto.dev"),
        " and drop the file there (it stays on your machine), or enter chrome://tracing as an address in Chrome and choose Load.",
      ),
    ),
    async refresh() {
      const jobs = (await json("api/jobs/")).filter((row) => row.job_id);
      job.append(
        ...jobs.map((row) =>
          el(
            "option",
            { value: row.job_id },
            `${row.submission_id || row.job_id}: ${row.entrypoint || ""}`.slice(0, 40),
          ),
        ),
      );
    },
    once: true,
  };
}
