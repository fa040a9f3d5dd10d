// A table that sorts by a click on a heading and filters while the visitor types. Sorting and
// filter survive refreshes.
import { el } from "./dom.js";

const SHOWN = 500;

// columns: [{ name, value(row), show?(row), number?, wrap?, short? }]. Cells are one line that is
// cut at the end; `wrap` gives them several lines, `short` cuts them earlier.
export class Table {
  constructor(columns, { sort = 0, descending = false } = {}) {
    this.columns = columns;
    this.sort = sort;
    this.descending = descending;
    this.rows = [];
    this.filter = el("input", {
      type: "search",
      placeholder: "Filter",
      "aria-label": "Filter rows",
      oninput: () => this.draw(),
    });
    this.count = el("span", { class: "soft" });
    this.notes = el("div", { class: "warn" });
    this.head = el("tr");
    this.body = el("tbody");
    this.element = el(
      "div",
      {},
      el("div", { class: "tools" }, this.filter, this.count),
      this.notes,
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, this.head), this.body)),
    );
    this.draw();
  }

  // Replaces the rows and the notes above them.
  set(rows, notes = []) {
    this.rows = rows;
    this.notes.replaceChildren(...notes.map((note) => el("div", {}, note)));
    this.draw();
  }

  by(column) {
    this.descending = this.sort === column && !this.descending;
    this.sort = column;
    this.draw();
  }

  draw() {
    this.head.replaceChildren(
      ...this.columns.map((column, i) =>
        el(
          "th",
          {
            class: column.number ? "number" : null,
            "aria-sort": i === this.sort ? (this.descending ? "descending" : "ascending") : "none",
          },
          el(
            "button",
            { onclick: () => this.by(i) },
            column.name,
            i === this.sort ? (this.descending ? " ▾" : " ▴") : "",
          ),
        ),
      ),
    );
    const words = this.filter.value.toLowerCase();
    const value = this.columns[this.sort].value;
    const found = this.rows.filter(
      (row) =>
        !words ||
        this.columns.some((column) =>
          String(column.value(row) ?? "")
            .toLowerCase()
            .includes(words),
        ),
    );
    found.sort((a, b) => compare(value(a), value(b), this.descending ? -1 : 1));
    this.count.textContent =
      found.length > SHOWN
        ? `${found.length} rows, ${SHOWN} shown`
        : `${found.length} ${found.length === 1 ? "row" : "rows"}`;
    this.body.replaceChildren(
      ...found.slice(0, SHOWN).map((row) =>
        el(
          "tr",
          {},
          this.columns.map((column) => {
            const shown = column.show ? column.show(row) : (column.value(row) ?? "");
            return el(
              "td",
              {
                class: ["number", "wrap", "short"].find((kind) => column[kind]) || null,
                title: shown instanceof Node ? null : String(shown),
              },
              shown,
            );
          }),
        ),
      ),
    );
  }
}

// Compares two values. Unknown values come last in both directions.
function compare(a, b, direction) {
  const absent = (value) => value === null || value === undefined || Number.isNaN(value);
  if (absent(a) || absent(b)) return Number(absent(a)) - Number(absent(b));
  if (typeof a === "number" && typeof b === "number") return (a - b) * direction;
  return String(a).localeCompare(String(b), undefined, { numeric: true }) * direction;
}
