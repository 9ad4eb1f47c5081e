// The data: asked from the server, or in a report embedded in the page. Both have the same shapes, by the same paths.

import { calledAndTagged } from "./dom.js";

let embedded = null;

/** Unpack what a report carries; nothing to do where there is a server. */
export async function prepareData() {
  const holder = document.getElementById("report-data");
  if (!holder) return;
  const bytes = Uint8Array.from(atob(holder.textContent.trim()), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  embedded = JSON.parse(await new Response(unpacked).text());
}

export function isReport() {
  return embedded !== null;
}

const expected = new Map();

/** Ask now for what will be needed soon. */
export function expect(path) {
  const answer = fetch(path);
  answer.catch(() => {}); // who needs the answer says what is wrong
  expected.set(path, answer);
}

export async function get(path) {
  if (expected.has(path)) {
    const response = expected.get(path);
    expected.delete(path);
    return answered(await response);
  }
  if (embedded) {
    if (path in embedded) return embedded[path];
    throw new Error("This is not in the report. `grokscope explore` shows it from the store.");
  }
  return answered(await fetch(path));
}

export async function post(path, body = {}) {
  const headers = { "content-type": "application/json" };
  return answered(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function answered(response) {
  const content = await response.json().catch(() => null);
  if (response.ok) return content;
  const detail = content?.detail;
  throw new Error(typeof detail === "string" ? detail : `The server answered ${response.status}.`);
}

/** Where the picture of a figure is. */
export function pictureOf(figure) {
  const path = `/api/figures/${figure}/picture`;
  return embedded ? embedded[path] : path;
}

/** Runs that match a search, in a report too. */
export async function searchRuns(search, offset) {
  if (!embedded) return get(`/api/runs?search=${encodeURIComponent(search)}&limit=50&offset=${offset}`);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const all = embedded["/api/runs"].runs;
  const found = all.filter((run) => {
    const text = `${run.run_id} ${run.outcome} ${run.words} ${calledAndTagged(run)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return { total: found.length, offset, runs: found.slice(offset, offset + 50) };
}
