// News of the store: while a sweep runs anywhere on it, cells appear without reloading.

const PAUSE = 1500; // milliseconds between two looks, however much happens

export function listen(indicator, refresh) {
  const events = new EventSource("/api/events");
  let first = true;
  let waiting = false;
  events.addEventListener("message", async () => {
    indicator.textContent = "live";
    if (first || waiting) {
      first = false;
      return;
    }
    waiting = true;
    await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
    waiting = false;
    try { await refresh(); } catch { indicator.textContent = "not up to date"; }
  });
  events.addEventListener("error", () => { indicator.textContent = "not connected"; });
}
