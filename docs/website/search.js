// Search over INDEX: rows of [title of the page, heading, address, words]. Also folds the menu on small screens.
const input = document.getElementById("search");
const list = document.getElementById("found");
const MOST = 12;

if (matchMedia("(max-width: 60rem)").matches) document.getElementById("menu").open = false;

function score([title, heading, , words], terms) {
  const places = [heading, title, words].map((text) => text.toLowerCase());
  let total = 0;
  for (const term of terms) {
    const best = places.findIndex((text) => text.includes(term));
    if (best < 0) return 0;
    total += [9, 5, 1][best];
  }
  return total;
}

function show() {
  const terms = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = terms.length ? INDEX.map((row) => [score(row, terms), row]).filter(([points]) => points) : [];
  hits.sort((one, other) => other[0] - one[0]);
  list.replaceChildren(
    ...hits.slice(0, MOST).map(([, [title, heading, address]]) => {
      const link = document.createElement("a");
      link.href = `${ROOT}/${address}`;
      link.textContent = title === heading ? title : `${title}: ${heading}`;
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
  if (terms.length && !hits.length) list.textContent = "Nothing found";
  list.hidden = !terms.length;
}

input.addEventListener("input", show);
input.addEventListener("keydown", (event) => {
  if (event.key === "Enter") list.querySelector("a")?.click();
  if (event.key === "Escape") { input.value = ""; show(); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) { event.preventDefault(); input.focus(); }
});
