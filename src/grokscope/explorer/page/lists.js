// The first page: all sweeps and runs, newest first.

import { calledAndTagged, element, percent, replace, whenInWords } from "./dom.js";
import { get, searchRuns } from "./api.js";
import { addressOf, changeState, readState } from "./state.js";

/** Draw the lists; returns what to do when the store has changed. */
export async function showLists(main, legend) {
  const sweeps = element("ul", { class: "cards", "aria-label": "Sweeps" });
  const runs = element("div", { class: "rows" });
  const search = element("input", {
    type: "search", id: "search", placeholder: "id, phase, word, or task.corruption>=0.3",
    value: readState().search ?? "", autocomplete: "off",
  });
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      changeState({ search: search.value || null });
      listSweeps(sweeps, search.value);
      listRuns(runs, legend, search.value, 0);
    }, 200);
  });
  replace(main,
    element("section", {}, element("label", { for: "search", class: "unseen" }, "Search sweeps and runs"), search),
    element("section", { "aria-labelledby": "sweeps-title" }, element("h2", { id: "sweeps-title" }, "Sweeps"), sweeps),
    element("section", { "aria-labelledby": "runs-title" }, element("h2", { id: "runs-title" }, "Runs"), runs));
  const refresh = async () => {
    await Promise.all([listSweeps(sweeps, search.value), listRuns(runs, legend, search.value, 0)]);
  };
  await refresh();
  return refresh;
}

/** Sweeps with all words of the search in their name or axes; conditions are for runs. */
async function listSweeps(list, search) {
  const { sweeps } = await get("/api/sweeps");
  const words = search.toLowerCase().split(/\s+/).filter((word) => word && !/[=<>]/.test(word));
  const found = sweeps.filter((sweep) => words.every((word) => `${sweep.name} ${sweep.axes}`.toLowerCase().includes(word)));
  replace(list, found.length ? found.map(sweepCard) : element("li", { class: "quiet" },
    sweeps.length ? "No sweep has this in its name or axes." : "No sweep yet: `grokscope sweep fig3a --grid 5x5` makes one."));
}

function sweepCard(sweep) {
  if (sweep.damaged) {
    return element("li", { class: "card damaged" }, element("b", {}, sweep.name),
      element("p", {}, "Damaged in the store; `grokscope store check --repair` mends it."));
  }
  return element("li", {}, element("a", { class: "card", href: addressOf({ sweep: sweep.name }) },
    element("b", {}, sweep.name),
    element("span", { class: "quiet" }, sweep.axes),
    element("progress", { max: sweep.cells, value: sweep.done, "aria-label": "runs done" }),
    element("span", { class: "quiet" }, `${sweep.done} of ${sweep.cells} run · ${whenInWords(sweep.started_at)}`)));
}

async function listRuns(target, legend, search, offset) {
  const found = await searchRuns(search, offset);
  if (found.problem) {
    replace(target, element("p", { class: "problem", role: "alert" }, found.problem));
    return;
  }
  const more = offset + found.runs.length < found.total;
  const rows = element("ul", { class: "runs", "aria-label": "Runs" }, found.runs.map((run) => runRow(run, legend)));
  const note = element("p", { class: "quiet" }, `${found.total.toLocaleString()} runs`);
  const step = (words, to) => element("button", { type: "button", onclick: () => listRuns(target, legend, search, to) }, words);
  replace(target, note, rows, element("p", {},
    offset ? step("Newer", Math.max(0, offset - 50)) : null, " ", more ? step("Older", offset + 50) : null));
}

function runRow(run, legend) {
  const outcome = legend.get(run.outcome);
  return element("li", {}, element("a", { href: addressOf({ run: run.run_id }), class: run.damaged ? "damaged" : "" },
    element("code", {}, run.run_id.slice(0, 8)),
    element("span", { class: "chip", style: outcome ? `--chip: ${outcome.color}` : "" }, outcome?.label ?? "Damaged"),
    element("span", { class: "settings" }, element("b", {}, calledAndTagged(run)), " ", run.words),
    element("span", { class: "quiet" }, `train ${percent(run.train_accuracy)}, test ${percent(run.test_accuracy)}`),
    element("span", { class: "quiet" }, whenInWords(run.finished_at))));
}
