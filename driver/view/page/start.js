// Reads the data and opens the first page.

async function start() {
  prepare(await unpacked());
  $("title").textContent = data.title;
  for (const [name, tab] of tabs) {
    tab.button = el("button", { type: "button", role: "tab", "data-tab": name, click: () => show(name) }, tab.title);
    $("tabs").append(tab.button);
  }
  tabs.set("search", { button: el("span"), draw: (main) => search.draw(main) });
  $("theme").addEventListener("click", turnTheme);
  let before = "steps";
  $("search").addEventListener("input", () => {
    if (state.tab !== "search") before = state.tab;
    search.text = $("search").value;
    show(search.text ? "search" : before);
  });
  document.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || state.tab !== "steps" || event.target instanceof HTMLInputElement) return;
    state.step = Math.min(data.shown.length - 1, Math.max(0, state.step + by));
    steps.fill();
  });
  const wanted = location.hash.slice(1).split("/");
  const step = data.shown.findIndex((each) => each.name === decodeURIComponent(wanted[1] || ""));
  if (step >= 0) state.step = step;
  show(tabs.has(wanted[0]) && wanted[0] !== "search" ? wanted[0] : "steps");
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  $("main").replaceChildren(el("p", { class: "hint" }, `The page cannot be read: ${error}. It needs a browser of 2023 or later.`));
  throw error;
});
