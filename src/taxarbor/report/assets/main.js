// Putting it together: pages, theme, keys, printing.
const PAGES = ["tree", "clusters", "measures", "help"];
function showPage(name) {
  for (const page of PAGES) {
    byId("page-" + page).hidden = page !== name;
    const tab = byId("tab-" + page);
    tab.setAttribute("aria-selected", String(page === name));
    tab.tabIndex = page === name ? 0 : -1;
  }
  if (name === "clusters") showClustersOnce();
}
function startTabs() {
  PAGES.forEach((page, n) => {
    byId("tab-" + page).addEventListener("click", () => showPage(page));
    byId("tab-" + page).addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = PAGES[(n + step + PAGES.length) % PAGES.length];
      showPage(next);
      byId("tab-" + next).focus();
      event.stopPropagation();
    });
  });
}
function switchTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
}
function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { "/": () => byId("search").focus() };
    if (!byId("page-tree").hidden) Object.assign(keys, { "+": () => zoom(1.25), "-": () => zoom(0.8), 0: () => showAll(), "*": openAll });
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });
}
function startPrinting() {
  let kept = null;
  window.addEventListener("beforeprint", () => {
    kept = { open: [...open], view: { ...view } };
    showClustersOnce();
    if (leaves.length <= 60) nodes.forEach((node) => node.children.length && open.add(node.id));
    render();
    const box = bounds();
    canvas.setAttribute("viewBox", `${box.left} ${box.top} ${box.right - box.left} ${box.bottom - box.top}`);
    scene.removeAttribute("transform");
  });
  window.addEventListener("afterprint", () => {
    canvas.removeAttribute("viewBox");
    open.clear();
    kept.open.forEach((id) => open.add(id));
    Object.assign(view, kept.view);
    render();
  });
}

byId("title").textContent = data.title;
byId("subtitle").textContent = [plural(data.n_rows, "row"), plural(data.n_features, "feature"), plural(data.n_clusters, "cluster")].join(" · ");
startTabs();
startSearch();
startKeys();
startPrinting();
watchPointer();
canvas.addEventListener("keydown", onKey);
byId("theme").addEventListener("click", switchTheme);
byId("zoom-in").addEventListener("click", () => zoom(1.25));
byId("zoom-out").addEventListener("click", () => zoom(0.8));
byId("zoom-fit").addEventListener("click", () => showAll());
byId("expand").addEventListener("click", openAll);
byId("collapse").addEventListener("click", () => { openFirst(4); render(); showAll(); });
showMeasures();
showHelp();
showPage("tree");
openFirst(Math.min(24, Math.max(8, Math.floor((canvas.clientHeight - 90) / (0.72 * LEAST)))));
choose(nodes[0], { stay: true });
showAll(0.72);
window.addEventListener("resize", () => showAll(0.72));
if (matchMedia("(hover: none)").matches) byId("search").placeholder = "Find a node, feature or row";
