// Light or dark: as the system says, until somebody chooses.

const STORED = "grokscope-theme";

export function prepareTheme(redraw) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const chosen = remembered();
    document.documentElement.dataset.theme = chosen ?? (system.matches ? "dark" : "light");
  };
  apply();
  system.addEventListener("change", () => { apply(); redraw(); });
  document.getElementById("theme").addEventListener("click", () => {
    remember(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    apply();
    redraw();
  });
}

// A page that was opened from disk may have no storage.
function remembered() {
  try { return localStorage.getItem(STORED); } catch { return null; }
}

function remember(theme) {
  try { localStorage.setItem(STORED, theme); } catch { document.documentElement.dataset.theme = theme; }
}
