// Training from the page, where the server allows it.

import { element, keys, replace } from "./dom.js";
import { get, post } from "./api.js";
import { addressOf } from "./state.js";
import { draw, FRACTION } from "./charts.js";
import { COLORS, DASHES, LABELS, accuracyKeys } from "./palette.js";

const WAIT = 400; // milliseconds between two looks at a run on its way

/** A button that trains a run again and shows how it goes. */
export function trainAgainButton(runId, words, done = () => dispatchEvent(new Event("storechange"))) {
  const holder = element("div", {});
  const button = element("button", {
    type: "button",
    onclick: async () => {
      try {
        await post(`/api/runs/${runId}/train`);
        follow(runId, holder, done);
      } catch (problem) {
        replace(holder, element("p", { class: "problem", role: "alert" }, problem.message));
      }
    },
  }, words);
  holder.append(button);
  return holder;
}

/** Live curves, a button to stop, and what came out. */
async function follow(runId, holder, done) {
  const chart = element("div", { class: "chart" });
  const words = element("p", { role: "status" });
  const bar = element("progress", { max: 1, value: 0, "aria-label": "Training" });
  const stop = element("button", { type: "button", onclick: () => post(`/api/trainings/${runId}/stop`) }, "Stop");
  replace(holder, bar, " ", stop, words, keys(accuracyKeys(Object.keys(COLORS))), chart);
  for (;;) {
    let view;
    try {
      view = await get(`/api/trainings/${runId}`);
    } catch (problem) {
      words.textContent = problem.message;
      return;
    }
    if (!holder.isConnected) return;
    bar.max = view.steps;
    bar.value = view.step;
    words.textContent = view.state === "training" ? `step ${view.step} of ${view.steps}` : `${view.state}: ${view.words}`;
    if (view.curve.step.length) drawTraining(chart, view);
    if (!["waiting", "training"].includes(view.state)) {
      stop.remove();
      if (view.state === "stored") done(runId);
      return;
    }
    await new Promise((resolve) => { setTimeout(resolve, WAIT); });
  }
}

function drawTraining(chart, view) {
  const names = Object.keys(COLORS).filter((name) => view.curve[name].some((value) => value !== null));
  draw(chart, names.map((name) => ({
    type: "scatter", mode: "lines", name: LABELS[name], x: view.curve.step, y: view.curve[name], line: { color: COLORS[name], dash: DASHES[name] ?? "solid" },
  })), { xaxis: { title: { text: "step" }, range: [0, view.steps] }, yaxis: FRACTION }, "Accuracies so far");
}

const FORM = [
  ["task.modulus", "modulus p", 31], ["task.data_fraction", "data fraction α", 0.5], ["task.corruption", "corruption ξ", 0.35],
  ["optimizer.weight_decay", "weight decay", 5], ["model.dropout", "dropout", 0], ["model.width", "width N", 200],
  ["training.steps", "steps", 1000], ["training.seed", "seed", 0],
];

/** The page that trains a new network. */
export function showTraining(main) {
  const inputs = FORM.map(([name, words, value]) => [name, words, element("input", { type: "number", step: "any", min: 0, name, value, required: true })]);
  const activation = element("select", { name: "model.activation" }, ["quadratic", "relu", "gelu"].map((one) => element("option", {}, one)));
  const outcome = element("div", {});
  const form = element("form", {
    class: "train",
    onsubmit: async (event) => {
      event.preventDefault();
      const fields = Object.fromEntries(inputs.map(([name, , input]) => [name, Number(input.value)]));
      try {
        const started = await post("/api/trainings", { ...fields, "model.activation": activation.value });
        follow(started.run_id, outcome, (runId) => outcome.append(element("p", {}, element("a", { href: addressOf({ run: runId }) }, "Look at this network"))));
      } catch (problem) {
        replace(outcome, element("p", { class: "problem", role: "alert" }, problem.message));
      }
    },
  }, inputs.map(([, words, input]) => element("label", {}, words, input)), element("label", {}, "activation φ", activation),
  element("button", { type: "submit" }, "Train"));
  replace(main, element("section", {}, element("h1", {}, "Train here"),
    element("p", { class: "quiet" }, "One run after the other; each lands in the store with its weights."), form, outcome));
}
