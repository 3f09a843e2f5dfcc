// The other pages: the clusters in a table, and the measures.
const PER_PAGE = 40;
const table = { column: null, page: 0, query: "" };
const COLUMNS = [
  { head: "Cluster", value: (node) => node.start, cell: nameCell },
  { head: "Rows", isDescending: true, value: (node) => -node.size, cell: sizeCell },
  { head: "Distinctive features", value: (node) => -Math.abs((node.distinctive[0] || { effect: 0 }).effect), isDescending: true, cell: distinctiveCell, when: () => nodes.some((node) => node.distinctive.length) },
  { head: "Stability", value: (node) => node.n_recovered, cell: stabilityCell, when: () => data.stability },
  { head: "Classes", isDescending: true, value: (node) => (majority(node) ? -shareOf(node, majority(node)[1]) : 0), cell: classCell, when: () => data.classes.length },
  { head: "Typical rows", value: (node) => node.start, cell: typicalCell, when: () => data.names_are_words || Object.keys(data.pictures).length },
];
function nameCell(node) {
  return html("td", { class: "called", title: path(node).slice(1).map((step) => step.name).join(" › ") }, html("button", { class: "go", onclick: () => visit(node) }, node.label), html("span", {}, ...soft(node.name)));
}
function sizeCell(node) {
  const most = Math.max(...clusters.map((cluster) => cluster.size));
  return html("td", { class: "num" }, count(node.size), html("span", { class: "muted" }, " · " + percent(node.size / data.n_rows, 1)),
    html("div", { class: "bar" }, html("span", { style: { width: 100 * node.size / most + "%", background: "var(--lit)" } })));
}
function distinctiveCell(node) {
  return html("td", { class: "features" }, html("div", {}, ...node.distinctive.slice(0, 3).map(distinctiveFeature).map((one) => html("div", { title: `${one.mean} here, ${one.every} in all rows` }, one.picture(48, 16), one.what))));
}
function stabilityCell(node) {
  if (!node.depth) return html("td", {});
  return html("td", { class: node.is_stable ? "num" : "num warn", title: node.recurrence }, html("i", { class: "blot", style: { background: mix(node.n_recovered / data.stability.n_refits) } }), `${node.n_recovered} of ${data.stability.n_refits}`, leftOut(node) && html("div", { class: "muted" }, leftOut(node)), node.is_stable ? null : html("div", {}, 2 * node.n_recovered < data.stability.n_refits ? "not stable" : "no gap to its siblings: not stable"));
}
function classCell(node) {
  const known = node.classes.filter(([code]) => code !== -2), tops = known.slice(0, 2).map(([code, rows]) => `${percent(shareOf(node, rows))} ${className(code)}`);
  const bar = html("div", { class: "bar" }, ...node.classes.map(([code, rows]) => html("span", { style: { width: 100 * rows / node.size + "%", background: colour(code), minWidth: 0 } })));
  return html("td", { class: "make-up" }, bar, tops.join(", ") || calledClass(-2), known.length > 2 ? html("span", { class: "muted" }, ` and ${count(known.length - 2)} more`) : null);
}
function typicalCell(node) {
  const pictured = node.typical.filter(pictureOf);
  if (pictured.length) return html("td", {}, html("div", { class: "small-thumbs" }, ...pictured.map((one) => html("img", { src: pictureOf(one), alt: nameOf(one), title: nameOf(one) }))));
  return html("td", { class: "examples" }, html("div", {}, node.typical.slice(0, 4).map(nameOf).join(", ")));
}
function showClusters(isPrinted = false) {
  const columns = COLUMNS.filter((one) => !one.when || one.when()), column = table.column || columns[0];
  const head = html("tr", {}, ...columns.map((one) => html("th", { scope: "col", "aria-sort": one === column ? (one.isDescending ? "descending" : "ascending") : null },
    html("button", { onclick: () => { Object.assign(table, { column: one, page: 0 }); showClusters(); byId("clusters").querySelectorAll("th button")[columns.indexOf(one)].focus(); } }, one.head))));
  const listed = clusters.filter((node) => !table.query || path(node).some((one) => matches(one, table.query))).sort((a, b) => column.value(a) - column.value(b));
  const last = Math.max(0, Math.ceil(listed.length / PER_PAGE) - 1), page = Math.min(table.page, last);
  const some = isPrinted ? listed : listed.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
  const body = some.map((node) => html("tr", { onclick: () => visit(node), "data-id": node.id }, ...columns.map((one) => fill(one.cell(node), { "data-head": one.head }, []))));
  byId("clusters").replaceChildren(html("thead", {}, head), html("tbody", {}, ...body));
  const turn = (text, to) => html("button", { disabled: to < 0 || to > last, onclick: () => { table.page = to; showClusters(); byId("page-clusters").scrollTop = 0; } }, text);
  byId("pages").replaceChildren(...(last ? [turn("← earlier", page - 1), turn("later →", page + 1)] : []),
    html("span", { class: "muted", role: "status" }, listed.length ? `${count(page * PER_PAGE + 1)} to ${count(page * PER_PAGE + some.length)} of ${plural(listed.length, "cluster")}` : "No cluster matches."));
}
function visit(node) { showPage("tree"); choose(node, { keepFocus: true }); }
function startTable() {
  byId("filter").addEventListener("input", (event) => { Object.assign(table, { query: event.target.value.trim().toLowerCase(), page: 0 }); showClusters(); });
  byId("filter").addEventListener("keydown", (event) => event.stopPropagation());
  cutListeners.push(() => { if (!byId("page-clusters").hidden) showClusters(); });
}

const SCORES = {
  adjusted_shortest_path: ["Tree distances", "Are classes that are close in the true tree close in this one? 0 is chance, 1 is perfect."],
  adjusted_path_sharing: ["Shared paths", "Do rows share as much of their paths from the root as in the true tree? 0 is chance, 1 is perfect."],
  adjusted_rand: ["Adjusted Rand index", "Are pairs of rows of one class in one cluster, and others not? 0 is chance, 1 is perfect."],
  adjusted_mutual_info: ["Adjusted mutual information", "How much the cluster of a row says about its class. 0 is chance, 1 is perfect."],
  dendrogram_purity: ["Dendrogram purity", "For two rows of one class, the share of that class in the smallest node with both, on average."],
  shortest_path: ["Shortest path, as in the paper", "Not corrected for chance: depends on the shape of the tree."],
  path_sharing: ["Path sharing, as in the paper", "Not corrected for chance."],
  rand: ["Rand index, as in the paper", "Not corrected for chance."],
};
// What the help says depends on what the tree has.
function showHelp() {
  byId("help-rules").hidden = !data.has_rules || data.n_elsewhere > 0;
  byId("help-elsewhere").hidden = !data.has_rules || !data.n_elsewhere;
  byId("help-means").hidden = data.has_rules;
  byId("help-stability").hidden = !data.stability;
  byId("help-table").hidden = !data.table;
}
function factTable(lines) {
  return html("table", { class: "facts" }, html("tbody", {}, ...lines.map(([name, value, why]) =>
    html("tr", {}, html("th", { scope: "row" }, name), html("td", { class: "num" }, value), html("td", { class: "muted" }, why)))));
}
// How the table was read: what was done to it, its columns, and those that were excluded.
function tableRead({ columns, dropped, notes, counts }) {
  const more = (all, shown) => (all > shown ? html("p", { class: "muted" }, `and ${count(all - shown)} more`) : null);
  const lines = columns.map(([name, kind, missing]) => [name, missing ? missing + " missing" : "", kind]);
  return [html("h3", { id: "table-read" }, "How the table was read"), ...notes.map((note) => html("p", {}, capital(note) + ".")),
    factTable(lines), more(counts[0], columns.length), ...(dropped.length ? [html("h3", {}, "Excluded columns"), factTable(dropped.map(([name, why]) => [name, "", why])), more(counts[1], dropped.length)] : [])].filter(Boolean);
}
function showMeasures() {
  const lines = [
    ["Clusters", count(data.n_clusters), `in a tree of height ${data.height}`],
    ["Rows per cluster", `${count(data.smallest_cluster)} to ${count(data.largest_cluster)}`, "the smallest and the largest"],
  ];
  if (data.features_per_split !== null) lines.push(["Features per split", data.features_per_split, `the median, of ${count(data.n_features)}`]);
  if (data.has_rules && data.n_elsewhere) lines.push(["Rows in another cluster", percent(data.n_elsewhere / data.n_rows, 1), "of rows are in another cluster than the rules predict"]);
  const parts = [html("h3", {}, "The whole tree"), factTable(lines)];
  if (data.stability) {
    const { n_refits: refits, suggested, curve: points } = data.stability, last = Math.max(data.n_clusters, ...points.map(([n]) => n)), where = 100 * (suggested - 1) / Math.max(1, last - 1);
    parts.push(html("h3", {}, "How many clusters?"), html("p", {}, `${capital(data.stability.verdict)}. ${data.stability.left_out} `,
      html("span", { class: "muted" }, `Measured by ${plural(refits, "refit")} on random halves of the rows. ` + "The line is the stability of each number of clusters, from 0 to 1; the dashed line is that of reference data without clusters.")),
      html("div", { class: "chart" }, html("span", { class: "mark", style: { left: where + "%" } }, count(suggested)), curve(520, 150, last), html("div", { class: "axis" }, html("span", {}, "1 cluster"), html("span", {}, plural(last, "cluster")))));
  }
  const known = Object.keys(SCORES).filter((name) => name in data.scores);
  if (known.length) {
    const show = (name) => (data.scores[name] === null ? "–" : data.scores[name].toFixed(3));
    parts.push(html("h3", {}, "Agreement with the known classes"), factTable(known.map((name) => [SCORES[name][0], show(name), SCORES[name][1]])));
    if (unlabelled(root)) parts.push(html("p", { class: "muted" }, `Without ${plural(unlabelled(root), "row")} that ${unlabelled(root) === 1 ? "has" : "have"} no label.`));
  } else {
    parts.push(html("p", { class: "muted" }, "No classes were given to compare with."));
  }
  byId("measures").replaceChildren(...parts, ...(data.table ? tableRead(data.table) : []));
}
