// A small stand-in for Google Charts, from which TensorBoard's PyTorch plug-in draws. Google serves
// the original from its own hosts only, and tests reach no network. It draws the rows that the
// plug-in passes: shares as a bar, series as columns or lines, tables as they are.
(() => {
  const COLORS = ["#3366cc", "#dc3912", "#ff9900", "#109618", "#990099", "#0099c6", "#dd4477"];
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 640;
  const HEIGHT = 240;
  const valueOf = (cell) => (cell && typeof cell === "object" && "v" in cell ? cell.v : cell);
  const textOf = (cell) =>
    cell && typeof cell === "object" && "f" in cell ? cell.f : valueOf(cell);

  function add(parent, name, attributes = {}, text = null) {
    const made = document.createElementNS(
      parent.namespaceURI === SVG || name === "svg" ? SVG : parent.namespaceURI,
      name,
    );
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    parent.append(made);
    return made;
  }

  class DataTable {
    columns = [];
    rows = [];
    addColumn(column) {
      this.columns.push(column);
    }
    addRow(row) {
      this.rows.push(row);
    }
    addRows(rows) {
      this.rows.push(...rows);
    }
    setProperty() {}
    // Numbers of the columns that are values: neither the first nor texts that explain one.
    series() {
      return this.columns.map((_, at) => at).filter((at) => at > 0 && !this.columns[at].role);
    }
  }

  class Chart {
    constructor(element) {
      this.element = element;
      this.listeners = {};
    }
    draw(table, options) {
      this.clearChart();
      this.table = table;
      // In units of the drawing, which is as wide as its place.
      const scale = WIDTH / (this.element.clientWidth || WIDTH);
      this.height = Math.max(HEIGHT, ((options.height || 0) - 70) * scale);
      this.figure = add(this.element, "div", { class: "chart", style: "font: 12px sans-serif" });
      if (options.title) add(this.figure, "b", {}, options.title);
      this.show(table, options);
      for (const ready of this.listeners.ready || []) ready();
    }
    clearChart() {
      this.element.replaceChildren();
    }
    canvas(height = this.height) {
      const box = `0 0 ${WIDTH} ${height}`;
      return add(this.figure, "svg", { viewBox: box, style: "width: 100%", role: "img" });
    }
    legend(names, colors) {
      const line = add(this.figure, "div");
      names.forEach((name, at) => {
        add(line, "span", { style: `color: ${colors[at % colors.length]}` }, "\u25a0 ");
        add(line, "span", { style: "margin-right: 1em" }, name);
      });
    }
    getSelection() {
      return [];
    }
    setSelection() {}
    getChartLayoutInterface() {
      const first = Number(valueOf(this.table.rows[0]?.[0])) || 0;
      const last = Number(valueOf(this.table.rows.at(-1)?.[0])) || 0;
      return {
        getChartAreaBoundingBox: () => ({ left: 0, width: WIDTH }),
        getHAxisValue: (x) => first + ((last - first) * x) / WIDTH,
      };
    }
  }

  class PieChart extends Chart {
    show(table, options) {
      const colors = options.colors || COLORS;
      const total = table.rows.reduce((sum, row) => sum + Number(valueOf(row[1])), 0) || 1;
      const svg = this.canvas(40);
      let left = 0;
      table.rows.forEach((row, at) => {
        const width = (WIDTH * Number(valueOf(row[1]))) / total;
        add(svg, "rect", { x: left, width, height: 40, fill: colors[at % colors.length] });
        left += width;
      });
      const percent = (row) => `${((100 * Number(valueOf(row[1]))) / total).toFixed(1)} %`;
      this.legend(
        table.rows.map((row) => `${textOf(row[0])} ${percent(row)}`),
        colors,
      );
    }
  }

  class ColumnChart extends Chart {
    show(table, options) {
      const colors = options.colors || COLORS;
      const series = table.series();
      const sums = table.rows.map((row) =>
        series.reduce((sum, at) => sum + Number(valueOf(row[at]) || 0), 0),
      );
      const svg = this.canvas();
      const highest = Math.max(...sums, 1e-9);
      const step = WIDTH / table.rows.length;
      table.rows.forEach((row, number) => {
        let top = this.height - 20;
        series.forEach((at, color) => {
          const height = ((this.height - 40) * Number(valueOf(row[at]) || 0)) / highest;
          top -= height;
          const place = { x: (number + 0.2) * step, y: top, width: 0.6 * step, height };
          add(svg, "rect", { ...place, fill: colors[color % colors.length] });
        });
        const x = (number + 0.5) * step;
        const label = { "text-anchor": "middle", "font-size": 14 };
        add(svg, "text", { ...label, x, y: this.height - 3 }, textOf(row[0]));
        const sum = Math.round(sums[number]).toLocaleString("en");
        add(svg, "text", { ...label, x, y: top - 3 }, sum);
      });
      this.legend(
        series.map((at) => table.columns[at].label),
        colors,
      );
      if (options.vAxis?.title) add(this.figure, "i", {}, options.vAxis.title);
    }
  }

  class LineChart extends Chart {
    show(table, options) {
      const series = table.series();
      const all = table.rows.flatMap((row) => series.map((at) => Number(valueOf(row[at]) || 0)));
      const xs = table.rows.map((row) => Number(valueOf(row[0])));
      const highest = Math.max(...all, 1e-9);
      const svg = this.canvas();
      const wide = xs.at(-1) - xs[0] || 1;
      series.forEach((at, color) => {
        const points = table.rows
          .map((row, number) => {
            const y = this.height - (this.height * Number(valueOf(row[at]) || 0)) / highest;
            return `${(WIDTH * (xs[number] - xs[0])) / wide},${y}`;
          })
          .join(" ");
        add(svg, "polyline", { points, fill: "none", stroke: COLORS[color % COLORS.length] });
      });
      this.legend(
        series.map((at) => table.columns[at].label),
        COLORS,
      );
      const unit = options.vAxis?.title ? `, ${options.vAxis.title}` : "";
      add(this.figure, "i", {}, `up to ${Math.round(highest).toLocaleString("en")}${unit}`);
    }
  }

  class Table extends Chart {
    show(table) {
      const made = add(this.figure, "table", { style: "border-spacing: 8px 2px" });
      const shown = table.columns.map((_, at) => at).filter((at) => !table.columns[at].role);
      const head = add(made, "tr");
      const left = { style: "text-align: left" };
      for (const at of shown) add(head, "th", left, table.columns[at].label);
      for (const row of table.rows.slice(0, 30)) {
        const line = add(made, "tr");
        for (const at of shown) add(line, "td", {}, textOf(row[at]));
      }
    }
  }

  class Timeline extends Table {}

  function arrayToDataTable([head, ...rows]) {
    const table = new DataTable();
    for (const label of head) table.addColumn({ label });
    table.addRows(rows);
    return table;
  }

  const charts = { PieChart, ColumnChart, LineChart, Table, Timeline };
  window.google = {
    charts: { load: async () => {} },
    visualization: {
      ...charts,
      ComboChart: ColumnChart,
      SteppedAreaChart: ColumnChart,
      DataTable,
      arrayToDataTable,
      events: {
        addListener: (chart, name, listener) => {
          chart.listeners[name] = [...(chart.listeners[name] || []), listener];
        },
      },
    },
  };
})();
