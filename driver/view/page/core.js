// What all pages share: the data, elements made of text alone, what is selected.

const $ = (id) => document.getElementById(id);

// Makes an element. Text goes in as text: no name or constant of a program is ever read as HTML.
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  return filled(made, attributes, children);
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return filled(made, attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(2)) if (child !== null && child !== undefined) made.append(child);
  return made;
}

const link = (text, action) => el("button", { type: "button", class: "link", click: action }, text);

async function unpacked() {
  const bytes = Uint8Array.from(atob($("data").content.textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

let data = null;
// Of each set of places whether it has one in common with the selection.
let related = new Uint8Array(0);
const state = { tab: "steps", step: 0, set: 0, file: 0, part: -1, graph: 0, memory: 0 };
const tabs = new Map();

function prepare(raw) {
  data = raw;
  data.parts = raw.parts.map(([name, level, deltas, sets]) => {
    let line = 0;
    return { name, level, lines: deltas.map((delta) => (line += delta)), sets };
  });
  data.steps = raw.steps.map(([name, summary, parts], at) => ({ name, summary, parts, at }));
  let before = null;
  for (const step of data.steps) {
    step.changed = before === null || step.parts.join() !== before;
    before = step.parts.join();
  }
  data.shown = data.steps.filter((step) => step.changed);
  related = new Uint8Array(data.sets.length);
}

function placeText(place) {
  const [file, line, column, node] = data.places[place];
  const name = data.files[file].name;
  return line ? `${name}:${line}:${column}` : node ? `${name}: node '${node}'` : name;
}

function relate(set) {
  const places = new Set(data.sets[set]);
  related.fill(0);
  if (set) data.sets.forEach((each, number) => (related[number] = each.some((place) => places.has(place)) ? 1 : 0));
}

function choose(set) {
  state.set = set;
  relate(set);
}

// The source lines of a set, each a link to the source beside the steps.
function sourceLines(set) {
  if (!set) return [el("p", { class: "hint" }, "It comes from no line of the source: the compiler made it.")];
  // Of the places in one line the first.
  const lines = new Map();
  for (const place of data.sets[set]) {
    const [file, line, , node] = data.places[place];
    const key = `${file} ${line} ${node}`;
    if (!lines.has(key)) lines.set(key, place);
  }
  return [...lines.values()].map((place) => {
    const [file, line] = data.places[place];
    const text = line ? data.files[file].lines[line - 1] : undefined;
    return el("div", { class: "source-line" },
      link(placeText(place), () => { state.file = file; choose(set); show("steps"); steps.toSource(line); }),
      text === undefined ? null : el("span", { class: "code" }, text.trim()));
  });
}

// All steps in which lines are related to the selection: how many, and the first of them.
function trail() {
  return data.shown.map((step) => {
    let count = 0, most = 0, first = null;
    for (const part of step.parts) {
      const { sets, lines } = data.parts[part];
      const rows = [];
      for (let k = 0; k < sets.length; k++) if (related[sets[k]]) rows.push(k);
      count += rows.length;
      // Of several functions the one that has most of it: a kernel rather than its call.
      if (rows.length > most) {
        most = rows.length;
        first = { part, row: rows[0], text: data.lines[lines[rows[0]]].trim() };
      }
    }
    return { step, count, first };
  }).filter((each) => each.count);
}

function trailList() {
  if (!state.set) return [];
  return [
    el("h2", {}, "In each step"),
    el("ul", { class: "trail" }, trail().map(({ step, count, first }) =>
      el("li", {},
        link(`${step.name}: ${count} ${count === 1 ? "line" : "lines"}`, () => { state.step = data.shown.indexOf(step); show("steps"); steps.to(first.part, first.row); }),
        el("span", { class: "code" }, first.text)))),
  ];
}

// Why a box and its neighbours are not one: what fuse-ops said.
function reasonList(reasons) {
  return reasons.map(([message, set, notes]) =>
    el("div", { class: "why" }, message, el("ul", {}, notes.map(([note, at]) =>
      el("li", {}, note, at ? [" ", link(placeText(data.sets[at][0]), () => { choose(at); show("steps"); })] : null)))));
}

function amount(value, unit) {
  for (const [size, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (value >= size) return `${(value / size).toPrecision(3)} ${prefix}${unit}`;
  return `${Number(value.toPrecision(3))} ${unit}`;
}

function show(name) {
  state.tab = name;
  for (const [each, { button }] of tabs) button.className = each === name ? "on" : "";
  const main = $("main");
  main.replaceChildren();
  tabs.get(name).draw(main);
}

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}
