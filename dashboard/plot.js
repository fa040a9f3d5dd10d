// A plot of the last minutes on a canvas: one line without axes, for the tiles of the overview.

export class Plot {
  constructor(canvas, points = 300) {
    this.canvas = canvas;
    this.points = points;
    this.values = [];
  }

  // Adds a value at the right end. The top of the plot is not below `ceiling`.
  add(value, ceiling = null) {
    this.values.push(value);
    if (this.values.length > this.points) this.values.shift();
    this.draw(ceiling);
  }

  draw(ceiling) {
    const { canvas, values } = this;
    const scale = window.devicePixelRatio || 1,
      width = canvas.clientWidth * scale,
      height = canvas.clientHeight * scale;
    if (!width || !height) return;
    canvas.width = width;
    canvas.height = height;
    const top = Math.max(ceiling || 0, ...values, 1),
      step = width / (this.points - 1),
      pen = canvas.getContext("2d");
    const y = (value) => height - 1 - (value / top) * (height - 2);
    pen.strokeStyle = pen.fillStyle = getComputedStyle(canvas).getPropertyValue("--accent");
    pen.lineWidth = scale * 1.5;
    pen.beginPath();
    const first = width - step * (values.length - 1);
    values.forEach((value, i) =>
      i ? pen.lineTo(first + i * step, y(value)) : pen.moveTo(first, y(value)),
    );
    pen.stroke();
    pen.globalAlpha = 0.12;
    pen.lineTo(width, height);
    pen.lineTo(first, height);
    pen.fill();
  }
}
