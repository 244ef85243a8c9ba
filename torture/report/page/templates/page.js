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
  const speed = document.getElementById("price");
  const beside = document.getElementById("beside");
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
    dispatchEvent(new HashChangeEvent("hashchange"));
  };

  const ANY = "any";
  const FAR = { filesystem: 10, fate: 100 };

  // files have one filesystem: they stand beside every other
  const fits = (mark, name, value) =>
    value === ANY || mark.dataset[name] === value || (name === "filesystem" && mark.dataset.filesystem === "files");

  const wordsOf = (name, value) =>
    pickers.flatMap((picker) => picker.name === name ? [...picker.options] : [])
      .find((option) => option.value === value)?.textContent ?? value;

  // how many choices on the other axes differ; another filesystem or fate is further away
  const distance = (mark, picked) => {
    const [own, other] = [mark.dataset.others, picked.others ?? mark.dataset.others]
      .map((words) => new Set(words.split(" ").filter((word) => word !== "usual")));
    const odd = [...own].filter((word) => !other.has(word)).length + [...other].filter((word) => !own.has(word)).length;
    return Object.entries(FAR).reduce(
      (sum, [name, far]) => sum + (name in picked && !fits(mark, name, picked[name]) ? far : 0), odd);
  };

  // the nearest of these marks, the worst first
  const nearest = (among, picked) => {
    const least = Math.min(...among.map((mark) => distance(mark, picked)));
    return among.filter((mark) => distance(mark, picked) === least)
      .sort((one, other) => other.dataset.harm - one.dataset.harm);
  };

  const result = (mark) => {
    const bold = document.createElement("b");
    bold.className = mark.classList[1];
    bold.textContent = mark.dataset.answer;
    return bold;
  };

  const link = (words, href) => Object.assign(document.createElement("a"), { textContent: words, href });

  const item = (...parts) => {
    const line = document.createElement("li");
    line.append(...parts);
    return line;
  };

  const answer = (wanted) => {
    const picked = { ...chosenAtFirst };
    for (const picker of pickers) {
      const value = wanted.get(picker.name);
      if (value && [...picker.options].some((option) => option.value === value)) picked[picker.name] = value;
      picker.value = picked[picker.name];
    }
    fill(picked);
    const alike = marks.filter((mark) => ["transport", "sync", "slog"].every(
      (name) => !(name in picked) || fits(mark, name, picked[name])));
    const found = nearest(alike, picked);
    const far = found.length ? distance(found[0], picked) : Infinity;
    for (const mark of marks) mark.classList.toggle("own", mark === found[0] && far === 0);
    price(picked);
    if (marks.length) say(picked, found, far);
    beside.replaceChildren(...(found.length ? otherwise(picked, alike, found, far) : []));
  };

  // a field shows the picked filesystem and settings, and the nearest ones where these were not measured
  const fill = (picked) => {
    const { fate, ...asked } = picked;
    for (const field of all("td[data-field]")) {
      const own = [...field.querySelectorAll("[data-mark]")];
      const shown = new Set(nearest(own, asked));
      for (const mark of own) {
        mark.hidden = !shown.has(mark);
        mark.classList.toggle("near", distance(mark, asked) > 0);
      }
    }
  };

  const say = (picked, found, far) => {
    const worst = found[0];
    const parts = [];
    if (far) {
      const named = pickers.filter((picker) => ![ANY, "usual"].includes(picker.value)
        && (picker.name !== "filesystem" || worst?.dataset.filesystem !== "files"));
      const words = named.map((picker) => picker.selectedOptions[0].textContent).join(", ");
      const not = document.createElement("b");
      not.textContent = far < FAR.filesystem ? "measured with other disks or loads only." : "not measured.";
      parts.push(`Over ${words}: `, not);
      if (worst) parts.push(far < FAR.filesystem ? " " : " The nearest that was: ");
    }
    if (worst) {
      const rest = worst.dataset.rest ? `; ${worst.dataset.rest}. ` : ". ";
      const details = link("details", "#cell=" + encodeURIComponent(worst.dataset.mark));
      parts.push(worst.dataset.question + ": ", result(worst), rest, details);
    }
    sentence.replaceChildren(...parts);
  };

  // the setting's other fates, and the same setting with other filesystems
  const otherwise = (picked, alike, found, far) => {
    const lines = found.slice(1, 4).map((mark) =>
      item(far ? mark.dataset.question : wordsOf("fate", mark.dataset.fate), ": ", result(mark)));
    const [options] = pickers.filter((picker) => picker.name === "filesystem").map((picker) => [...picker.options]);
    if (!options || far >= FAR.filesystem || found[0].dataset.filesystem === "files") return lines;
    const unknown = [];
    // beside a nearest one stand those of its own disks and load: others would mislead
    const like = far ? { ...picked, others: found[0].dataset.others, fate: found[0].dataset.fate } : picked;
    for (const { value, textContent } of options) {
      const asked = { ...like, filesystem: value };
      const [other] = nearest(alike, asked);
      if (value === picked.filesystem) continue;
      if (other.dataset.filesystem !== value || distance(other, asked) >= FAR.fate) { unknown.push(textContent); continue; }
      const others = far || distance(other, asked) ? `, ${wordsOf("others", other.dataset.others)}` : "";
      lines.push(item(`${textContent}${others}, ${wordsOf("fate", other.dataset.fate)}: `, result(other)));
    }
    if (unknown.length) lines.push(item(`${unknown.join(", ")}: not measured`));
    return lines;
  };

  // the prices of the picked setting alone, in all their patterns
  const price = (picked) => {
    if (!speed) return;
    const start = ["transport", "sync", "slog"].map((name) => picked[name] ?? marks[0]?.dataset[name]).join("|");
    const own = marks.find((mark) => fits(mark, "filesystem", picked.filesystem)
      && [mark.dataset.transport, mark.dataset.sync, mark.dataset.slog].join("|") === start);
    const filesystem = own?.dataset.filesystem === "files" ? "files" : picked.filesystem ?? own?.dataset.filesystem;
    const setting = [start, filesystem, picked.others ?? own?.dataset.others].join("|");
    const settings = (one) => [one.dataset.subject, one.dataset.beside];
    for (const one of prices) one.hidden = !settings(one).includes(setting);
    const elsewhere = new Set(prices.flatMap(settings).filter((other) => other.startsWith(start + "|"))
      .map((other) => other.split("|").slice(3)).filter(([, others]) => others === (picked.others ?? others))
      .map(([other]) => other));
    speed.hidden = !marks.length || prices.some((one) => !one.hidden);
    speed.lastElementChild.replaceChildren("not measured for this setting");
    for (const other of elsewhere) {
      speed.lastElementChild.append("; it was with ",
        link(wordsOf("filesystem", other), "#" + new URLSearchParams({ ...picked, filesystem: other })));
    }
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
    // a link to a choice of the table leads past the first question
    const { top, bottom } = sentence.getBoundingClientRect();
    if (wanted.has("transport") && !wanted.has("run") && (bottom < 0 || top > innerHeight)) {
      document.getElementById("answer").scrollIntoView();
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
