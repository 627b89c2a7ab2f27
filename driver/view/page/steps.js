// The slider: the program after each pass, beside its source. Only rows in sight are in the document.

const ROW = 18;

class TextView {
  constructor(onChoose) {
    this.rows = [];
    this.inner = el("div");
    this.element = el("div", { class: "text", tabindex: 0, scroll: () => this.draw() }, this.inner);
    this.onChoose = onChoose;
    new ResizeObserver(() => this.draw()).observe(this.element);
  }
  // A row: {text, set, number, head, changed}.
  fill(rows) {
    this.rows = rows;
    this.inner.style.height = `${rows.length * ROW}px`;
    this.inner.style.width = `${Math.min(2100, Math.max(20, ...rows.map((row) => row.text.length)) + 8)}ch`;
    this.draw();
  }
  draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - 5);
    const last = Math.min(this.rows.length, first + Math.ceil((this.element.clientHeight || 600) / ROW) + 10);
    const made = [];
    for (let k = first; k < last; k++) {
      const row = this.rows[k];
      const kind = `row${row.head ? " head" : ""}${row.changed ? " changed" : ""}${row.set && related[row.set] ? " hit" : ""}${row.set && row.set === state.set ? " chosen" : ""}`;
      made.push(el("div", { class: kind, style: `top:${k * ROW}px`, "data-set": row.set || null, click: () => this.onChoose(row) },
        el("span", { class: "number" }, row.number === undefined ? "" : String(row.number)), row.text));
    }
    this.inner.replaceChildren(...made);
  }
  to(row) {
    this.element.scrollTop = Math.max(0, row * ROW - this.element.clientHeight / 3);
    this.draw();
  }
}

const steps = {
  draw(main) {
    const slider = el("input", { type: "range", min: 0, max: data.shown.length - 1, value: state.step, id: "slider", "aria-label": "Step",
      input: () => { state.step = Number(slider.value); this.fill(); } });
    this.slider = slider;
    this.name = el("strong", { id: "step-name" });
    this.summary = el("span", { class: "hint" });
    const move = (by) => () => { state.step = Math.min(data.shown.length - 1, Math.max(0, state.step + by)); this.fill(); };
    this.list = el("div", { class: "steps" });
    this.filter = el("select", { "aria-label": "Function", change: () => { this.only = this.filter.value; this.fill(); } });
    this.only = this.only || "";
    this.program = new TextView((row) => this.choose(row));
    this.source = new TextView((row) => this.choose(row));
    const files = el("select", { "aria-label": "File", change: () => { state.file = Number(files.value); this.fillSource(); } },
      data.files.map((file, at) => el("option", { value: at, selected: at === state.file }, file.name)));
    this.aside = el("div", { class: "aside", id: "details" });
    main.append(
      el("div", { class: "bar" }, el("button", { type: "button", click: move(-1), "aria-label": "Step before" }, "‹"), slider,
        el("button", { type: "button", click: move(1), "aria-label": "Next step" }, "›"), this.name, this.summary),
      this.list,
      el("div", { class: "columns" },
        el("div", { class: "source" }, el("div", { class: "caption" }, "Source", files), this.source.element),
        el("div", { class: "wide" }, el("div", { class: "caption" }, "Program", this.filter,
          el("span", {}, "green: changed by this step; yellow: from the selected line")), this.program.element),
        this.aside));
    this.fillSource();
    this.fill();
  },
  fillSource() {
    const file = data.files[state.file];
    if (!file) return this.source.fill([]);
    const sets = new Map();
    data.places.forEach(([at, line], place) => { if (at === state.file && line) sets.set(line, [...(sets.get(line) || []), place]); });
    this.source.fill(file.lines.map((text, k) => ({ text, number: k + 1, set: this.lineSet(sets.get(k + 1)), source: true })));
  },
  // The number of a set that is all places of a line; it is added where no op has just these.
  lineSet(places) {
    if (!places) return 0;
    const key = places.join();
    this.known = this.known || new Map(data.sets.map((set, number) => [set.join(), number]));
    if (!this.known.has(key)) {
      this.known.set(key, data.sets.length);
      data.sets.push(places);
      related = new Uint8Array(data.sets.length);
      relate(state.set);
    }
    return this.known.get(key);
  },
  fill() {
    const step = data.shown[state.step];
    this.slider.value = state.step;
    this.name.textContent = `${state.step + 1}/${data.shown.length} ${step.name}`;
    this.summary.textContent = step.summary;
    this.list.replaceChildren(...data.steps.map((each) => each.changed
      ? el("button", { type: "button", class: `link${each === step ? " now" : ""}`, click: () => { state.step = data.shown.indexOf(each); this.fill(); } }, each.name)
      : el("span", { class: "same", title: `${each.name} changed nothing` }, each.name)));
    const names = [...new Set(step.parts.map((part) => data.parts[part].name))];
    if (this.only && !names.includes(this.only)) names.push(this.only);
    this.filter.replaceChildren(el("option", { value: "" }, names.length === 1 ? "all functions" : `all ${names.length} functions`),
      ...names.map((name) => el("option", { value: name, selected: name === this.only }, name)));
    const before = new Set();
    if (state.step) for (const part of data.shown[state.step - 1].parts) for (const line of data.parts[part].lines) before.add(line);
    const rows = [];
    this.starts = new Map();
    for (const part of step.parts) {
      const { name, level, lines, sets } = data.parts[part];
      if (this.only && name !== this.only) continue;
      rows.push({ text: `${name} · ${level}`, head: true, set: 0 });
      this.starts.set(part, rows.length);
      lines.forEach((line, k) => rows.push({ text: data.lines[line], number: k + 1, set: sets[k], changed: state.step > 0 && !before.has(line) }));
      rows.push({ text: "", set: 0 });
    }
    this.program.fill(rows);
    this.details();
  },
  choose(row) {
    if (row.head) return;
    choose(row.set);
    this.program.draw();
    this.source.draw();
    if (!row.source && row.set) this.showSource();
    this.details(row.text);
  },
  showSource() {
    const [file, line] = data.places[data.sets[state.set][0]] || [];
    if (file === undefined) return;
    if (file !== state.file) { state.file = file; this.fillSource(); }
    if (line) this.source.to(line - 1);
  },
  to(part, row) {
    const start = this.starts.get(part);
    if (start === undefined && this.only) { this.only = ""; this.fill(); return this.to(part, row); }
    this.program.to((start || 0) + row);
  },
  toSource(line) {
    if (line) this.source.to(line - 1);
  },
  details(text) {
    this.aside.replaceChildren(...(state.set || text !== undefined
      ? [el("h2", {}, "Source"), ...sourceLines(state.set), ...remarksOf(state.set), ...trailList()]
      : [el("h2", {}, "Click a line"), el("p", { class: "hint" }, "of the source or of a step: all lines that come from the same place are marked, in every step down to assembly.")]));
  },
};

// What passes said of the selected places, besides fuse-ops: that is told between boxes.
function remarksOf(set) {
  const found = data.remarks.filter(([, at]) => at && related[at] && set).slice(0, 20);
  return found.length ? [el("h2", {}, "What was left alone, and why"), ...reasonList(found)] : [];
}
tabs.set("steps", { title: "Steps", draw: (main) => steps.draw(main) });
