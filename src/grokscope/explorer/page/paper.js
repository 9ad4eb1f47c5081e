// The ledger of claims and the gallery, each linked to its runs.

import { element, replace } from "./dom.js";
import { get, isReport, pictureOf } from "./api.js";
import { addressOf, readState } from "./state.js";

const KINDS = {
  claims: {
    title: "Claims", hint: "What the paper says. Open one, and the runs of this store say whether it holds.",
    inReport: "What the paper says about these diagrams, and whether it holds.",
  },
  gallery: {
    title: "Gallery", hint: "The paper's figures and what goes beyond them. Open one, and it is drawn from the runs of this store.",
    inReport: "The figures that these diagrams make.",
  },
};

/** A list, and beside it the claim or figure that is open. */
export async function showPaper(main, kind) {
  const { items } = await get(kind === "claims" ? "/api/claims" : "/api/figures");
  const detail = element("article", { class: "pane", "aria-live": "polite", "aria-label": "What is open" });
  const list = element("ul", { class: "runs plain", "aria-label": KINDS[kind].title }, items.map((item) => element("li", {},
    element("a", { href: addressOf({ view: kind, item: item.name }), title: item.where },
      element("b", {}, item.name), element("span", { class: item.unavailable ? "quiet" : "" }, item.title),
      kind === "claims" ? element("span", { class: "verdict", "data-claim": item.name }) : null))));
  const all = kind === "claims" ? measureAll(items, list) : null;
  replace(main, element("div", { class: "paper" },
    element("section", {}, element("h1", {}, KINDS[kind].title), element("p", { class: "quiet" }, isReport() ? KINDS[kind].inReport : KINDS[kind].hint), all, list), detail));
  const update = async () => {
    const item = items.find((one) => one.name === readState().item);
    if (!item || item.unavailable) {
      replace(detail, element("p", { class: "quiet" }, item ? `${item.name} cannot be made: ${item.unavailable}` : "Nothing is open."));
      return;
    }
    replace(detail, element("p", { class: "quiet" }, "Looking at the runs…"));
    let content;
    try {
      content = kind === "claims" ? claimContent(await get(`/api/claims/${item.name}`)) : figureContent(await get(`/api/figures/${item.name}`));
    } catch (problem) {
      content = [element("p", { class: "problem" }, problem.message)];
    }
    if (readState().item === item.name) replace(detail, content);
  };
  await update();
  return update;
}

/** A button that measures every claim, one after the other: each may take a moment. */
function measureAll(items, list) {
  const button = element("button", {
    type: "button",
    onclick: async () => {
      button.disabled = true;
      const counts = {};
      for (const [place, { name }] of items.entries()) {
        if (!button.isConnected) return;
        const verdict = await get(`/api/claims/${name}`).then((claim) => claim.verdict).catch((problem) => problem.message);
        counts[verdict] = (counts[verdict] ?? 0) + 1;
        const shown = list.querySelector(`[data-claim="${name}"]`);
        shown.textContent = verdict;
        shown.classList.add(verdict.replaceAll(" ", "-"));
        button.textContent = `${place + 1} of ${items.length}: ${Object.entries(counts).map(([words, count]) => `${count} ${words}`).join(", ")}`;
      }
    },
  }, "Measure all on the runs that are there");
  return button;
}

function claimContent(claim) {
  return [
    element("h2", {}, `${claim.name}: ${claim.verdict}`),
    element("p", {}, claim.statement),
    element("p", { class: "quiet" }, `${claim.where}, `, element("a", { href: addressOf({ view: "gallery", item: claim.figure }) }, claim.figure), `, at the ${claim.scale} scale`),
    claim.missing ? element("p", { class: "quiet" }, `${claim.missing} runs are missing; `, element("code", {}, `grokscope claims --only ${claim.name} --scale ${claim.scale}`), " does them.") : null,
    element("ul", {}, claim.checks.map((check) => element("li", {}, check.words))),
    claim.note ? element("p", {}, claim.note) : null,
    runLinks(claim),
  ];
}

function figureContent(figure) {
  const picture = figure.missing
    ? element("p", { class: "quiet" }, `${figure.missing} runs are missing; `, element("code", {}, figure.command), " does them and draws it.")
    : element("img", { src: pictureOf(figure.name), alt: figure.caption, class: "figure" });
  return [
    element("h2", {}, `${figure.name}: ${figure.title}`), picture, element("p", {}, figure.caption),
    figure.claims.length ? element("p", {}, "Claims: ", figure.claims.flatMap((name) => [element("a", { href: addressOf({ view: "claims", item: name }) }, name), " "])) : null,
    runLinks(figure),
  ];
}

function runLinks({ sweeps, runs }) {
  const links = [
    ...sweeps.map((name) => element("a", { href: addressOf({ sweep: name }) }, name)),
    ...runs.map((runId) => element("a", { href: addressOf({ run: runId }) }, element("code", {}, runId.slice(0, 8)))),
  ];
  return links.length ? element("p", {}, "Its runs: ", links.flatMap((link) => [link, " "])) : null;
}
