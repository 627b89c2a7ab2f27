// The Relay program as boxes; a click on a line between two tells why they are two.

const graphs = {
  chosen: null,
  draw(main) {
    this.aside = el("div", { class: "aside", id: "details" });
    const drawing = el("div", { class: "drawing" });
    const pick = el("select", { "aria-label": "Function", change: () => { state.graph = Number(pick.value); this.chosen = null; this.paint(drawing); } },
      data.graphs.map((graph, at) => el("option", { value: at, selected: at === state.graph }, graph.name)));
    const zoom = el("input", { type: "range", min: 20, max: 150, value: this.zoom || 100, "aria-label": "Zoom",
      input: () => { this.zoom = Number(zoom.value); this.paint(drawing); } });
    main.append(el("div", { class: "bar" }, "Function", pick, "Zoom", zoom,
      el("span", { class: "hint" }, "Blue: kernels, each with its operators. A red line: fuse-ops tells why its ends are two.")),
      el("div", { class: "columns" }, el("div", { class: "wide" }, drawing), this.aside));
    this.paint(drawing);
  },
  paint(drawing) {
    this.drawing = drawing;
    const graph = data.graphs[state.graph];
    if (!graph) return drawing.replaceChildren(el("p", { class: "hint" }, "The program has no Relay functions."));
    const scale = (this.zoom || 100) / 100;
    const edges = graph.edges.map((edge, at) => {
      const d = this.path(edge.points);
      const chosen = this.chosen === edge;
      return [svg("path", { class: "grip", d, "data-edge": at, click: () => this.chooseEdge(edge) }, svg("title", {}, `${graph.boxes[edge.source].title} → ${graph.boxes[edge.target].title}`)),
        svg("path", { class: `edge${edge.reasons.length ? " why" : ""}${chosen ? " chosen" : ""}`, d, "pointer-events": "none" })];
    });
    const boxes = graph.boxes.map((box, at) => {
      const kind = `box ${box.kind}${box.set && related[box.set] ? " hit" : ""}${this.chosen === box ? " chosen" : ""}`;
      return [svg("rect", { class: kind, x: box.x, y: box.y, width: box.width, height: box.height, rx: 5, "data-box": at, click: () => this.chooseBox(box) }, svg("title", {}, box.title)),
        ...box.labels.map((label, k) => svg("text", { x: box.x + 8, y: box.y + 16 + 15 * k, class: k === box.labels.length - 1 && k ? "small" : null }, label))];
    });
    drawing.replaceChildren(svg("svg", { width: graph.width * scale, height: graph.height * scale, viewBox: `0 0 ${graph.width} ${graph.height}`, id: "graph" }, edges, boxes));
    this.details(graph);
  },
  path(points) {
    let d = `M${points[0][0]} ${points[0][1]}`;
    for (let k = 1; k < points.length; k++) {
      const [x0, y0] = points[k - 1], [x, y] = points[k], middle = (y0 + y) / 2;
      d += `C${x0} ${middle} ${x} ${middle} ${x} ${y}`;
    }
    return d;
  },
  chooseBox(box) { this.chosen = box; choose(box.set); this.paint(this.drawing); },
  chooseEdge(edge) { this.chosen = edge; this.paint(this.drawing); },
  details(graph) {
    const chosen = this.chosen;
    if (!chosen) return this.aside.replaceChildren(el("h2", {}, "Click a box or a line"), el("p", { class: "hint" }, "A box shows its operators and their source lines; a line shows what goes from one box to the other, and why they are two."));
    if (chosen.points) return this.aside.replaceChildren(...this.edgeDetails(graph, chosen));
    this.aside.replaceChildren(el("h2", {}, chosen.title), el("p", { class: "code" }, chosen.type),
      ...(chosen.kernel ? [kernelLine(chosen.kernel)] : []),
      el("ul", {}, chosen.ops.map(([name, set]) => el("li", {}, name, set ? [" ", link(placeText(data.sets[set][0]), () => { choose(set); show("steps"); steps.showSource(); })] : null))),
      ...neighbours([[graph, chosen]]), ...trailList());
  },
  edgeDetails(graph, edge) {
    const from = graph.boxes[edge.source], to = graph.boxes[edge.target];
    return [el("h2", {}, `${from.title} → ${to.title}`), el("p", { class: "code" }, edge.type),
      ...(edge.reasons.length ? [el("h2", {}, "Why they are two"), ...reasonList(edge.reasons)] : [el("p", { class: "hint" }, notTold(from, to))])];
  },
};

function notTold(from, to) {
  if (from.kind === "param") return "A parameter is computed by no kernel.";
  if (to.kind === "result") return "The result is returned: no kernel takes it.";
  return "One of them is not an operator that fuse-ops groups.";
}

function kernelLine(kernel) {
  return el("p", {}, "Kernel ", link(kernel, () => { steps.only = kernel; state.step = data.shown.findIndex((step) => step.name === "LLVM IR"); show("steps"); }),
    data.kernels.some((each) => each.name === kernel) ? [", ", link("its figures", () => { roofline.chosen = kernel; show("roofline"); })] : null);
}

// What is said of the lines between boxes, each with its graph, and those around them.
function neighbours(boxes) {
  const said = new Map();
  for (const [graph, box] of boxes) {
    const at = graph.boxes.indexOf(box);
    for (const edge of graph.edges)
      if (edge.source === at || edge.target === at) for (const reason of edge.reasons) said.set(JSON.stringify(reason), reason);
  }
  return said.size ? [el("h2", {}, "Why it is not one kernel with its neighbours"), ...reasonList([...said.values()])] : [];
}
tabs.set("graph", { title: "Graph", draw: (main) => graphs.draw(main) });
