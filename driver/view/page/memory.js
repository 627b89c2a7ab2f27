// The tensors of a function's frame: bytes upward, steps to the right.

const memory = {
  chosen: null,
  draw(main) {
    this.aside = el("div", { class: "aside", id: "details" });
    this.drawing = el("div", { class: "drawing" });
    const pick = el("select", { "aria-label": "Function", change: () => { state.memory = Number(pick.value); this.chosen = null; this.paint(); } },
      data.memory.map((frame, at) => el("option", { value: at, selected: at === state.memory }, `@${frame.name}: ${amount(frame.size, "B")}`)));
    main.append(el("div", { class: "bar" }, "Function", pick,
      el("span", { class: "hint" }, "Blue line: the bytes of its frame. Dashed: the most that is needed at one time. Green: what is needed then.")),
      el("div", { class: "columns" }, el("div", { class: "wide" }, this.drawing), this.aside));
    this.paint();
  },
  paint() {
    const frame = data.memory[state.memory];
    if (!frame) return this.drawing.replaceChildren(el("p", { class: "hint" }, "No function keeps tensors in a frame."));
    const width = Math.max(560, this.drawing.clientWidth - 20), height = Math.max(300, this.drawing.clientHeight - 30);
    const left = 80, bottom = height - 30, top = 16;
    const steps = Math.max(1, ...frame.tensors.map((t) => t.end)) + 1, most = Math.max(frame.size, frame.bound, 1);
    const x = (step) => left + (step / steps) * (width - left - 16), y = (bytes) => bottom - (bytes / most) * (bottom - top);
    const drawn = [];
    for (let k = 0; k <= 4; k++) drawn.push(svg("line", { class: "axis", x1: left, x2: width - 16, y1: y((most * k) / 4), y2: y((most * k) / 4) }),
      svg("text", { class: "small", x: 4, y: y((most * k) / 4) + 4 }, amount((most * k) / 4, "B")));
    frame.tensors.forEach((tensor, at) => drawn.push(svg("rect", {
      class: `box kernel${tensor.set && related[tensor.set] ? " hit" : ""}${this.chosen === tensor ? " chosen" : ""}`, "data-tensor": at,
      x: x(tensor.start), width: Math.max(2, x(tensor.end + 1) - x(tensor.start)), y: y(tensor.offset + tensor.bytes), height: Math.max(1, y(tensor.offset) - y(tensor.offset + tensor.bytes)),
      click: () => { this.chosen = tensor; choose(tensor.set); this.paint(); } }, svg("title", {}, `${tensor.label}: ${amount(tensor.bytes, "B")}`))));
    let line = "";
    for (let step = 0; step < steps; step++) {
      const live = frame.tensors.reduce((sum, t) => (t.start <= step && step <= t.end ? sum + t.bytes : sum), 0);
      line += `${line ? "L" : "M"}${x(step)} ${y(live)}L${x(step + 1)} ${y(live)}`;
    }
    drawn.push(svg("path", { class: "live", d: line }),
      svg("line", { class: "arena", x1: left, x2: width - 16, y1: y(frame.size), y2: y(frame.size) }),
      svg("line", { class: "bound", x1: left, x2: width - 16, y1: y(frame.bound), y2: y(frame.bound) }),
      svg("text", { class: "small", x: left, y: height - 8 }, `steps of @${frame.name}, 0 to ${steps - 1}`));
    this.drawing.replaceChildren(svg("svg", { width, height, id: "memory" }, drawn));
    const t = this.chosen;
    this.aside.replaceChildren(el("h2", {}, `@${frame.name}`), el("p", {}, `${frame.tensors.length} tensors in ${frame.size} bytes; at one time ${frame.bound} are needed.`),
      ...(t ? [el("h2", {}, t.label), el("p", {}, `${t.bytes} bytes at ${t.offset}, steps ${t.start} to ${t.end}`), ...sourceLines(t.set), ...trailList()]
        : [el("p", { class: "hint" }, "Click a tensor: which kernel writes it, its source line.")]));
  },
};
tabs.set("memory", { title: "Memory", draw: (main) => memory.draw(main) });
