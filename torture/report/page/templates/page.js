"use strict";
// What is filtered, sorted and opened stands behind the address's #, so that a link shows the same.
(() => {
  const form = document.getElementById("filters");
  const rows = [...document.querySelectorAll("#cells tbody tr")];
  const fields = [...form.elements].filter((field) => field.name);
  const marked = [...document.querySelectorAll("[data-cell]")];

  const state = () => new URLSearchParams(location.hash.slice(1));
  const keep = (changes) => {
    const next = state();
    for (const [key, value] of Object.entries(changes)) {
      if (value) next.set(key, value); else next.delete(key);
    }
    history.replaceState(null, "", "#" + next.toString());
    show();
  };

  const matches = (row) => fields.every((field) => {
    if (!field.value) return true;
    if (field.name !== "q") return row.getAttribute("data-axis-" + field.name) === field.value;
    const text = row.textContent.toLowerCase();
    return field.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  });

  const filter = () => {
    const shown = new Set(rows.filter(matches).map((row) => row.dataset.cell));
    for (const element of marked) {
      const gone = !shown.has(element.dataset.cell) && !shown.has(element.dataset.other);
      // a field of the matrix keeps its place
      if (element.matches(".heat td")) element.style.opacity = gone ? "0.15" : "";
      else element.hidden = gone;
    }
    form.querySelector("output").textContent = shown.size < rows.length ? `${shown.size} of ${rows.length}` : "";
  };

  const sort = (table, key, direction) => {
    const headings = [...table.querySelectorAll("th")];
    const place = headings.findIndex((heading) => heading.querySelector("button")?.dataset.key === key);
    if (place < 0) return;
    const isNumber = headings[place].querySelector("button").dataset.kind === "number";
    const value = (row) => row.cells[place].dataset.value;
    const body = table.tBodies[0];
    const order = [...body.rows].sort((one, other) =>
      isNumber ? Number(value(one)) - Number(value(other)) : value(one).localeCompare(value(other)));
    if (direction === "descending") order.reverse();
    body.append(...order);
    headings.forEach((heading, at) => heading.setAttribute("aria-sort", at === place ? direction : "none"));
  };

  const choose = (element) => {
    document.querySelectorAll(".chosen").forEach((old) => old.classList.remove("chosen"));
    if (!element) return;
    element.hidden = false;
    element.classList.add("chosen");
    if (element.tagName === "DETAILS") element.open = true;
    element.scrollIntoView({ block: "center" });
  };

  let chosen = "";
  const show = () => {
    const wanted = state();
    for (const field of fields) field.value = wanted.get(field.name) ?? "";
    filter();
    for (const table of document.querySelectorAll("table.list[id]")) {
      const [key, direction] = (wanted.get("sort-" + table.id) ?? "").split(".");
      if (key) sort(table, key, direction === "descending" ? direction : "ascending");
    }
    const cell = wanted.get("cell"), trial = wanted.get("trial");
    if (`${cell} ${trial}` === chosen) return;
    chosen = `${cell} ${trial}`;
    choose(trial ? [...document.querySelectorAll(".case")].find((one) => one.dataset.trial === trial)
      : rows.find((row) => row.dataset.cell === cell));
  };

  form.addEventListener("input", () => keep(Object.fromEntries(fields.map((field) => [field.name, field.value]))));
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    keep(Object.fromEntries(fields.map((field) => [field.name, ""])));
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#cell='], a[href^='#trial=']");
    if (link) {
      event.preventDefault();
      chosen = "";
      const [key, value] = new URLSearchParams(link.getAttribute("href").slice(1)).entries().next().value;
      keep({ cell: "", trial: "", [key]: value });
      return;
    }
    const button = event.target.closest("th button");
    if (button) {
      const heading = button.parentElement;
      const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      keep({ ["sort-" + heading.closest("table").id]: `${button.dataset.key}.${direction}` });
    }
  });
  window.addEventListener("hashchange", show);
  show();
})();
