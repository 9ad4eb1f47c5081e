// The phase diagram of a sweep: a map whose cells open networks.

import { element, announce, percent, replace } from "./dom.js";
import { get } from "./api.js";
import { changeState, placeFrom, readState } from "./state.js";
import { HeatMap, shade } from "./heatmap.js";

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
  inferred: { sign: "•", words: "inferred: not run, the cells around it agree" },
  recorded: { sign: "○", words: "only the outcome is known, from a table: the network is not here" },
  missing: { sign: "–", words: "missing: not run yet" },
  running: { sign: "▸", words: "running: being trained now" },
  failed: { sign: "×", words: "failed: ended with an error" },
  damaged: { sign: "#", words: "damaged in the store" },
  split: { sign: "◇", words: "seeds disagree" },
};

/** The diagram with its controls and legend. A chosen cell goes into the address. */
export class Diagram {
  constructor(view, outcomes) {
    this.outcomes = outcomes;
    this.chart = element("div", { class: "map", tabindex: "0", role: "application" });
    this.map = new HeatMap(this.chart);
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
    this.y = view.rows ? coordinates(view.rows) : { centers: [0], labels: [""], title: "" };
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

  paint(panel, values, title) {
    const at = (column, row) => row * this.width + column;
    const known = values.filter((value) => value !== null);
    const fractions = title !== null && !/step/.test(title); // of examples, of seeds, and the IPR
    const [low, high] = fractions ? [0, 1] : [Math.min(...known), Math.max(...known)];
    const part = (value) => (high > low ? (value - low) / (high - low) : 0.5);
    const color = (value) => (value === null ? null : title === null ? this.outcomes[value].color : shade(part(value)));
    const marks = this.marks(panel);
    const text = (value) => (!fractions ? String(Math.round(value)) : /IPR/.test(title) ? value.toFixed(1) : percent(value, 0));
    this.map.draw({
      x: this.x,
      y: this.y,
      color: (column, row) => color(values[at(column, row)]),
      words: (column, row) => this.wordsOf([column, row]),
      sign: (column, row) => MARKS[marks[at(column, row)]]?.sign,
      frames: this.frames(),
      bar: title !== null && known.length ? { title, low, high, text } : null,
    });
    this.chart.setAttribute("aria-label",
      `${title ?? "Phases"} of ${this.view.name}, ${this.width} by ${this.height} cells. Arrow keys move, B keeps a cell beside.`);
  }

  /** A press that does not move is a click, by mouse or finger. */
  press(down) {
    addEventListener("pointerup", (up) => {
      const place = this.map.placeAt(up.clientX, up.clientY);
      const moved = Math.hypot(up.clientX - down.clientX, up.clientY - down.clientY);
      if (!place || moved > 6) return;
      if (up.shiftKey) this.keepBeside(place.join(","));
      else changeState({ cell: place.join(","), neuron: null });
    }, { once: true });
  }

  /** What is the matter with each cell, if something is. */
  marks(panel) {
    return panel.source.map((source, at) => {
      const seeds = panel.seeds[at];
      if (seeds.includes("damaged")) return "damaged";
      if (seeds.includes("running")) return "running";
      if (source !== "run") return source;
      return panel.counts[at].filter(Boolean).length > 1 ? "split" : seeds.includes("failed") ? "failed" : null;
    });
  }

  keepBeside(cell) {
    changeState({ beside: cell, beside_panel: this.view.panels.length > 1 ? this.panel : null, beside_seed: readState().seed });
  }

  /** Only the chosen cells: the map stays as it is. */
  showFrames() {
    this.map.drawFrames(this.frames());
  }

  frames() {
    const state = readState();
    const beside = this.besidePanel === this.panel ? placeFrom(state.beside) : null;
    return [{ place: beside, dashed: true }, { place: placeFrom(state.cell), dashed: false }].filter(({ place }) => this.has(place));
  }

  wordsOf(place) {
    const cell = this.cell(place);
    const outcome = this.outcomes.find((one) => one.name === cell.outcome)?.label;
    const state = cell.seeds.includes("damaged") ? "damaged" : cell.seeds.includes("running") ? "running" : cell.source;
    const accuracies = cell.test === null ? "" : `\ntrain ${percent(cell.train)}, test ${percent(cell.test)}`;
    return `${outcome ?? state}${outcome && state !== "run" ? ` (${state})` : ""}\n${cell.place}${accuracies}`;
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
    announce(this.wordsOf(next).replaceAll("\n", ", "));
  }

  showLegend(color, panel) {
    const shown = new Set(panel.outcome);
    const phases = color === "phase" || color === "probability"
      ? this.outcomes.map((one) => element("li", { class: shown.has(one.name) ? "" : "absent" },
        element("span", { class: "swatch", style: `background: ${one.color}` }), element("b", {}, one.label), ` ${one.words}`))
      : [];
    const used = new Set(this.marks(panel));
    const marks = Object.entries(MARKS).filter(([name]) => used.has(name)).map(([name, mark]) =>
      element("li", {}, element("span", { class: "swatch mark" }, mark.sign), mark.words));
    const never = color === "grokked_step" ? element("li", {}, element("span", { class: "swatch" }), "empty: never grokked") : null;
    replace(this.legend, phases, never, marks);
  }
}

/** True coordinates where an axis has them, places otherwise. */
function coordinates({ numbers, labels, title }) {
  const rising = numbers?.every((value, i) => i === 0 || value > numbers[i - 1]);
  return { centers: rising ? numbers : labels.map((_, i) => i), labels, title };
}
