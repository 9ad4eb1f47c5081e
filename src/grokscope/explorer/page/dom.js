// Elements. Text is always set as text, so nothing that a store says can become HTML.

/** element("p", { class: "quiet" }, "Nothing here") */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** The same in SVG. */
export function shape(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return parent;
}

/** Tell people who hear the page. */
export function announce(words) {
  document.getElementById("announcer").textContent = words;
}

/** The name and the tags of a run; "" if it has none. */
export function calledAndTagged(run) {
  return [run.name, ...(run.tags ?? []).map((tag) => `#${tag}`)].filter(Boolean).join(" ");
}

export function percent(value, digits = 1) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)} %`;
}

export function whenInWords(iso) {
  return iso ? new Date(iso).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "";
}

export function secondsInWords(seconds) {
  if (seconds < 1) return "less than a second";
  return seconds < 90 ? `about ${Math.round(seconds)} s` : `about ${Math.round(seconds / 60)} min`;
}

/** What the lines of a chart mean, as text: it wraps on a narrow screen. */
export function keys(entries) {
  return element("ul", { class: "keys", "aria-hidden": "true" }, entries.map(([words, color, dash]) =>
    element("li", {}, element("span", { style: `border-top-color: ${color}; border-top-style: ${dash === "dash" ? "dashed" : "solid"}` }), words)));
}

export function copyButton(text) {
  const button = element("button", { type: "button", class: "small" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy by hand";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return button;
}
