// The explorer: reads the address, and shows what it says.

import { element, replace } from "./dom.js";
import { get, isReport, prepareData } from "./api.js";
import { pathOfSweep, placeFrom, readState } from "./state.js";
import { showLists } from "./lists.js";
import { Diagram } from "./diagram.js";
import { Pane } from "./cell.js";
import { plotlyLoaded } from "./charts.js";
import { showTraining } from "./training.js";
import { showPaper } from "./paper.js";
import { listen } from "./live.js";
import { prepareTheme } from "./theme.js";

const main = document.getElementById("main");
let page = null; // { store, legend, allowTrain }
let current = null; // what is shown: { name, refresh(), update(fresh) }

async function start() {
  prepareTheme(() => current?.redraw?.());
  await prepareData();
  const store = await get("/api/store");
  page = { store, legend: new Map(store.outcomes.map((one) => [one.name, one])), allowTrain: store.allow_train };
  document.getElementById("store-name").textContent = store.name;
  document.title = `${store.name} · grokscope`;
  const links = [["Sweeps and runs", ""], ["Claims", "view=claims"], ["Gallery", "view=gallery"],
    ...(page.allowTrain ? [["Train here", "view=train"]] : [])];
  replace(document.getElementById("nav"), links.map(([words, hash]) => element("a", { href: `#${hash}` }, words)));
  if (isReport()) document.getElementById("live").textContent = `report of ${store.made_at.slice(0, 10)}`;
  else listen(document.getElementById("live"), () => current?.refresh?.());
  addEventListener("hashchange", show);
  addEventListener("popstate", show);
  addEventListener("statechange", show);
  addEventListener("storechange", () => current?.refresh?.({ fresh: true }));
  await show();
}

/** What the address asks for; a part of the same view changes only that part. */
async function show() {
  const state = readState();
  const paper = ["claims", "gallery"].includes(state.view) ? state.view : null;
  const name = state.view === "train" && page.allowTrain ? "train" : paper ?? (state.sweep ? `sweep ${state.sweep}` : state.run ? "run" : "lists");
  try {
    if (current?.name === name) {
      await current.update?.();
      return;
    }
    current = { name };
    if (name === "train") showTraining(main);
    else if (name === "lists") current.refresh = await showLists(main, page.legend);
    else if (paper) current.update = await showPaper(main, paper);
    else if (name === "run") showRun();
    else await showSweep(state.sweep);
  } catch (problem) {
    current = null;
    replace(main, element("section", {}, element("p", { class: "problem", role: "alert" }, problem.message), element("a", { href: "#" }, "All sweeps and runs")));
  }
}

function showRun() {
  const pane = new Pane("run", page);
  replace(main, element("div", { class: "panes" }, pane.root));
  current.update = () => pane.showRun(readState().run);
  current.refresh = ({ fresh = false } = {}) => pane.showRun(readState().run, { fresh });
  current.redraw = () => current.refresh({ fresh: true });
  return current.update();
}

async function showSweep(name) {
  const mine = current;
  const path = pathOfSweep(name);
  const diagram = new Diagram(await get(path), page.store.outcomes);
  if (current !== mine) return;
  const withDiagram = { ...page, keepBeside: (cell) => diagram.keepBeside(cell) };
  const panes = { cell: new Pane("cell", withDiagram), beside: new Pane("beside", withDiagram) };
  const holder = element("div", { class: "panes" });
  replace(main, element("div", { class: "sweep" }, diagram.root, holder));
  const showPanes = async ({ fresh = false } = {}) => {
    const state = readState();
    const shown = Object.keys(panes).filter((one) => diagram.has(placeFrom(state[one])));
    if (!shown.length) replace(holder, element("p", { class: "quiet hint" }, "Click on a cell, or move with the arrow keys. Shift-click puts a second cell beside it."));
    else if (holder.children.length !== shown.length || shown.some((one) => !panes[one].root.isConnected)) replace(holder, shown.map((one) => panes[one].root));
    for (const one of Object.keys(panes)) if (!shown.includes(one)) panes[one].clear();
    const panel = { cell: diagram.panel, beside: diagram.besidePanel };
    await Promise.all(shown.map((one) => panes[one].showCell(diagram.cell(placeFrom(state[one]), panel[one]), { fresh })));
  };
  let before = "";
  current.update = async () => {
    const { panel, color, phase } = readState();
    const same = before === `${panel} ${color} ${phase}`;
    before = `${panel} ${color} ${phase}`;
    if (!same) diagram.showControls();
    await Promise.all([showPanes(), same ? diagram.showFrames() : diagram.show()]);
  };
  // A cell whose run has changed is drawn again; what somebody is reading stays as it is.
  current.refresh = async ({ fresh = false } = {}) => {
    await diagram.update(await get(path));
    await showPanes({ fresh });
  };
  current.redraw = async () => { await diagram.show(); await showPanes({ fresh: true }); };
  await current.update();
  requestAnimationFrame(() => setTimeout(plotlyLoaded)); // the map is on the screen; a cell will be wanted next
}

start().catch((problem) => replace(main, element("p", { class: "problem", role: "alert" }, problem.message)));
