// A map of coloured cells as SVG. plotly.js takes more than a second to start, and the map is what people wait for.

import { shape } from "./dom.js";

const MARGIN = { left: 56, right: 16, top: 8, bottom: 46 };
const BAR = 74; // pixels for the colour bar
// Cividis, which looks the same to nearly everybody.
const SCALE = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];

/** The colour of a part between 0 and 1. */
export function shade(part) {
  const place = Math.min(1, Math.max(0, part)) * (SCALE.length - 1);
  const [low, high] = [SCALE[Math.floor(place)], SCALE[Math.ceil(place)]];
  const channel = (color, i) => parseInt(color.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map((i) => Math.round(channel(low, i) + (place % 1) * (channel(high, i) - channel(low, i))));
  return `rgb(${mixed.join(", ")})`;
}

/** Where a cell begins and ends: half way to its neighbours. */
export function edges(centers, i) {
  if (centers.length === 1) return [centers[0] - 0.5, centers[0] + 0.5];
  const before = i > 0 ? (centers[i] - centers[i - 1]) / 2 : (centers[1] - centers[0]) / 2;
  const after = i + 1 < centers.length ? (centers[i + 1] - centers[i]) / 2 : before;
  return [centers[i] - before, centers[i] + after];
}

export class HeatMap {
  constructor(target) {
    this.target = target;
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    target.addEventListener("pointermove", (event) => this.point(event));
    target.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    new ResizeObserver(() => { if (this.content) this.draw(this.content); }).observe(target);
  }

  /**
   * content: { x, y: { centers, labels, title }, color(column, row), words(column, row), sign(column, row),
   * frames: [{ place, dashed }], bar: { title, low, high, text(value) } or null }
   */
  draw(content) {
    this.content = content;
    const { width, height } = this.target.getBoundingClientRect();
    if (!width || !height) return;
    const right = MARGIN.right + (content.bar ? BAR : 0);
    this.across = this.axis(content.x.centers, MARGIN.left, width - right);
    this.up = this.axis(content.y.centers, height - MARGIN.bottom, MARGIN.top);
    const svg = shape("svg", { width, height, "aria-hidden": "true" });
    content.x.centers.forEach((_, column) => content.y.centers.forEach((__, row) => svg.append(...this.cell(content, column, row))));
    this.frames = shape("g", {});
    svg.append(...this.ticks(content, width - right, height), this.frames);
    if (content.bar) svg.append(...this.bar(content.bar, width - BAR, height));
    this.target.replaceChildren(svg, this.tip);
    this.drawFrames(content.frames);
  }

  /** Only the chosen cells: the map stays as it is. */
  drawFrames(frames) {
    if (!this.content) return;
    this.content.frames = frames; // for when it is drawn again
    this.frames?.replaceChildren(...frames.map((frame) => this.frame(frame)));
  }

  /** Pixels of the edges of all cells. */
  axis(centers, from, to) {
    const low = edges(centers, 0)[0];
    const high = edges(centers, centers.length - 1)[1];
    const pixel = (value) => from + ((value - low) / (high - low)) * (to - from);
    return centers.map((_, i) => edges(centers, i).map(pixel));
  }

  box([column, row]) {
    const [x0, x1] = this.across[column];
    const [y1, y0] = this.up[row];
    return { x: x0, y: y0, width: x1 - x0, height: y1 - y0 };
  }

  cell(content, column, row) {
    const { x, y, width, height } = this.box([column, row]);
    const color = content.color(column, row);
    const tile = shape("rect", {
      x: x + 0.5, y: y + 0.5, width: Math.max(1, width - 1), height: Math.max(1, height - 1), "data-cell": `${column},${row}`,
      class: color ? "" : "empty", ...(color ? { fill: color } : {}),
    });
    const sign = content.sign(column, row);
    if (!sign) return [tile];
    const size = Math.max(6, Math.min(14, 0.55 * Math.min(width, height)));
    return [tile, shape("text", { x: x + width / 2, y: y + height / 2, "font-size": size, class: color ? "sign" : "sign quiet" }, sign)];
  }

  ticks({ x, y }, right, height) {
    const every = (list) => Math.ceil(list.length / 10);
    const middle = ([from, to]) => (from + to) / 2;
    const bottom = height - MARGIN.bottom;
    const marks = [];
    x.labels.forEach((label, i) => { if (i % every(x.labels) === 0) marks.push(shape("text", { x: middle(this.across[i]), y: bottom + 16, class: "tick middle" }, label)); });
    y.labels.forEach((label, i) => { if (i % every(y.labels) === 0) marks.push(shape("text", { x: MARGIN.left - 6, y: middle(this.up[i]) + 4, class: "tick end" }, label)); });
    const half = (bottom + MARGIN.top) / 2;
    marks.push(shape("text", { x: (MARGIN.left + right) / 2, y: height - 8, class: "title middle" }, x.title));
    marks.push(shape("text", { x: 14, y: half, class: "title middle", transform: `rotate(-90 14 ${half})` }, y.title));
    return marks;
  }

  frame({ place, dashed }) {
    return shape("rect", { ...this.box(place), class: dashed ? "frame dashed" : "frame" });
  }

  bar({ title, low, high, text }, left, height) {
    const [top, bottom] = [MARGIN.top, height - MARGIN.bottom];
    const steps = SCALE.map((color, i) => shape("stop", { offset: i / (SCALE.length - 1), "stop-color": color }));
    const middle = (top + bottom) / 2;
    return [
      shape("defs", {}, shape("linearGradient", { id: "scale", x1: 0, x2: 0, y1: 1, y2: 0 }, ...steps)),
      shape("rect", { x: left + 4, y: top, width: 12, height: bottom - top, fill: "url(#scale)" }),
      ...[0, 0.5, 1].map((part) => shape("text", { x: left + 20, y: bottom - part * (bottom - top) + 4, class: "tick" }, text(low + part * (high - low)))),
      shape("text", { x: left + 68, y: middle, class: "title middle", transform: `rotate(-90 ${left + 68} ${middle})` }, title),
    ];
  }

  /** The cell at a point of the screen; null outside. */
  placeAt(left, top) {
    const area = this.target.getBoundingClientRect();
    const within = (list, pixel) => list.findIndex((pair) => pixel >= Math.min(...pair) && pixel <= Math.max(...pair));
    const place = [within(this.across ?? [], left - area.left), within(this.up ?? [], top - area.top)];
    return place.includes(-1) ? null : place;
  }

  point(event) {
    const place = this.placeAt(event.clientX, event.clientY);
    this.tip.hidden = !place;
    if (!place) return;
    this.tip.textContent = this.content.words(...place);
    const area = this.target.getBoundingClientRect();
    const beside = event.clientX - area.left > area.width / 2 ? { right: `${area.right - event.clientX + 12}px`, left: "auto" } : { left: `${event.clientX - area.left + 12}px`, right: "auto" };
    Object.assign(this.tip.style, { top: `${event.clientY - area.top + 12}px`, ...beside });
  }
}
