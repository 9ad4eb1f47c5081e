// plotly.js in the colours of the page.

const BARE = { displayModeBar: false, responsive: true };

function themed(layout) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const line = style.getPropertyValue("--line").trim();
  const axis = (own) => ({ gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true, ...own });
  const axes = {};
  for (const [name, own] of Object.entries(layout)) if (/^[xy]axis\d*$/.test(name)) axes[name] = axis(own);
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: 12, family: "inherit" },
    margin: { l: 52, r: 12, t: 12, b: 42 },
    hoverlabel: { font: { family: "inherit" } },
    showlegend: false,
    ...layout,
    xaxis: axis(layout.xaxis),
    yaxis: axis(layout.yaxis),
    ...axes,
  };
}

let loading = null;

/** plotly.js takes a second to start, in which the page stands still: not before something needs it. */
export function plotlyLoaded() {
  loading ??= globalThis.Plotly ? Promise.resolve(globalThis.Plotly) : new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "plotly.js";
    script.addEventListener("load", () => resolve(globalThis.Plotly));
    script.addEventListener("error", () => reject(new Error("plotly.js could not be loaded")));
    document.head.append(script);
  });
  return loading;
}

/** Draw into an element, or change what is there. `words` is what a screen reader says. */
export async function draw(target, traces, layout, words) {
  if (words) {
    target.setAttribute("role", "img");
    target.setAttribute("aria-label", words);
  }
  const plotly = globalThis.Plotly ?? await plotlyLoaded();
  return plotly.react(target, traces, themed(layout), BARE);
}

// A chart that is not drawn yet needs no change: it will be drawn as things are then.

export function restyle(target, changes, traces) {
  if (target.data) globalThis.Plotly.restyle(target, changes, traces);
}

export function relayout(target, changes) {
  if (target.layout) globalThis.Plotly.relayout(target, changes);
}

export const FRACTION = { range: [-0.03, 1.03], tickformat: ".0%" };

/** A vertical line at x. */
export function mark(x, color, dash = "dot") {
  return { type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line: { color, dash, width: 1.5 } };
}

const BIN_COUNT = 50;

/** How many values lie in each of 50 bins from 0 to 1. */
export function binned(values, chosen = () => true) {
  const counts = new Array(BIN_COUNT).fill(0);
  values.forEach((value, i) => {
    if (value !== null && chosen(i)) counts[Math.min(BIN_COUNT - 1, Math.floor(value * BIN_COUNT))] += 1;
  });
  return counts;
}

export const BIN_CENTERS = Array.from({ length: BIN_COUNT }, (_, i) => (i + 0.5) / BIN_COUNT);
