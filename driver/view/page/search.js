// Finds a text in the lines of all steps.

const MOST_FOUND = 300;

const search = {
  text: "",
  draw(main) {
    const aside = el("div", { class: "wide", style: "overflow:auto;padding:10px 12px;display:block" });
    main.append(el("div", { class: "columns" }, aside));
    const wanted = this.text.toLowerCase();
    const fits = data.lines.map((line) => line.toLowerCase().includes(wanted));
    const found = [];
    let count = 0;
    data.shown.forEach((step, at) => {
      const inside = [];
      for (const part of step.parts) {
        const { name, lines, sets } = data.parts[part];
        lines.forEach((line, row) => {
          if (!fits[line] || ++count > MOST_FOUND) return;
          inside.push(el("li", {}, link(`${name}:${row + 1}`, () => { state.step = at; choose(sets[row]); show("steps"); steps.to(part, row); }), el("span", { class: "code" }, data.lines[line].trim())));
        });
      }
      if (inside.length) found.push(el("h2", {}, step.name), el("ul", {}, inside));
    });
    aside.append(el("p", { id: "found" }, `${count} ${count === 1 ? "line" : "lines"} with “${this.text}”${count > MOST_FOUND ? `, the first ${MOST_FOUND} of them` : ""}`), ...found);
  },
};
