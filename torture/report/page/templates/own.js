// The first question: a set-up, its choices, and what happens. The address has them, as it has all else.
(() => {
  const form = document.getElementById("own");
  if (!form) return;
  const { texts, answers, settings } = JSON.parse(document.getElementById("own-data").textContent);
  const pickers = [...form.elements].filter((field) => field.name);
  const first = Object.fromEntries(pickers.map((picker) => [picker.name, picker.value]));
  const shown = document.getElementById("own-answer");
  const part = (name) => document.querySelector(`#own-more [data-part=${name}]`);

  const element = (name, text, more = {}) =>
    Object.assign(document.createElement(name), { textContent: text }, more);

  // an answer in the order of `torture/report/page/own_setup.py`
  const read = (place) => {
    const [event, label, lead, outcome, back, tone, cell] = answers[place];
    return { event, label: texts[label], lead: texts[lead], outcome: texts[outcome], back: texts[back], tone, cell };
  };

  const sentence = (one) => {
    const parts = [one.lead];
    if (one.outcome) parts.push(element("b", one.outcome, { className: one.tone }));
    parts.push(". ");
    if (one.cell) parts.push(element("a", "details", { href: "#cell=" + encodeURIComponent(one.cell) }));
    return parts;
  };

  const say = (name, text) => {
    part(name).textContent = text;
    part(name).hidden = part(name).previousElementSibling.hidden = !text;
  };

  const capital = (text) => text && (text.startsWith("sync=") ? text[0] : text[0].toUpperCase())
    + text.slice(1) + (text.endsWith(".") ? "" : ".");

  const show = () => {
    const state = location.hash.slice(1);
    if (state && !state.includes("=")) return;  // a link to a part of the page
    const wanted = new URLSearchParams(state);
    const [run, on] = ["run", "on"].map((name) => pickers.find((picker) => picker.name === name));
    run.value = wanted.get("run") in settings ? wanted.get("run") : first.run;
    const { hosts, words, kind } = run.selectedOptions[0].dataset;
    on.replaceChildren(...hosts.split(" ").map((host, at) => element("option", words.split("|")[at], { value: host })));
    for (const option of form.elements.event.options) {
      option.hidden = option.disabled = Boolean(option.dataset.of) && !option.dataset.of.split(" ").includes(kind);
    }
    for (const picker of pickers) {
      if (picker === run) continue;
      const has = (value) => [...picker.options].some((option) => option.value === value && !option.disabled);
      const value = wanted.get(picker.name);
      picker.value = has(value) ? value : has(first[picker.name]) ? first[picker.name] : picker.options[0].value;
    }
    const [worst, advice, price, remarks, rows] =
      ["run", "on", "sync", "slog", "layout"].reduce((tree, name) => tree[form.elements[name].value], settings);
    const all = rows.map(read);
    const event = form.elements.event.value;
    const asked = event ? all.filter((one) => one.event === event) : [all[worst]];
    shown.replaceChildren(...asked.flatMap((one) => [capital(one.label).slice(0, -1) + ": ", ...sentence(one), " "]));
    say("advice", capital(texts[advice]));
    say("price", capital(texts[price]));
    say("back", capital([...new Set(asked.map((one) => one.back).filter(Boolean))].join("; ")));
    const others = all.filter((one) => !asked.includes(one));
    part("others").replaceChildren(...others.map((one) => {
      const line = element("li", one.label + ": ");
      line.append(...sentence(one));
      return line;
    }));
    part("others").parentElement.hidden = part("others").parentElement.previousElementSibling.hidden = !others.length;
    say("remarks", texts[remarks]);
    const own = new URLSearchParams(pickers.map((picker) => [picker.name, picker.value]).filter(([, value]) => value));
    document.getElementById("own-link").href = "#" + own;
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    const next = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    for (const picker of pickers) if (picker.value) next.set(picker.name, picker.value); else next.delete(picker.name);
    for (const name of ["cell", "trial"]) next.delete(name);
    history.pushState(null, "", "#" + next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  });
  addEventListener("hashchange", show);
  addEventListener("popstate", show);
  show();
})();
