// What is on the screen, kept in the address: a link brings back the view.

/** { sweep: "fig3a", panel: "1", cell: "3,4" } from #sweep=fig3a&panel=1&cell=3,4 */
export function readState() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** Change some of it; null removes. Without `push` the back button does not stop here. */
export function changeState(changes, { push = false } = {}) {
  const address = addressOf({ ...readState(), ...changes });
  if (address === location.hash) return;
  history[push ? "pushState" : "replaceState"](null, "", address);
  dispatchEvent(new Event("statechange"));
}

/** The address of a view. */
export function addressOf(state) {
  const kept = Object.entries(state).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(kept).toString().replaceAll("%2C", ",");
  return `#${query}`;
}

/** Where the data of a sweep are. */
export function pathOfSweep(name) {
  return `/api/sweeps/${encodeURIComponent(name)}`;
}

/** A cell "column,row" as numbers; null if there is none. */
export function placeFrom(text) {
  const match = /^(\d+),(\d+)$/.exec(text ?? "");
  return match ? [Number(match[1]), Number(match[2])] : null;
}
