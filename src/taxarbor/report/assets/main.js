// Putting it together: pages, theme, keys, printing.
const PAGES = ["tree", "clusters", "measures", "help"];
function showPage(name) {
  for (const page of PAGES) {
    byId("page-" + page).hidden = page !== name;
    const tab = byId("tab-" + page);
    tab.setAttribute("aria-selected", String(page === name));
    tab.tabIndex = page === name ? 0 : -1;
  }
  byId("cutter-home-" + (name === "clusters" ? "clusters" : "tree")).append(byId("cutter"));
  if (name === "clusters") showClusters();
  if (name === "tree" && chosen) { showKey(); render(); if (kind === "tree") hold(); }
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
    if (!byId("page-tree").hidden) Object.assign(keys, { "+": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: () => showAll(), "*": () => kind === "tree" && openAll() });
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });
}
// On paper there is no scrolling: all clusters in the table, and the picture as it is.
let isPrinting = false;
function startPrinting() {
  window.addEventListener("beforeprint", () => {
    isPrinting = true;
    showClusters(true);
    canvas.setAttribute("viewBox", `0 0 ${canvas.clientWidth || 900} ${canvas.clientHeight || 600}`);
  });
  window.addEventListener("afterprint", () => {
    isPrinting = false;
    canvas.removeAttribute("viewBox");
    showClusters();
  });
}

function start() {
  byId("title").textContent = data.title;
  startTabs();
  startSearch();
  startKeys();
  startPrinting();
  startTable();
  startCut();
  watchPointer();
  canvas.addEventListener("keydown", onKey);
  byId("theme").addEventListener("click", switchTheme);
  byId("zoom-in").addEventListener("click", () => zoom(1.4));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
  byId("zoom-fit").addEventListener("click", () => showAll());
  byId("expand").addEventListener("click", openAll);
  byId("as-tree").addEventListener("click", () => showKind("tree"));
  byId("as-icicle").addEventListener("click", () => showKind("icicle"));
  byId("csv").addEventListener("click", () => download(root));
  byId("csv").hidden = order === null;
  showPage("tree");
  cutAt(data.n_clusters);
  startShades();
  showMeasures();
  showHelp();
  choose(root, { stay: true });
  showKind(data.n_clusters >= 50 || 16 * root.children.length > canvas.clientHeight ? "icicle" : "tree");
  window.addEventListener("resize", () => {
    if (isPrinting) return;
    showKey();
    if (kind === "tree" && scale === 1 && !choices.size) fitTree(); else render();
  });
  if (matchMedia("(hover: none)").matches) byId("search").placeholder = "Find a node, feature or row";
}
readRows().then(start);
