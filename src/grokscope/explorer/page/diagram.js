// The phase diagram of a sweep: a map whose cells open networks.

import { element, announce, percent, replace } from "./dom.js";
import { get } from "./api.js";
import { changeState, placeFrom, readState } from "./state.js";
import { draw, relayout } from "./charts.js";

const COLOR_CHOICES = {
  phase: "phase",
  train_accuracy: "train accuracy",
  test_accuracy: "test accuracy",
  corrupted_accuracy: "corrupted labels memorised",
  recovered_accuracy: "corrupted labels recovered",
  mean_ipr: "mean IPR",
  grokked_step: "step at which it grokked",
  disagreement: "disagreement of seeds",
  probability: "probability of a phase",
};
const MARKS = {
  inferred: { symbol: "circle", scale: 0.4, words: "inferred: not run, the cells around it agree" },
  missing: { symbol: "line-ew-open", words: "missing: not run yet" },
  running: { symbol: "triangle-right", words: "running: being trained now" },
  failed: { symbol: "x", words: "failed: ended with an error" },
  damaged: { symbol: "hash-open", words: "damaged in the store" },
  split: { symbol: "diamond-open", words: "seeds disagree" },
};

/** The diagram with its controls and legend. A chosen cell goes into the address. */
export class Diagram {
  constructor(view, outcomes) {
    this.outcomes = outcomes;
    this.chart = element("div", { class: "map", tabindex: "0", role: "application" });
    this.chart.addEventListener("keydown", (event) => this.move(event));
    this.chart.addEventListener("pointerdown", (event) => this.press(event));
    this.controls = element("div", { class: "controls" });
    this.legend = element("ul", { class: "legend", "aria-label": "Legend" });
    this.note = element("p", { class: "quiet" });
    this.root = element("section", { class: "diagram", "aria-label": `Phase diagram of ${view.name}` },
      element("h1", {}, view.name), this.controls, this.chart, this.note, this.legend);
    this.take(view);
  }

  /** A newer view of the same sweep. */
  update(view) {
    this.take(view);
    return this.show();
  }

  take(view) {
    this.view = view;
    this.width = view.columns.labels.length;
    this.height = view.rows ? view.rows.labels.length : 1;
    this.x = coordinates(view.columns);
    this.y = view.rows ? coordinates(view.rows) : { centers: [0], ticks: { tickvals: [], title: { text: "" } } };
    this.showControls();
  }

  get panel() {
    const number = Number(readState().panel ?? 0);
    return number < this.view.panels.length ? number : 0;
  }

  /** The panel of the cell beside: cells of different panels can be compared. */
  get besidePanel() {
    const number = Number(readState().beside_panel ?? this.panel);
    return number < this.view.panels.length ? number : this.panel;
  }

  /** Everything the page knows about a cell. */
  cell([column, row], panelNumber = this.panel) {
    const panel = this.view.panels[panelNumber];
    const at = row * this.width + column;
    const axes = [[this.view.columns, column], ...(this.view.rows ? [[this.view.rows, row]] : [])];
    const place = [...axes.map(([axis, i]) => `${axis.title} ${axis.labels[i]}`), panel.title].filter(Boolean).join(", ");
    return {
      place, source: panel.source[at], outcome: panel.outcome[at], counts: panel.counts[at],
      runs: panel.run_ids[at], seeds: panel.seeds[at], test: panel.test_accuracy[at], train: panel.train_accuracy[at],
    };
  }

  has(place) {
    return place !== null && place[0] < this.width && place[1] < this.height;
  }

  showControls() {
    const { panels, seeds } = this.view;
    const state = readState();
    const choices = Object.entries(COLOR_CHOICES).filter(([name]) => seeds > 1 || !["disagreement"].includes(name));
    const menu = (label, name, options, chosen) => element("label", {}, `${label} `,
      element("select", { "aria-label": label, onchange: (event) => changeState({ [name]: event.target.value }) },
        options.map(([value, words]) => element("option", { value, selected: String(value) === String(chosen) }, words))));
    replace(this.controls,
      panels.length > 1 ? menu("Panel", "panel", panels.map((panel, i) => [i, panel.title]), this.panel) : null,
      menu("Colour", "color", choices, state.color ?? "phase"),
      state.color === "probability"
        ? menu("Phase", "phase", this.outcomes.map((one) => [one.name, one.label]), state.phase ?? this.outcomes[0].name)
        : null);
  }

  async show() {
    const state = readState();
    const color = state.color in COLOR_CHOICES ? state.color : "phase";
    const panelNumber = this.panel;
    const panel = this.view.panels[panelNumber];
    this.note.textContent = this.view.words;
    if (color === "phase") {
      await this.paint(panel, panel.outcome.map((name) => this.code(name)), null);
    } else {
      let left = 1;
      while (left) {
        const found = await this.values(panel, panelNumber, color, state);
        if (readState().color !== color || this.panel !== panelNumber) return;
        left = found.left;
        this.note.textContent = left ? `${this.view.words}; ${left} curves to read` : this.view.words;
        await this.paint(panel, found.values, COLOR_CHOICES[color]);
      }
    }
    this.showLegend(color, panel);
  }

  code(outcome) {
    const index = this.outcomes.findIndex((one) => one.name === outcome);
    return index < 0 ? null : index;
  }

  async values(panel, panelNumber, color, state) {
    const total = (counts) => counts.reduce((sum, count) => sum + count, 0);
    const share = (of) => panel.counts.map((counts) => (total(counts) ? of(counts) / total(counts) : null));
    if (color === "disagreement") return { values: share((counts) => total(counts) - Math.max(...counts)), left: 0 };
    if (color === "probability") {
      const wanted = Math.max(0, this.code(state.phase ?? this.outcomes[0].name) ?? 0);
      return { values: share((counts) => counts[wanted]), left: 0 };
    }
    if (panel[color]) return { values: panel[color], left: 0 };
    return get(`/api/sweeps/${encodeURIComponent(this.view.name)}/colors/${color}?panel=${panelNumber}`);
  }

  async paint(panel, values, title) {
    const rows = (list) => Array.from({ length: this.height }, (_, row) => list.slice(row * this.width, (row + 1) * this.width));
    const words = panel.outcome.map((_, at) => this.wordsOf([at % this.width, Math.floor(at / this.width)]));
    const heat = {
      type: "heatmap", x: this.x.centers, y: this.y.centers, z: rows(values), text: rows(words),
      hovertemplate: "%{text}<extra></extra>", xgap: 1, ygap: 1,
    };
    const fractions = title && !/step|IPR/.test(title);
    if (title === null) {
      const last = this.outcomes.length;
      const steps = this.outcomes.flatMap((one, i) => [[i / last, one.color], [(i + 1) / last, one.color]]);
      Object.assign(heat, { colorscale: steps, zmin: -0.5, zmax: last - 0.5, showscale: false });
    } else {
      Object.assign(heat, {
        colorscale: "Cividis", ...(fractions || /IPR/.test(title) ? { zmin: 0, zmax: 1 } : {}),
        colorbar: { title: { text: title, side: "right" }, thickness: 12, tickformat: fractions ? ".0%" : "" },
      });
    }
    const tile = getComputedStyle(document.documentElement).getPropertyValue("--tile").trim();
    const tiles = { ...heat, z: rows(values.map(() => 0)), colorscale: [[0, tile], [1, tile]], showscale: false, hoverinfo: "skip", hovertemplate: null };
    const span = ({ centers }) => [edges(centers, 0)[0], edges(centers, centers.length - 1)[1]];
    await draw(this.chart, [tiles, heat, ...this.marks(panel)], {
      xaxis: { title: { text: this.view.columns.title }, showgrid: false, zeroline: false, range: span(this.x), ...this.x.ticks },
      yaxis: { title: { text: this.view.rows?.title ?? "" }, showgrid: false, zeroline: false, range: span(this.y), ...this.y.ticks },
      margin: { l: 56, r: 16, t: 8, b: 46 },
      hovermode: "closest",
      dragmode: false,
      shapes: this.frames(),
    });
    this.chart.setAttribute("aria-label",
      `${title ?? "Phases"} of ${this.view.name}, ${this.width} by ${this.height} cells. Arrow keys move, B keeps a cell beside.`);
  }

  /** Plotly's own clicks need a hover before them, which a finger does not make. */
  press(down) {
    addEventListener("pointerup", (up) => {
      const place = this.placeAt(up.clientX, up.clientY);
      const moved = Math.hypot(up.clientX - down.clientX, up.clientY - down.clientY);
      if (!place || moved > 6) return;
      if (up.shiftKey) this.keepBeside(place.join(","));
      else changeState({ cell: place.join(","), neuron: null });
    }, { once: true });
  }

  /** The cell at a point of the screen; null outside. */
  placeAt(left, top) {
    const area = this.chart.querySelector(".nsewdrag")?.getBoundingClientRect();
    if (!area || left < area.left || left > area.right || top < area.top || top > area.bottom) return null;
    const { xaxis, yaxis } = this.chart._fullLayout;
    return [[xaxis, this.x, left - area.left], [yaxis, this.y, top - area.top]].map(([axis, { centers }, pixel]) => {
      const value = axis.p2d(pixel);
      return centers.reduce((best, _, i) => (Math.abs(centers[i] - value) < Math.abs(centers[best] - value) ? i : best), 0);
    });
  }

  marks(panel) {
    const found = Object.fromEntries(Object.keys(MARKS).map((name) => [name, []]));
    panel.source.forEach((source, at) => {
      const seeds = panel.seeds[at];
      const name = seeds.includes("damaged") ? "damaged" : seeds.includes("running") ? "running" : source === "run"
        ? (panel.counts[at].filter(Boolean).length > 1 ? "split" : seeds.includes("failed") ? "failed" : null) : source;
      if (name) found[name].push(at);
    });
    const small = Math.max(4, Math.min(9, 150 / Math.max(this.width, this.height)));
    // Dark on a light rim, so that they are seen on every colour.
    const rim = { color: "#ffffff", line: { color: "#ffffff", width: 2.6 } };
    const ink = { color: "#14181f", line: { color: "#14181f", width: 1.3 } };
    const quiet = getComputedStyle(document.documentElement).getPropertyValue("--quiet").trim();
    const plain = { color: quiet, line: { color: quiet, width: 1.3 } }; // on an empty tile
    const looks = (name) => (name === "missing" ? [plain] : name === "inferred" ? [{ ...ink, line: { color: "#ffffff", width: 0.8 } }] : [rim, ink]);
    return Object.entries(found).filter(([, cells]) => cells.length).flatMap(([name, cells]) => looks(name).map((look) => ({
      type: "scatter", mode: "markers", name, hoverinfo: "skip",
      x: cells.map((at) => this.x.centers[at % this.width]),
      y: cells.map((at) => this.y.centers[Math.floor(at / this.width)]),
      marker: { symbol: MARKS[name].symbol, size: small * (MARKS[name].scale ?? 1), ...look },
    })));
  }

  keepBeside(cell) {
    changeState({ beside: cell, beside_panel: this.view.panels.length > 1 ? this.panel : null, beside_seed: readState().seed });
  }

  /** Only the chosen cells: the map stays as it is. */
  showFrames() {
    return this.chart.data ? relayout(this.chart, { shapes: this.frames() }) : this.show();
  }

  frames() {
    const state = readState();
    const beside = this.besidePanel === this.panel ? placeFrom(state.beside) : null;
    return [this.frame(beside, "dot"), this.frame(placeFrom(state.cell), "solid")].filter(Boolean);
  }

  frame(place, dash) {
    if (!this.has(place)) return null;
    const [x0, x1] = edges(this.x.centers, place[0]);
    const [y0, y1] = edges(this.y.centers, place[1]);
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
    return { type: "rect", x0, x1, y0, y1, line: { color: ink, width: 3, dash } };
  }

  wordsOf(place) {
    const cell = this.cell(place);
    const outcome = this.outcomes.find((one) => one.name === cell.outcome)?.label;
    const state = cell.seeds.includes("damaged") ? "damaged" : cell.seeds.includes("running") ? "running" : cell.source;
    const accuracies = cell.test === null ? "" : `<br>train ${percent(cell.train)}, test ${percent(cell.test)}`;
    return `${outcome ?? state}${outcome && state !== "run" ? ` (${state})` : ""}<br>${escaped(cell.place)}${accuracies}`;
  }

  move(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const state = readState();
    const place = placeFrom(state.cell);
    if (event.key === "b" && place) {
      this.keepBeside(state.cell);
      return;
    }
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const next = this.has(place) ? [place[0] + step[0], place[1] + step[1]] : [0, 0];
    if (!this.has(next) || next.some((part) => part < 0)) return;
    changeState({ cell: next.join(","), neuron: null });
    announce(this.wordsOf(next).replaceAll("<br>", ", "));
  }

  showLegend(color, panel) {
    const shown = new Set(panel.outcome);
    const phases = color === "phase" || color === "probability"
      ? this.outcomes.map((one) => element("li", { class: shown.has(one.name) ? "" : "absent" },
        element("span", { class: "swatch", style: `background: ${one.color}` }), element("b", {}, one.label), ` ${one.words}`))
      : [];
    const used = new Set(this.marks(panel).map((trace) => trace.name));
    const marks = Object.entries(MARKS).filter(([name]) => used.has(name)).map(([name, mark]) =>
      element("li", {}, element("span", { class: "swatch mark" }, SIGNS[name]), mark.words));
    const never = color === "grokked_step" ? element("li", {}, element("span", { class: "swatch" }), "empty: never grokked") : null;
    replace(this.legend, phases, never, marks);
  }
}

const SIGNS = { inferred: "•", missing: "–", running: "▸", failed: "×", damaged: "#", split: "◇" };

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

/** True coordinates where an axis has them, places otherwise. */
function coordinates(axis) {
  const numbers = axis.numbers;
  const rising = numbers?.every((value, i) => i === 0 || value > numbers[i - 1]);
  const centers = rising ? numbers : axis.labels.map((_, i) => i);
  const every = Math.ceil(centers.length / 10);
  const shown = centers.map((_, i) => i).filter((i) => i % every === 0);
  const ticks = rising ? {} : { tickvals: shown.map((i) => centers[i]), ticktext: shown.map((i) => axis.labels[i]) };
  return { centers, ticks };
}

/** Where a cell begins and ends: half way to its neighbours. */
function edges(centers, i) {
  if (centers.length === 1) return [centers[0] - 0.5, centers[0] + 0.5];
  const before = i > 0 ? (centers[i] - centers[i - 1]) / 2 : (centers[1] - centers[0]) / 2;
  const after = i + 1 < centers.length ? (centers[i + 1] - centers[i]) / 2 : before;
  return [centers[i] - before, centers[i] + after];
}
