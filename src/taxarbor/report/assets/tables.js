// The pages beside the tree: the clusters in a table, and the measures.
const PER_PAGE = 40;
const table = { column: null, page: 0, query: "" };
const COLUMNS = [
  { head: "Cluster", value: (node) => node.start, cell: nameCell },
  { head: "Rows", isDescending: true, value: (node) => -node.size, cell: sizeCell },
  { head: "What stands out", value: (node) => -Math.abs((node.stands[0] || [0, 0, 0])[2]), isDescending: true, cell: standCell, when: () => nodes.some((node) => node.stands.length) },
  { head: "Came back", value: (node) => node.came_back, cell: trustCell, when: () => data.trust },
  { head: "Classes", isDescending: true, value: (node) => (majority(node) ? -shareOf(node, majority(node)[1]) : 0), cell: classCell, when: () => data.classes.length },
  { head: "Typical rows", value: (node) => node.start, cell: typicalCell, when: () => data.speak || Object.keys(data.pictures).length },
];
function nameCell(node) {
  return html("td", { class: "called", title: path(node).slice(1).map((step) => step.name).join(" › ") }, html("button", { class: "go", onclick: () => visit(node) }, node.label), html("span", {}, ...soft(node.name)));
}
function sizeCell(node) {
  const most = Math.max(...clusters.map((cluster) => cluster.size));
  return html("td", { class: "num" }, count(node.size), html("span", { class: "muted" }, " · " + percent(node.size / data.n_rows, 1)),
    html("div", { class: "bar" }, html("span", { style: { width: 100 * node.size / most + "%", background: "var(--lit)" } })));
}
function standCell(node) {
  return html("td", { class: "stands" }, html("div", {}, ...node.stands.slice(0, 3).map(standing).map((one) => html("div", { title: `${one.mean} here, ${one.every} in all rows` }, one.picture(48, 16), one.what))));
}
function trustCell(node) {
  if (!node.depth) return html("td", {});
  return html("td", { class: node.stable ? "num" : "num warn", title: node.returned }, html("i", { class: "blot", style: { background: mix(node.came_back / data.trust.n_refits) } }), `${node.came_back} of ${data.trust.n_refits}`, leftOut(node) && html("div", { class: "muted" }, leftOut(node)), node.stable ? null : html("div", {}, 2 * node.came_back < data.trust.n_refits ? "not stable" : "without a gap: not stable"));
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
  const found = clusters.filter((node) => !table.query || path(node).some((one) => matches(one, table.query))).sort((a, b) => column.value(a) - column.value(b));
  const last = Math.max(0, Math.ceil(found.length / PER_PAGE) - 1), page = Math.min(table.page, last);
  const some = isPrinted ? found : found.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
  const body = some.map((node) => html("tr", { onclick: () => visit(node), "data-id": node.id }, ...columns.map((one) => fill(one.cell(node), { "data-head": one.head }, []))));
  byId("clusters").replaceChildren(html("thead", {}, head), html("tbody", {}, ...body));
  const turn = (text, to) => html("button", { disabled: to < 0 || to > last, onclick: () => { table.page = to; showClusters(); byId("page-clusters").scrollTop = 0; } }, text);
  byId("pages").replaceChildren(...(last ? [turn("← earlier", page - 1), turn("later →", page + 1)] : []),
    html("span", { class: "muted", role: "status" }, found.length ? `${count(page * PER_PAGE + 1)} to ${count(page * PER_PAGE + some.length)} of ${plural(found.length, "cluster")}` : "No cluster is like that."));
}
function visit(node) { showPage("tree"); choose(node, { keepFocus: true }); }
function startTable() {
  byId("filter").addEventListener("input", (event) => { Object.assign(table, { query: event.target.value.trim().toLowerCase(), page: 0 }); showClusters(); });
  byId("filter").addEventListener("keydown", (event) => event.stopPropagation());
  cutListeners.push(() => { if (!byId("page-clusters").hidden) showClusters(); });
}

const SCORES = {
  adjusted_shortest_path: ["Tree distances", "Do classes that are near in the true tree end up near in this one? 0 is chance, 1 is perfect."],
  adjusted_path_sharing: ["Shared paths", "Do rows share as much of their path from the root as in the true tree? 0 is chance, 1 is perfect."],
  adjusted_rand: ["Adjusted Rand index", "Are pairs of rows together in the clusters if they are in the classes? 0 is chance, 1 is perfect."],
  adjusted_mutual_info: ["Adjusted mutual information", "How much the cluster of a row tells about its class. 0 is chance, 1 is perfect."],
  dendrogram_purity: ["Dendrogram purity", "Take two rows of one class and the smallest node with both: which share of it is of that class, on average?"],
  shortest_path: ["Shortest path, as in the paper", "Not corrected for chance: rewards the shape of a tree."],
  path_sharing: ["Path sharing, as in the paper", "Not corrected for chance."],
  rand: ["Rand index, as in the paper", "Not corrected for chance."],
};
// What the help says depends on what the tree has.
function showHelp() {
  byId("help-rules").hidden = !data.has_rules || data.n_elsewhere > 0;
  byId("help-elsewhere").hidden = !data.has_rules || !data.n_elsewhere;
  byId("help-means").hidden = data.has_rules;
  byId("help-trust").hidden = !data.trust;
  byId("help-probable").hidden = !data.probabilities;
  byId("help-guess").hidden = data.measured;
  byId("help-table").hidden = !data.table;
}
function factTable(lines) {
  return html("table", { class: "facts" }, html("tbody", {}, ...lines.map(([name, value, why]) =>
    html("tr", {}, html("th", { scope: "row" }, name), html("td", { class: "num" }, value), html("td", { class: "muted" }, why)))));
}
// How the table was read: what was done to it, its columns, and those that were left out.
function tableRead({ columns, dropped, notes, counts }) {
  const more = (all, shown) => (all > shown ? html("p", { class: "muted" }, `and ${count(all - shown)} more`) : null);
  const lines = columns.map(([name, kind, missing]) => [name, missing ? missing + " unknown" : "", kind]);
  return [html("h3", { id: "table-read" }, "How the table was read"), ...notes.map((note) => html("p", {}, capital(note) + ".")),
    factTable(lines), more(counts[0], columns.length), ...(dropped.length ? [html("h3", {}, "Columns that were left out"), factTable(dropped.map(([name, why]) => [name, "", why])), more(counts[1], dropped.length)] : [])].filter(Boolean);
}
function showMeasures() {
  const facts = data.facts;
  const lines = [
    ["Clusters", count(data.n_clusters), `in a tree of height ${data.height}`],
    ["Rows per cluster", `${count(facts.smallest)} to ${count(facts.largest)}`, "the smallest and the largest"],
  ];
  if (facts.features_per_split !== null) lines.push(["Features per split", facts.features_per_split, `the median, of ${count(data.n_features)}`]);
  if (data.has_rules && data.n_elsewhere) lines.push(["Rows elsewhere", percent(data.n_elsewhere / data.n_rows, 1), "of rows are in another cluster than the one that the rules send them to"]);
  const parts = [html("h3", {}, "The tree, not cut"), factTable(lines)];
  if (data.trust) {
    const { n_refits: refits, suggested, curve: points } = data.trust, last = Math.max(data.n_clusters, ...points.map(([n]) => n)), where = 100 * (suggested - 1) / Math.max(1, last - 1);
    parts.push(html("h3", {}, "How many clusters?"), html("p", {}, `${capital(data.trust.verdict)}. ${data.trust.left_out} `,
      html("span", { class: "muted" }, `Measured by ${plural(refits, "refit")} to halves of the rows. ` + "The line is the stability of each cut, from 0 to 1; the dashed one that of data of the same shape without clusters.")),
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
