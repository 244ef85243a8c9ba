"use strict";
// The reader's choices, the filter and the opened parts stand behind the address's #: a link shows the same.
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const choice = document.getElementById("choice");
  const filters = document.getElementById("filters");
  const sentence = document.getElementById("sentence");
  const pickers = [...choice.elements].filter((field) => field.name);
  const marks = all("[data-mark]");
  const prices = all("#prices li");
  const rows = all("#cells tbody tr");
  const listed = all("[data-cell]");
  const chosenAtFirst = Object.fromEntries(pickers.map((picker) => [picker.name, picker.value]));

  const state = () => new URLSearchParams(location.hash.slice(1));
  const keep = (changes, { isTyping = false } = {}) => {
    const next = state();
    for (const [key, value] of Object.entries(changes)) {
      if (value) next.set(key, value); else next.delete(key);
    }
    history[isTyping ? "replaceState" : "pushState"](null, "", "#" + next.toString());
    show();
  };

  // files have one filesystem: they stand beside every other
  const fits = (mark, name, value) =>
    mark.dataset[name] === value || (name === "filesystem" && mark.dataset.filesystem === "files");

  const answer = (wanted) => {
    const picked = { ...chosenAtFirst };
    for (const picker of pickers) {
      const value = wanted.get(picker.name);
      if (value && [...picker.options].some((option) => option.value === value)) picked[picker.name] = value;
      picker.value = picked[picker.name];
    }
    for (const mark of marks) {
      mark.hidden = !["others", "filesystem"].every((name) => !(name in picked) || fits(mark, name, picked[name]));
    }
    const own = marks.find((mark) => pickers.every((picker) => fits(mark, picker.name, picked[picker.name])));
    for (const mark of marks) mark.classList.toggle("own", mark === own);
    price(own?.dataset.mark);
    const result = document.createElement("b");
    if (own) {
      result.className = own.classList[1];
      result.textContent = own.dataset.answer;
      const details = document.createElement("a");
      details.href = "#cell=" + encodeURIComponent(own.dataset.mark);
      details.textContent = "details";
      sentence.replaceChildren(own.dataset.question + ": ", result, " ", details);
    } else if (marks.length) {
      const words = pickers.map((picker) => picker.selectedOptions[0].textContent).join(", ");
      result.textContent = "not measured.";
      sentence.replaceChildren(`Over ${words}: `, result);
    }
  };

  // the prices of the picked configuration, and the first ones where it has none
  const price = (cell) => {
    const own = prices.filter((one) => cell && [one.dataset.subject, one.dataset.beside].includes(cell));
    const shown = (own.length ? own : prices).slice(0, 2);
    for (const one of prices) one.hidden = !shown.includes(one);
  };

  const filter = (wanted) => {
    const words = (wanted.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const asked = pickers.filter((picker) => wanted.get(picker.name));
    const byCell = new Map(marks.map((mark) => [mark.dataset.mark, mark]));
    const isShown = (row) => {
      const mark = byCell.get(row.dataset.cell);
      const text = row.textContent.toLowerCase();
      return words.every((word) => text.includes(word))
        && (!mark || asked.every((picker) => fits(mark, picker.name, picker.value)));
    };
    const shown = new Set(rows.filter(isShown).map((row) => row.dataset.cell));
    for (const element of listed) {
      element.hidden = !shown.has(element.dataset.cell) && !shown.has(element.dataset.other);
    }
    filters.elements.q.value = wanted.get("q") ?? "";
    filters.querySelector("output").textContent = shown.size < rows.length ? `${shown.size} of ${rows.length}` : "";
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

  const open = (element) => {
    for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  };

  const choose = (element) => {
    all(".chosen").forEach((old) => old.classList.remove("chosen"));
    if (!element) return;
    element.hidden = false;
    element.classList.add("chosen");
    open(element);
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "center" });
  };

  let chosen = "";
  const show = () => {
    const part = location.hash.slice(1);
    const named = part && !part.includes("=") ? document.getElementById(part) : null;
    if (named) { open(named); named.scrollIntoView(); return; }
    const wanted = state();
    answer(wanted);
    filter(wanted);
    for (const table of all("table.list[id]")) {
      const [key, direction] = (wanted.get("sort-" + table.id) ?? "").split(".");
      if (key) sort(table, key, direction === "descending" ? direction : "ascending");
    }
    const cell = wanted.get("cell"), trial = wanted.get("trial");
    if (`${cell} ${trial}` === chosen) return;
    chosen = `${cell} ${trial}`;
    choose(trial ? all(".case").find((one) => one.dataset.trial === trial)
      : rows.find((row) => row.dataset.cell === cell));
  };

  choice.addEventListener("input", (event) => keep({ [event.target.name]: event.target.value, cell: "", trial: "" }));
  filters.addEventListener("input", () => keep({ q: filters.elements.q.value }, { isTyping: true }));
  filters.addEventListener("reset", (event) => {
    event.preventDefault();
    keep(Object.fromEntries([...pickers.map((picker) => [picker.name, ""]), ["q", ""]]));
  });
  for (const form of [choice, filters]) form.addEventListener("submit", (event) => event.preventDefault());
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
  window.addEventListener("popstate", show);
  show();
})();
