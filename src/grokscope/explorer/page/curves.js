// The accuracies of a run over its steps as SVG: what a cell shows first does not wait for plotly.js.

import { percent, shape } from "./dom.js";

const ROOM = { left: 60, right: 12, top: 12, bottom: 42 };

export class CurveChart {
  /** lines: [{ label, color, dashed, values }]; marks: [{ step, name }]. Words are what a screen reader says. */
  constructor(target, steps, lines, marks, words) {
    Object.assign(this, { target, steps, lines, marks });
    this.logarithmic = steps.at(-1) > 200;
    target.setAttribute("role", "img");
    target.setAttribute("aria-label", words);
    target.addEventListener("pointermove", (event) => this.point(event));
    target.addEventListener("pointerleave", () => this.reading?.replaceChildren());
    new ResizeObserver(() => this.fit()).observe(target);
    queueMicrotask(() => this.fit()); // by then it is in the page; the observer would wait for the next frame
  }

  /** Draw it if its place has another size than before. */
  fit() {
    const { width, height } = this.target.getBoundingClientRect();
    if (!width || !height || (width === this.width && height === this.height)) return;
    Object.assign(this, { width, height });
    this.draw();
  }

  draw() {
    const { width, height } = this;
    const scaled = (step) => (this.logarithmic ? Math.log10(step) : step);
    const [first, last] = [scaled(this.logarithmic ? this.steps[0] : 0), scaled(this.steps.at(-1))];
    const right = width - ROOM.right;
    const bottom = height - ROOM.bottom;
    this.x = (step) => ROOM.left + ((scaled(step) - first) / (last - first || 1)) * (right - ROOM.left);
    this.y = (part) => bottom - ((part + 0.03) / 1.06) * (bottom - ROOM.top);
    this.reading = shape("g", {});
    const svg = shape("svg", { width, height, "aria-hidden": "true" });
    svg.append(...this.grid(right, bottom, height), ...this.lines.map((line) => this.line(line)),
      ...this.marks.flatMap((mark, i) => this.mark(mark, i, bottom)), this.reading);
    this.target.replaceChildren(svg);
  }

  grid(right, bottom, height) {
    const levels = [0, 0.2, 0.4, 0.6, 0.8, 1].flatMap((part) => [
      shape("line", { x1: ROOM.left, x2: right, y1: this.y(part), y2: this.y(part), class: "grid" }),
      shape("text", { x: ROOM.left - 6, y: this.y(part) + 4, class: "end" }, percent(part, 0)),
    ]);
    const middle = (bottom + ROOM.top) / 2;
    return [...levels,
      ...this.stepTicks().flatMap((step) => [
        shape("line", { x1: this.x(step), x2: this.x(step), y1: ROOM.top, y2: bottom, class: "grid" }),
        shape("text", { x: this.x(step), y: bottom + 16, class: "middle" }, step.toLocaleString()),
      ]),
      shape("text", { x: (ROOM.left + right) / 2, y: height - 6, class: "middle" }, "step"),
      shape("text", { x: 12, y: middle, class: "middle", transform: `rotate(-90 12 ${middle})` }, "accuracy")];
  }

  stepTicks() {
    const last = this.steps.at(-1);
    if (this.logarithmic) return Array.from({ length: Math.floor(Math.log10(last)) + 1 }, (_, power) => 10 ** power);
    const size = 10 ** Math.floor(Math.log10(last || 1));
    const step = [size / 5, size / 2, size, 2 * size].find((each) => last / each <= 6) ?? size;
    return Array.from({ length: Math.floor(last / step) + 1 }, (_, i) => i * step).filter(Number.isInteger);
  }

  line({ color, dashed, values }) {
    const points = this.steps.flatMap((step, i) => (values[i] === null ? [] : [[this.x(step), this.y(values[i])]]));
    if (points.length === 1) return shape("circle", { cx: points[0][0], cy: points[0][1], r: 3, fill: color });
    const path = points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    return shape("path", { d: path, stroke: color, class: dashed ? "curve dashed" : "curve" });
  }

  mark({ step, name }, i, bottom) {
    const x = this.x(step);
    return [
      shape("line", { x1: x, x2: x, y1: ROOM.top, y2: bottom, class: "event" }),
      shape("text", { x: x + 3, y: bottom - 14 - 13 * (i % 4), class: "event-name" }, name),
    ];
  }

  /** The values at the measured step that is nearest to the pointer. */
  point(event) {
    if (!this.x) return;
    const left = event.clientX - this.target.getBoundingClientRect().left;
    const at = this.steps.reduce((best, step, i) => (Math.abs(this.x(step) - left) < Math.abs(this.x(this.steps[best]) - left) ? i : best), 0);
    const x = this.x(this.steps[at]);
    const side = x > this.target.clientWidth / 2 ? { x: x - 8, class: "end read" } : { x: x + 8, class: "read" };
    const words = [`step ${this.steps[at].toLocaleString()}`, ...this.lines.map(({ label, values }) => `${label} ${percent(values[at])}`)];
    this.reading.replaceChildren(
      shape("line", { x1: x, x2: x, y1: ROOM.top, y2: this.y(-0.03), class: "grid" }),
      ...this.lines.filter(({ values }) => values[at] !== null).map(({ color, values }) => shape("circle", { cx: x, cy: this.y(values[at]), r: 3.5, fill: color })),
      ...words.map((text, i) => shape("text", { ...side, y: ROOM.top + 40 + 15 * i }, text)));
  }
}
