// One cell, or one run of a list: what the network did, and if its weights were kept, how it works.

import { calledAndTagged, element, copyButton, keys, replace, secondsInWords, whenInWords } from "./dom.js";
import { get, isReport } from "./api.js";
import { changeState, readState } from "./state.js";
import { draw, BIN_CENTERS, binned } from "./charts.js";
import { CurveChart } from "./curves.js";
import { BARS, COLORS, DASHES, LABELS, accuracyKeys } from "./palette.js";
import { NetworkSections } from "./network.js";
import { trainAgainButton } from "./training.js";

/** A pane that shows one run at a time; two of them stand side by side. */
export class Pane {
  constructor(name, page) {
    this.name = name; // "cell" or "beside": which part of the state it shows
    this.page = page; // { legend, allowTrain, keepBeside }
    this.root = element("article", { class: "pane", "aria-label": name === "cell" ? "Chosen cell" : "Cell beside" });
    this.shown = "";
  }

  clear() {
    this.shown = "";
    replace(this.root);
  }

  /** A cell of a diagram: a run of one of its seeds, or words about why there is none. */
  async showCell(cell, { fresh = false } = {}) {
    const seedName = this.name === "cell" ? "seed" : "beside_seed";
    const seed = Math.min(Number(readState()[seedName] ?? 0) || 0, cell.runs.length - 1);
    const seeds = cell.runs.length > 1
      ? element("div", { class: "seeds", role: "group", "aria-label": "Seeds" }, cell.runs.map((_, i) =>
        element("button", { type: "button", "aria-pressed": String(i === seed), onclick: () => changeState({ [seedName]: i }) },
          `seed ${i}: ${this.page.legend.get(cell.seeds[i])?.label ?? cell.seeds[i] ?? "not run"}`)))
      : null;
    const inferred = cell.source === "inferred"
      ? `Not run: the cells around it agree, so it is taken to be ${this.page.legend.get(cell.outcome)?.label}.` : null;
    const outcome = inferred ? cell.outcome : null;
    await this.showRun(cell.runs[seed], { place: cell.place, seeds, inferred, outcome, state: cell.seeds[seed], fresh });
  }

  async showRun(runId, { place = null, seeds = null, inferred = null, outcome = null, state = "", fresh = false } = {}) {
    const key = `${runId} ${place} ${state}`;
    if (key === this.shown && !fresh) return;
    this.shown = key;
    let view;
    try {
      view = await get(`/api/runs/${runId}`);
    } catch (problem) {
      view = { run_id: runId, state: "missing", words: problem.message, curve: {}, events: [], own_code: [], ipr_history: [] };
    }
    if (this.shown !== key) return; // another cell was chosen in the meantime
    const phase = this.page.legend.get(view.phase ?? outcome ?? (view.state === "diverged" ? "diverged" : ""));
    const heading = element("h2", {},
      element("span", { class: "chip", style: phase ? `--chip: ${phase.color}` : "" }, phase ? phase.label + (outcome ? " (inferred)" : "") : view.state),
      place ?? `run ${view.run_id.slice(0, 8)}`);
    const tools = element("div", { class: "tools" }, seeds,
      this.name === "cell" && place
        ? element("button", { type: "button", onclick: () => this.page.keepBeside(readState().cell) }, "Keep beside")
        : null,
      this.name === "beside"
        ? element("button", { type: "button", onclick: () => changeState({ beside: null, beside_panel: null, beside_seed: null }) }, "Close")
        : null);
    const words = inferred && view.state === "missing" ? inferred : view.words;
    replace(this.root, heading, tools,
      calledAndTagged(view) ? element("p", {}, element("b", {}, calledAndTagged(view))) : null,
      view.note ? element("p", { class: "note" }, view.note) : null,
      element("p", { class: view.state === "damaged" || view.state === "failed" ? "problem" : "" }, words),
      view.settings ? element("p", { class: "quiet" }, `${view.settings} · run ${view.run_id}`
        + (view.finished_at ? ` · ${whenInWords(view.finished_at)}` : "")
        + (view.seconds ? ` · trained in ${view.seconds} s (${view.engine})` : "")) : null,
      view.traceback ? section("Traceback", element("pre", {}, view.traceback)) : null);
    if (view.curve.step) this.root.append(curves(view));
    if (view.neurons) this.root.append(histogram(view, this.page));
    if (["finished"].includes(view.state)) this.network(view, key);
    if (view.spec) this.root.append(specs(view.spec));
    if (view.state === "missing" && !isReport()) this.root.append(howToRun());
  }

  network(view, key) {
    const holder = element("div", {});
    this.root.append(holder);
    if (view.own_code.length) {
      replace(holder, section("Neurons, pruning, logits, audit", element("p", { class: "quiet" },
        `This run uses code of its own (${view.own_code.join(", ")}), which is not imported for a look at a store. `
        + `On the command line: grokscope prune ${view.run_id.slice(0, 8)}`)));
    } else if (!view.has_weights) {
      replace(holder, section("Neurons, pruning, logits, audit", withoutWeights(view, this.page)));
    } else {
      replace(holder, section("Neurons, pruning, logits, audit", element("p", { class: "quiet" }, "Taking it apart…")));
      get(`/api/runs/${view.run_id}/network`).then((network) => {
        if (this.shown === key) new NetworkSections(holder, view, network, this.name).show();
      }).catch((problem) => {
        if (this.shown === key) {
          replace(holder, section("Neurons, pruning, logits, audit", element("p", { class: "quiet" }, problem.message)));
        }
      });
    }
  }
}

export function section(title, ...content) {
  return element("details", { open: true }, element("summary", {}, title), ...content);
}

function withoutWeights(view, page) {
  const again = secondsInWords(view.seconds ?? 0);
  const box = element("div", {}, element("p", {}, "This needs the network's weights, which were not kept."));
  if (page.allowTrain) {
    box.append(trainAgainButton(view.run_id, `Train it again with weights (${again})`));
  } else {
    box.append(element("p", { class: "quiet" }, isReport()
      ? "A report cannot train. With the store: "
      : `This page only reads. Training again takes ${again}: start grokscope explore with --allow-train, or run `,
    element("code", {}, `${view.spec.command} --save-weights`)));
  }
  return box;
}

function howToRun() {
  const sweep = readState().sweep;
  return element("p", { class: "quiet" }, "To run what is missing: ", element("code", {}, `grokscope sweep ${sweep ?? "…"}`));
}

function curves(view) {
  const steps = view.curve.step;
  const chart = element("div", { class: "chart plain" });
  const names = Object.keys(COLORS).filter((name) => view.curve[name]?.some((value) => value !== null));
  const lines = names.map((name) => ({ label: LABELS[name], color: COLORS[name], dashed: name in DASHES, values: view.curve[name] }));
  const happened = view.events.filter((event) => event.step !== null);
  new CurveChart(chart, steps, lines, happened,
    `Accuracies over ${steps.at(-1)} steps. ${happened.map((event) => event.words).join("; ")}`);
  return section("Curves", keys(accuracyKeys(names)), chart,
    element("ul", { class: "events" }, view.events.map((event) =>
      element("li", { class: event.step === null ? "quiet" : "" }, event.words))));
}

function histogram(view, page) {
  const chart = element("div", { class: "chart low" });
  const { ipr, what } = view.neurons;
  const live = ipr.filter((value) => value !== null);
  const dead = ipr.length - live.length;
  const mean = live.reduce((sum, value) => sum + value, 0) / Math.max(1, live.length);
  const note = element("p", { class: "quiet" });
  const show = (counts, words) => {
    draw(chart, [{ type: "bar", x: BIN_CENTERS, y: counts, marker: { color: BARS }, hovertemplate: "%{y} with IPR near %{x:.2f}<extra></extra>" }],
      { xaxis: { title: { text: "IPR" }, range: [0, 1] }, yaxis: { title: { text: what } }, bargap: 0.05 },
      `Histogram of the IPR of ${ipr.length} ${what}`);
    note.textContent = words;
  };
  const final = () => show(binned(ipr), `${ipr.length} ${what}, mean IPR ${mean.toFixed(3)}${dead ? `, ${dead} dead` : ""}, at the end`);
  const holder = section("IPR", chart, note);
  whenVisible(chart, final);
  holder.append(view.ipr_history.length ? stepSlider(view, show, final) : withoutHistory(view, page));
  return holder;
}

function stepSlider(view, show, final) {
  const last = view.ipr_history.length - 1;
  const slider = element("input", { type: "range", min: 0, max: last, value: last, id: `step-${view.run_id}` });
  slider.addEventListener("input", () => {
    const at = Number(slider.value);
    slider.setAttribute("aria-valuetext", `step ${view.curve.step[at]}`);
    if (at === last) final();
    else show(view.ipr_history[at], `at step ${view.curve.step[at]}`);
  });
  return element("label", { for: slider.id, class: "wide" }, "Training step ", slider);
}

function withoutHistory(view, page) {
  const holder = element("div", {}, element("p", { class: "quiet" }, "An older release stored this run, without the IPR on the way."));
  if (page.allowTrain && !view.own_code.length) {
    holder.append(trainAgainButton(view.run_id, `Train it again to see it (${secondsInWords(view.seconds ?? 0)})`));
  }
  return holder;
}

function specs(spec) {
  const shown = element("pre", { tabindex: "0" }, spec.command);
  const names = { command: "Command", toml: "TOML", python: "Python" };
  const buttons = Object.entries(names).map(([name, words]) => element("button", {
    type: "button", "aria-pressed": String(name === "command"),
    onclick: (event) => {
      shown.textContent = spec[name];
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(button === event.target)));
    },
  }, words));
  return section("This run, to copy", element("div", { class: "tools" }, buttons, copyButton(() => shown.textContent)), shown);
}

/** Draw once the element is in the page, because plotly needs its size, and after what the page can show at once. */
export function whenVisible(target, action) {
  requestAnimationFrame(() => setTimeout(() => { if (target.isConnected) action(); }));
}
