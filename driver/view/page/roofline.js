// Each kernel's arithmetic and bytes; where they were measured, its time against what the machine can do.

const rate = (work, kernel) => (kernel.seconds && work !== null ? (work / kernel.seconds / 1e9).toFixed(1) : "–");

const roofline = {
  chosen: null,
  draw(main) {
    this.aside = el("div", { class: "aside", id: "details" });
    this.drawing = el("div", { class: "drawing" });
    main.append(el("div", { class: "columns" }, el("div", { class: "wide" }, this.drawing), this.aside));
    this.paint();
  },
  paint() {
    if (!data.kernels.length) return this.drawing.replaceChildren(el("p", { class: "hint" }, "The program has no kernels of known sizes."));
    const measured = data.kernels.some((kernel) => kernel.seconds);
    const whole = data.kernels.reduce((sum, kernel) => sum + (kernel.seconds || 0) * kernel.calls, 0);
    const weight = (kernel) => (measured ? (kernel.seconds || 0) * kernel.calls : (kernel.flops || 0) * kernel.calls + (kernel.bytes || 0) * kernel.calls * 1e-6);
    const sorted = [...data.kernels].sort((a, b) => weight(b) - weight(a));
    const rows = sorted.map((kernel) => el("tr", { class: kernel.name === this.chosen ? "chosen" : null, "data-kernel": kernel.name, click: () => { this.chosen = kernel.name; this.paint(); } },
      el("td", {}, kernel.name), el("td", {}, Number(kernel.calls.toPrecision(3))),
      el("td", {}, kernel.seconds ? `${(kernel.seconds * 1e6).toFixed(1)} µs` : "–"),
      el("td", {}, kernel.seconds ? `${((100 * kernel.seconds * kernel.calls) / whole).toFixed(1)} %` : "–"),
      el("td", {}, kernel.flops === null ? "–" : amount(kernel.flops, "FLOP")), el("td", {}, kernel.bytes === null ? "–" : amount(kernel.bytes, "B")),
      el("td", {}, rate(kernel.flops, kernel)), el("td", {}, rate(kernel.bytes, kernel)), el("td", { class: "left" }, kernel.rule)));
    this.drawing.replaceChildren(...[this.plot(),
      measured ? null : el("p", { class: "hint" }, "Times were not measured (mir-view --run N measures them): circles are where the machine's limits allow the kernels to be."),
      el("table", {}, el("thead", {}, el("tr", {}, ["kernel", "calls", "a call", "share", "FLOP a call", "bytes a call", "GFLOP/s", "GB/s", "rule"].map((head) => el("th", {}, head)))), el("tbody", {}, rows))].filter(Boolean));
    this.details(measured);
  },
  plot() {
    const points = data.kernels.filter((kernel) => kernel.flops && kernel.bytes).map((kernel) => {
      const intensity = kernel.flops / kernel.bytes;
      const roof = data.limits ? Math.min(data.limits.gflops, data.limits.gbytes * intensity) : null;
      return { kernel, intensity, rate: kernel.seconds ? kernel.flops / kernel.seconds / 1e9 : roof };
    }).filter((point) => point.rate);
    if (!points.length) return el("p", { class: "hint" }, "No kernel has known operations and bytes.");
    const width = Math.max(560, this.drawing.clientWidth - 20), height = 300, left = 60, bottom = height - 34, top = 12, right = width - 16;
    const log = Math.log10;
    const xs = points.map((p) => log(p.intensity)), ys = points.map((p) => log(p.rate));
    if (data.limits) { ys.push(log(data.limits.gflops)); xs.push(log(data.limits.gflops / data.limits.gbytes)); }
    const x0 = Math.floor(Math.min(...xs)), x1 = Math.ceil(Math.max(...xs) + 0.2), y0 = Math.floor(Math.min(...ys)), y1 = Math.ceil(Math.max(...ys) + 0.1);
    const x = (v) => left + ((log(v) - x0) / (x1 - x0)) * (right - left), y = (v) => bottom - ((log(v) - y0) / (y1 - y0)) * (bottom - top);
    const drawn = [];
    for (let k = x0; k <= x1; k++) drawn.push(svg("line", { class: "axis", x1: x(10 ** k), x2: x(10 ** k), y1: top, y2: bottom }), svg("text", { class: "small", x: x(10 ** k) - 8, y: bottom + 14 }, String(10 ** k)));
    for (let k = y0; k <= y1; k++) drawn.push(svg("line", { class: "axis", x1: left, x2: right, y1: y(10 ** k), y2: y(10 ** k) }), svg("text", { class: "small", x: 6, y: y(10 ** k) + 4 }, String(10 ** k)));
    if (data.limits) {
      const { gflops, gbytes } = data.limits, ridge = Math.min(gflops / gbytes, 10 ** x1), low = Math.max(10 ** x0, 10 ** y0 / gbytes);
      drawn.push(svg("path", { class: "roof", d: `M${x(low)} ${y(low * gbytes)}L${x(ridge)} ${y(ridge * gbytes)}L${x(10 ** x1)} ${y(Math.min(gflops, 10 ** x1 * gbytes))}` }),
        svg("text", { class: "small", x: right, y: y(gflops) - 6, "text-anchor": "end" }, `${gflops.toFixed(0)} GFLOP/s, ${gbytes.toFixed(1)} GB/s of this machine, ${data.limits.threads} ${data.limits.threads === 1 ? "thread" : "threads"}`));
    }
    for (const point of points) drawn.push(svg("circle", {
      class: `dot${point.kernel.seconds ? "" : " hollow"}${point.kernel.name === this.chosen ? " chosen" : ""}`, cx: x(point.intensity), cy: y(point.rate), r: 5,
      click: () => { this.chosen = point.kernel.name; this.paint(); } }, svg("title", {}, point.kernel.name)));
    drawn.push(svg("text", { class: "small", x: (left + right) / 2 - 60, y: height - 4 }, "FLOP a byte"), svg("text", { class: "small", x: left + 4, y: top + 10 }, "GFLOP/s"));
    return svg("svg", { width, height, id: "roofline" }, drawn);
  },
  details(measured) {
    const kernel = data.kernels.find((each) => each.name === this.chosen);
    if (!kernel) return this.aside.replaceChildren(el("h2", {}, "Click a kernel"), el("p", { class: "hint" },
      measured ? "The slowest is first. Its source lines and why it is not one with its neighbours are shown here." : "Sorted by arithmetic: times are measured by mir-view --run N."));
    choose(kernel.set);
    const boxes = data.graphs.flatMap((graph, at) => graph.boxes.filter((box) => box.kernel === kernel.name).map((box) => [data.graphs[at], box, at]));
    this.aside.replaceChildren(el("h2", {}, kernel.name), kernelLine(kernel.name), ...sourceLines(kernel.set),
      el("p", {}, boxes.map(([, box, at], k) => [k ? ", " : "", link(k ? `call ${k + 1}` : "in the graph", () => { state.graph = at; graphs.chosen = box; show("graph"); })])),
      ...neighbours(boxes), ...trailList());
  },
};
tabs.set("roofline", { title: "Roofline", draw: (main) => roofline.draw(main) });
