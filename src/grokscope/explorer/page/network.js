// A network with its weights: its neurons, what pruning leaves of it, its logits, and the labels it suspects.

import { element, keys, percent, replace } from "./dom.js";
import { get, isReport } from "./api.js";
import { changeState, readState } from "./state.js";
import { draw, mark, plotlyLoaded, relayout, restyle, FRACTION, BIN_CENTERS, binned } from "./charts.js";
import { BARS, COLORS, DASHES, GONE, LABELS, TRAINED, TRUTH, VECTORS, accuracyKeys } from "./palette.js";
import { section, whenVisible } from "./cell.js";

export class NetworkSections {
  constructor(holder, view, network, pane) {
    Object.assign(this, { holder, view, network, pane });
  }

  show() {
    const { neurons, phases, pruning, logits, audit } = this.network;
    replace(this.holder,
      neurons?.norm ? this.neurons(neurons) : null,
      phases ? this.phases(phases, neurons) : null,
      pruning.orders.length ? this.pruning(pruning, neurons) : section("Pruning", element("p", { class: "quiet" }, `Not for this network: ${pruning.unavailable}`)),
      this.logits(logits),
      this.audit(audit));
  }

  neurons(neurons) {
    const chart = element("div", { class: "chart" });
    const detail = element("div", { class: "neuron", "aria-live": "polite" });
    const words = neurons.ipr.map((ipr, i) => `neuron ${i}: IPR ${ipr?.toFixed(3) ?? "–"}, frequency ${neurons.frequency[i] ?? "mixed"}`);
    const choose = element("input", { type: "number", min: 0, max: neurons.ipr.length - 1, step: 1, id: `neuron-${this.pane}` });
    choose.addEventListener("change", () => this.neuron(Number(choose.value), detail));
    const holder = section("Neurons", chart, element("label", { for: choose.id }, "Neuron "), choose, detail);
    this.open = (index) => this.neuron(index, detail);
    const places = neurons.ipr.map((_, i) => i);
    const trace = (chosen, marker) => ({
      type: "scatter", mode: "markers", x: chosen.map((i) => neurons.ipr[i]), y: chosen.map((i) => neurons.norm[i]),
      text: chosen.map((i) => words[i]), customdata: chosen, hovertemplate: "%{text}<extra></extra>", marker: { size: 6, opacity: 0.75, ...marker },
    });
    const pure = places.filter((i) => neurons.frequency[i] !== null);
    whenVisible(chart, async () => {
      await draw(chart, [
        trace(places.filter((i) => neurons.frequency[i] === null), { color: GONE }),
        trace(pure, { color: pure.map((i) => neurons.frequency[i]), colorscale: "Viridis", showscale: pure.length > 0, colorbar: { title: { text: "frequency (grey: mixed)", side: "right" }, thickness: 10 } }),
      ], { xaxis: { title: { text: "IPR" }, range: [-0.02, 1.02] }, yaxis: { title: { text: "norm of its weights" } }, hovermode: "closest" },
      `${neurons.ipr.length} ${neurons.what}, each a point of IPR and norm`);
      chart.on("plotly_click", ({ points }) => this.open(points[0].customdata));
      const wanted = readState().neuron;
      if (wanted && this.pane === "cell") this.neuron(Number(wanted), detail);
    });
    return holder;
  }

  /** In the analytic solution the phases of the input make that of the output: all points on the diagonal. */
  phases(phases, neurons) {
    if (phases.unavailable) return section("Phases", element("p", { class: "quiet" }, phases.unavailable));
    const chart = element("div", { class: "chart" });
    const input = phases.relation.replace(/ − φ_w$/, "");
    const known = phases.output.map((_, i) => i).filter((i) => phases.output[i] !== null && phases.input_sum[i] !== null);
    const words = phases.periodic
      ? `${phases.periodic} periodic neurons: |${phases.relation}| is ${phases.mean_residual.toFixed(3)} on average (π/2 ≈ 1.571 would be chance, 0 is Equation 2).`
      : "No neuron is periodic, so the phases mean little.";
    whenVisible(chart, async () => {
      const range = [-3.3, 3.3];
      await draw(chart, [
        { type: "scatter", mode: "lines", x: [-Math.PI, Math.PI], y: [-Math.PI, Math.PI], line: { color: GONE, dash: "dot" }, hoverinfo: "skip" },
        {
          type: "scatter", mode: "markers", x: known.map((i) => phases.input_sum[i]), y: known.map((i) => phases.output[i]), customdata: known,
          text: known.map((i) => `neuron ${i}: IPR ${neurons.ipr[i]?.toFixed(3) ?? "–"}`), hovertemplate: "%{text}<extra></extra>",
          marker: { size: 6, opacity: 0.8, color: known.map((i) => neurons.ipr[i]), colorscale: "Viridis", cmin: 0, cmax: 1, showscale: true, colorbar: { title: { text: "IPR", side: "right" }, thickness: 10 } },
        },
      ], { xaxis: { title: { text: input }, range }, yaxis: { title: { text: "φ_w" }, range }, hovermode: "closest" },
      `Phases of ${known.length} neurons. ${words}`);
      chart.on("plotly_click", ({ points }) => { if (points[0].customdata !== undefined) this.open?.(points[0].customdata); });
    });
    return section("Phases", element("p", {}, words), chart);
  }

  async neuron(index, detail) {
    let neuron;
    try {
      neuron = await get(`/api/runs/${this.view.run_id}/neurons/${index}`);
    } catch (problem) {
      replace(detail, element("p", { class: "quiet" }, problem.message));
      return;
    }
    if (this.pane === "cell") changeState({ neuron: index });
    const rows = element("div", { class: "chart" });
    const spectra = element("div", { class: "chart low" });
    const angles = neuron.vectors.filter((vector) => vector.phase !== null).map((vector) => `φ_${vector.name.toLowerCase()} ${vector.phase.toFixed(2)}`);
    const relation = this.network.phases?.relation;
    if (neuron.residual !== null && relation) angles.push(`${relation} = ${neuron.residual.toFixed(3)}`);
    replace(detail, element("h3", {}, `Neuron ${index}, IPR ${neuron.ipr?.toFixed(3) ?? "– (dead)"}`),
      element("p", { class: "quiet" }, neuron.wave === null ? "" : `strongest frequency ${neuron.wave}${angles.length ? `: ${angles.join(", ")}` : ""}`),
      keys(neuron.vectors.map((vector, i) => [vector.name, VECTORS[i]])), rows, spectra);
    const colored = (own) => neuron.vectors.map((vector, i) => ({ name: vector.name, ...own(vector), marker: { color: VECTORS[i] }, line: { color: VECTORS[i], width: 1.5 } }));
    draw(rows, colored((vector) => ({ type: "scatter", mode: "lines", y: vector.values })),
      { xaxis: { title: { text: "token or label" } }, yaxis: { title: { text: "weight" } } },
      `Weights of neuron ${index}`);
    draw(spectra, colored((vector) => ({ type: "bar", x: neuron.frequency, y: vector.amplitude })).map(({ line, ...trace }) => trace),
      { xaxis: { title: { text: "frequency" }, type: "category", nticks: 12 }, yaxis: { title: { text: "amplitude" } }, barmode: "group" },
      `Spectra of neuron ${index}`);
  }

  pruning(pruning, neurons) {
    const chart = element("div", { class: "chart" });
    const bars = element("div", { class: "chart low" });
    const readout = element("output", { class: "readout", for: `pruned-${this.pane}` });
    const count = pruning.orders[0].order.length;
    const slider = element("input", { type: "range", min: 0, max: count, value: 0, id: `pruned-${this.pane}` });
    let order = pruning.orders[0];
    const names = Object.keys(COLORS);
    const shown = names.filter((name) => order[name].some((value) => value !== null));
    const state = () => {
      const pruned = Number(slider.value);
      const gone = new Set(order.order.slice(0, pruned));
      return { pruned, gone };
    };
    const curves = () => draw(chart, shown.map((name) => ({
      type: "scatter", mode: "lines", name: LABELS[name], y: order[name], line: { color: COLORS[name], dash: DASHES[name] ?? "solid", width: 2 },
      hovertemplate: `${LABELS[name]} %{y:.1%} without %{x}<extra></extra>`,
    })), {
      xaxis: { title: { text: `neurons pruned, ${order.label}` } }, yaxis: { ...FRACTION, title: { text: "accuracy" } }, shapes: [mark(Number(slider.value), "#888", "solid")],
    }, `Accuracies as neurons are pruned, ${order.label}`);
    const histogram = () => {
      const { gone } = state();
      draw(bars, [
        { type: "bar", x: BIN_CENTERS, y: binned(neurons.ipr, (i) => !gone.has(i)), marker: { color: BARS }, name: "kept" },
        { type: "bar", x: BIN_CENTERS, y: binned(neurons.ipr, (i) => gone.has(i)), marker: { color: GONE }, name: "pruned" },
      ], { barmode: "stack", bargap: 0.05, xaxis: { title: { text: "IPR" }, range: [0, 1] }, yaxis: { title: { text: "neurons" } } },
      "Histogram of the IPR of kept and pruned neurons");
    };
    const tell = () => {
      const { pruned } = state();
      readout.textContent = `${pruned} of ${count} pruned: ` + shown.map((name) => `${LABELS[name]} ${percent(order[name][pruned])}`).join(", ");
    };
    // Only what changes: a line and the heights of bars, so that the slider never lags.
    slider.addEventListener("input", () => {
      const { pruned, gone } = state();
      tell();
      relayout(chart, { "shapes[0].x0": pruned, "shapes[0].x1": pruned });
      if (neurons) restyle(bars, { y: [binned(neurons.ipr, (i) => !gone.has(i)), binned(neurons.ipr, (i) => gone.has(i))] }, [0, 1]);
    });
    const choice = element("select", {
      "aria-label": "Order of pruning",
      onchange: (event) => { order = pruning.orders[Number(event.target.value)]; curves(); if (neurons) histogram(); tell(); },
    }, pruning.orders.map((one, i) => element("option", { value: i }, one.label)));
    const holder = section("Pruning", element("label", {}, "Order ", choice),
      element("label", { for: slider.id, class: "wide" }, "Prune this many ", slider), readout, keys(accuracyKeys(shown)), chart, neurons ? bars : null);
    whenVisible(chart, async () => {
      await plotlyLoaded(); // before the state is read: the slider may move meanwhile
      curves();
      if (neurons) histogram();
    });
    tell();
    return holder;
  }

  logits(logits) {
    const margins = element("div", { class: "chart low" });
    const chart = element("div", { class: "chart low" });
    const words = element("p", {});
    const named = { corrupted: TRAINED, clean: "#56B4E9", test: COLORS.test_accuracy };
    chart.hidden = true; // until there is something to show
    const show = (example) => {
      chart.hidden = false;
      const colors = example.logits.map((_, label) => (label === example.truth ? TRUTH : label === example.label ? TRAINED : GONE));
      draw(chart, [{ type: "bar", y: example.logits, marker: { color: colors }, hovertemplate: "label %{x}: %{y:.3f}<extra></extra>" }],
        { xaxis: { title: { text: "label" } }, yaxis: { title: { text: "logit" } }, bargap: 0.1 }, "Logits of a corrupted example");
      const answer = example.predicted === example.truth ? "the truth" : example.predicted === example.label ? "what it was trained on" : "neither";
      const seen = { test: "not in the training set", clean: "a clean training example", corrupted: `trained on ${example.label} (pink)` }[example.part];
      words.textContent = `(${example.inputs.join(", ")}): truth ${example.truth} (green), ${seen}, answers ${example.predicted}, ${answer}.`;
    };
    const choice = element("select", { "aria-label": "Corrupted example", onchange: (event) => show(logits.examples[Number(event.target.value)]) },
      logits.examples.map((example, i) => element("option", { value: i }, `(${example.inputs.join(", ")}) → ${example.label}`)));
    const holder = section("Logits",
      logits.examples.length ? element("label", {}, "Corrupted example ", choice) : element("p", { class: "quiet" }, "No label is corrupted."),
      isReport() ? null : this.anyExample(logits, show, words), words, chart,
      element("p", { class: "quiet" }, "How far the true label is ahead (right of 0 the rule wins): "
        + Object.entries(logits.won).filter(([, won]) => won !== null).map(([part, won]) => `${part} ${percent(won)}`).join(", ")),
      keys(Object.entries(named)), margins);
    const centers = logits.edges.slice(1).map((edge, i) => (edge + logits.edges[i]) / 2);
    whenVisible(margins, () => {
      if (logits.examples.length) show(logits.examples[0]);
      draw(margins, Object.entries(logits.margins).filter(([, counts]) => counts.some(Boolean)).map(([part, counts]) => {
        const total = counts.reduce((sum, value) => sum + value, 0);
        return { type: "scatter", mode: "lines", line: { shape: "hvh", color: named[part] }, name: part, x: centers, y: counts.map((value) => value / total) };
      }), { xaxis: { title: { text: "margin of the true label" } }, yaxis: { title: { text: "share" } } },
      "Margins of the true label");
    });
    return holder;
  }

  /** A form for the logits of any example of the task. */
  anyExample(logits, show, words) {
    const inputs = logits.symbols.map((symbols, i) => element("input", {
      type: "number", min: 0, max: symbols - 1, step: 1, required: true, value: 0, class: "narrow", "aria-label": `Input ${i + 1} of ${logits.symbols.length}`,
    }));
    return element("form", {
      class: "tools",
      onsubmit: async (event) => {
        event.preventDefault();
        const query = inputs.map((input) => `inputs=${Number(input.value)}`).join("&");
        try {
          show(await get(`/api/runs/${this.view.run_id}/examples?${query}`));
        } catch (problem) {
          words.textContent = problem.message;
        }
      },
    }, "or any example", inputs, element("button", { type: "submit", class: "small" }, "Show"));
  }

  audit(audit) {
    const head = ["", "example", "label", "its answer", "truth", "score"].map((words) => element("th", { scope: "col" }, words));
    const rows = audit.suspects.map((one, i) => element("tr", {},
      element("td", {}, String(i + 1)), element("td", {}, `(${one.inputs.join(", ")})`), element("td", {}, String(one.label)),
      element("td", {}, String(one.predicted)), element("td", {}, String(one.truth)), element("td", {}, one.score.toFixed(3)),
      element("td", {}, one.label === one.truth ? "right after all" : "wrong")));
    return section("Suspicious labels",
      element("p", {}, `${audit.words} Ranked by ${audit.ranked_by}${audit.auroc === null ? "" : `, AUROC ${audit.auroc.toFixed(3)}`}; the first ${rows.length}:`),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Suspicious labels" },
        element("table", {}, element("thead", {}, element("tr", {}, head, element("th", { scope: "col" }, "in truth"))), element("tbody", {}, rows))));
  }
}
