// The pages beside the tree: all clusters in a table, and the measures.
const COLUMNS = [
  { head: "Cluster", value: (node) => node.start, cell: (node) => html("td", {}, html("button", { class: "go", onclick: () => visit(node) }, node.label)) },
  { head: "Path from the root", value: (node) => node.start, cell: wayCell },
  { head: "Rows", isDescending: true, value: (node) => -node.size, cell: (node) => html("td", { class: "num" }, node.size.toLocaleString("en")) },
  { head: "Share", isDescending: true, value: (node) => -node.size, cell: (node) => html("td", { class: "num" }, percent(node.size / data.n_rows, 1)) },
  { head: "Largest class", isDescending: true, value: (node) => -(majority(node) || [0, 0])[1] / node.size, cell: classCell, when: () => data.classes.length },
  { head: "Exemplars", value: (node) => node.start, cell: (node) => html("td", {}, node.exemplars.slice(0, 3).map((one) => data.rows[one.row][0]).join(", ")) },
];
const LONGEST_WAY = 12;
function wayCell(node) {
  const cell = html("td", { class: "way" });
  let steps = path(node).slice(1).map((step) => step.name);
  if (steps.length > LONGEST_WAY) steps = [...steps.slice(0, 3), `… ${steps.length - 8} more …`, ...steps.slice(-5)];
  steps.forEach((step, n) => {
    if (n) cell.append(html("span", { class: "sep" }, " › "));
    cell.append(step);
  });
  return cell;
}
function classCell(node) {
  const top = majority(node);
  return html("td", {}, top ? `${data.classes[top[0]]} · ${percent(top[1] / node.size)}` : "");
}
function showClusters(column = COLUMNS[0]) {
  const columns = COLUMNS.filter((one) => !one.when || one.when());
  const head = html("tr", {}, ...columns.map((one) => html("th", { scope: "col", "aria-sort": one === column ? (one.isDescending ? "descending" : "ascending") : null },
    html("button", { onclick: () => { showClusters(one); byId("clusters").querySelectorAll("th button")[columns.indexOf(one)].focus(); } }, one.head))));
  const sorted = leaves.slice().sort((a, b) => column.value(a) - column.value(b));
  const body = sorted.map((node) => html("tr", { onclick: () => visit(node) }, ...columns.map((one) => one.cell(node))));
  byId("clusters").replaceChildren(html("thead", {}, head), html("tbody", {}, ...body));
}
function visit(node) { showPage("tree"); choose(node, { keepFocus: true }); }
function showClustersOnce() { if (!byId("clusters").hasChildNodes()) showClusters(); }

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
// What the help says of rules depends on what places the rows.
function showHelp() {
  for (const kind of ["placed", "rules", "means"]) byId("help-" + kind).hidden = data.decides !== kind;
}
function factTable(lines) {
  return html("table", { class: "facts" }, html("tbody", {}, ...lines.map(([name, value, why]) =>
    html("tr", {}, html("th", { scope: "row" }, name), html("td", { class: "num" }, value), html("td", { class: "muted" }, why)))));
}
function showMeasures() {
  const facts = data.facts;
  const lines = [
    ["Clusters", String(data.n_clusters), `in a tree of height ${data.height}`],
    ["Rows per cluster", `${facts.smallest.toLocaleString("en")} to ${facts.largest.toLocaleString("en")}`, "the smallest and the largest"],
  ];
  if (facts.features_per_split !== null) lines.push(["Features per split", number(facts.features_per_split), `the median, of ${data.n_features.toLocaleString("en")}`]);
  if (facts.fidelity !== null) lines.push(["Rules agree", percent(facts.fidelity, 1), "the share of rows that the few features of a split send to the right child, on average"]);
  const parts = [html("h3", {}, "The tree"), factTable(lines)];
  const known = Object.keys(SCORES).filter((name) => name in data.scores);
  if (known.length) {
    const show = (name) => (data.scores[name] === null ? "–" : data.scores[name].toFixed(3));
    parts.push(html("h3", {}, "Agreement with the known classes"), factTable(known.map((name) => [SCORES[name][0], show(name), SCORES[name][1]])));
  } else {
    parts.push(html("p", { class: "muted" }, "No classes were given to compare with."));
  }
  byId("measures").replaceChildren(...parts);
}
