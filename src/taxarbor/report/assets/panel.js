// The panel: all that is known about the chosen node.
function crumbs(node) {
  const line = html("p", { class: "crumbs" });
  path(node).forEach((above, n) => {
    if (n) line.append(" › ");
    line.append(above === node ? html("span", {}, above.name) : html("button", { onclick: () => choose(above) }, above.name));
  });
  return line;
}

function sizeLine(node) {
  const parts = [plural(node.size, "row"), percent(node.size / (data.n_rows + data.n_noise), node.size < 0.1 * data.n_rows ? 1 : 0) + " of all"];
  if (node.label) parts.unshift("Cluster " + node.label); else parts.push(plural(node.count, "cluster"));
  return html("p", { class: "muted" }, parts.join(" · "));
}
// How rows are assigned, in a sentence.
function origin() {
  if (!data.has_rules) return "This taxonomy has no rules: the words compare the means of its nodes.";
  if (!data.n_elsewhere) return "Rows are assigned by the rules on their paths.";
  return `New rows are assigned by the rules; ${plural(data.n_elsewhere, "row")} of the fit ${data.n_elsewhere === 1 ? "is" : "are"} in another cluster than the rules predict, as where the sizes of clusters are bounded.`;
}
// Notes on the whole tree, and the stability of the cluster.
function notes(node) {
  const lines = [];
  if (!node.depth && data.n_clusters > 1) lines.push(html("p", { class: "note" }, origin()));
  if (!node.depth && data.n_excluded) lines.push(html("p", { class: "note" }, `${plural(data.n_excluded, "row")} ${data.n_excluded === 1 ? "was" : "were"} excluded from the fit (outliers, only missing values, or weight 0), and then assigned by the rules.`));
  if (!node.depth && data.table) lines.push(html("p", { class: "note" }, `${plural(data.table.counts[2], "column")} of the table ${data.table.counts[2] === 1 ? "is" : "are"} used, ${count(data.table.counts[1])} excluded. `, html("button", { onclick: () => { showPage("measures"); byId("table-read").scrollIntoView(); } }, "How it was read")));
  if (!node.depth && data.stability) lines.push(html("p", { class: "note" }, `${capital(data.stability.verdict)}. ${data.stability.left_out}`));
  if (recurrence(node)) {
    lines.push(html("p", { class: node.is_stable ? "note" : "note warn" }, html("i", { class: "blot", style: { background: mix(node.n_recovered / data.stability.n_refits) } }),
      capital(recurrence(node)) + (node.is_stable ? "." : ": not a stable cluster.") + (leftOut(node) && ` ${leftOut(node)}.`)));
  }
  return lines;
}

// A small histogram of some rows, before the outline of that of all rows.
function spark(own, every, width = 64, height = 22) {
  const heights = (digits) => { const all = [...digits].map((digit) => parseInt(digit, 36)), sum = all.reduce((a, b) => a + b, 0) || 1; return all.map((one) => one / sum); };
  if (own.length === 2) {  // of what is yes or no: how often it is yes
    const [yes, other] = [heights(own)[1] * width, heights(every)[1] * width];
    return svg("svg", { class: "spark", width, height, "aria-hidden": "true" }, svg("rect", { class: "track", y: height / 2 - 4, width, height: 8, rx: 2 }),
      svg("rect", { class: "here", y: height / 2 - 4, width: yes, height: 8, rx: 2 }), svg("path", { class: "all tick", d: `M${other},${height / 2 - 7}v14` }));
  }
  const here = heights(own), there = heights(every), most = Math.max(...here, ...there, 1e-9), wide = width / here.length;
  const y = (value) => (height - 1) * (1 - value / most) + 1;
  const bars = here.map((value, n) => `M${(n * wide + 0.5).toFixed(1)},${height}V${y(value).toFixed(1)}h${(wide - 1).toFixed(1)}V${height}`).join("");
  const outline = "M0," + y(there[0]).toFixed(1) + there.map((value, n) => `V${y(value).toFixed(1)}H${((n + 1) * wide).toFixed(1)}`).join("");
  return svg("svg", { class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, svg("path", { class: "here", d: bars }), svg("path", { class: "all", d: outline }));
}
// The share of missing values, where there are any.
const unknownIn = (share) => html("span", { class: "unknown" }, ` ${share} unknown`);
function distinctiveFeature({ name, text, effect, mean, every, counts, all_counts: all, missing }) {
  const at = text.lastIndexOf(name), parts = at < 0 ? ["", text, ""] : [text.slice(0, at), name, text.slice(at + name.length)];
  const what = html("span", { class: "what" }, html("b", { class: effect > 0 ? "plus" : "minus" }, parts[0]), ...soft(parts[1] + parts[2]));
  if (missing) what.append(unknownIn(missing));
  return { every, mean, effect, what, picture: (...size) => spark(counts, all, ...size) };
}
function distinctive(node) {
  if (!node.distinctive.length || !node.depth) return [];
  const line = (one) => html("div", { class: "distinctive" }, one.picture(), one.what, html("span", { class: "how" }, one.mean, html("br"), one.every), html("span", { class: "how" }, Math.abs(one.effect).toFixed(2)));
  const head = html("div", { class: "distinctive how" }, html("span"), html("span"), html("span", { class: "how" }, "here", html("br"), "all rows"), html("span", { class: "how", title: "from 0 to 1: how well this feature alone separates these rows from all others" }, "effect"));
  return [html("h3", {}, "Distinctive features, compared with all rows"), head, ...node.distinctive.slice(0, 6).map((one) => line(distinctiveFeature(one)))];
}

function decidingFeature(feature) {
  const way = feature.sign > 0 ? "plus" : "minus";
  return html("div", { class: "feature" },
    html("span", { class: "what" }, html("span", { class: way }, ...soft(feature.text)), feature.missing ? unknownIn(feature.missing) : null),
    html("span", { class: "how", title: "mean of this node, and of its siblings" }, `${feature.mean} here, ${feature.rest} in siblings`),
    html("div", { class: "bar", title: percent(feature.share || 0) + " of the separation" }, html("span", { style: { width: 100 * (feature.share || 0) + "%", background: `var(--${way})` } })));
}
function deciding(node) {
  if (!node.deciding.length) return [];
  const more = node.n_deciding - node.deciding.length;
  return [html("h3", {}, "Deciding features, compared with its siblings"), ...node.deciding.map(decidingFeature), more > 0 ? html("p", { class: "muted" }, `and ${plural(more, "feature")} more`) : null];
}

function childButtons(node) {
  if (!kids(node).length) return node.note && !node.children.length ? [html("p", { class: "muted" }, "Not split further: " + node.note)] : [];
  return [html("h3", {}, "Splits into"), ...kids(node).map((child) =>
    html("button", { class: "child", onclick: () => choose(child) },
      html("span", {}, child.label ? html("b", {}, child.label + " ") : null, ...soft(child.name)), html("span", { class: "muted" }, plural(child.size, "row")))),
    node.n_features ? html("p", { class: "muted small" }, `By ${plural(node.n_features, "feature")}.`) : null,
    node.decision ? html("p", { class: "muted small" }, node.decision[0].toUpperCase() + node.decision.slice(1) + ".") : null];
}

// The classes that have room at first; the others are a click away.
const FIRST = 12;
function classBars(node) {
  if (!node.classes.length) return [];
  const strip = html("div", { class: "bar strip" }, ...node.classes.map(([code, rows]) =>
    html("span", { title: calledClass(code), style: { width: 100 * rows / node.size + "%", background: colour(code) } })));
  const lines = (some) => html("div", { class: "legend" }, ...some.flatMap(([code, rows]) => [html("i", { style: { background: colour(code) } }),
    html("span", {}, calledClass(code)), html("span", { class: "num" }, count(rows) + (code === -2 ? "" : ` · ${percent(shareOf(node, rows))}`))]));
  const known = node.classes.filter(([code]) => code !== -2), isShort = known.length <= FIRST + 3;
  const first = lines([...(isShort ? known : known.slice(0, FIRST)), ...node.classes.slice(known.length)]);
  const rest = isShort ? null : html("details", {}, html("summary", {}, `${plural(known.length - FIRST, "class", "classes")} more`), lines(known.slice(FIRST)));
  return [html("h3", {}, "Known classes"), strip, first, rest];
}

function histogram(node) {
  if (!kids(node).length || !node.margins.length) return [];
  const isPair = node.margins.length === 2, tall = 64, wide = 360;
  const bins = node.margins[0].length, most = Math.max(1, ...node.margins[0].map((_, n) => node.margins.reduce((sum, side) => sum + side[n], 0)));
  const names = node.children.map((child) => `${child.name}: ${plural(child.size, "row")}`).join("; ");
  const picture = svg("svg", { class: "histogram", viewBox: `0 -4 ${wide} ${tall + 5}`, preserveAspectRatio: "none", role: "img", "aria-label": "Histogram of margins. " + names });
  const tone = (which) => (isPair ? (which ? "var(--accent)" : "var(--first)") : COLOURS[which % COLOURS.length]);
  for (let n = 0; n < bins; n++) {
    let base = tall;
    node.margins.forEach((side, which) => {
      const height = tall * side[n] / most;
      base -= height;
      if (height) picture.append(svg("rect", { x: n * wide / bins + 0.5, y: base, width: wide / bins - 1, height, rx: 1, style: { fill: tone(which) } }));
    });
  }
  picture.append(svg("line", { x1: 0, x2: wide, y1: tall, y2: tall, style: { stroke: "var(--line)" } }),
    svg("line", { x1: wide / 2, x2: wide / 2, y1: -4, y2: tall, style: { stroke: "var(--ink)", strokeDasharray: "2 3" } }));
  const [left, right] = isPair ? node.children.map((child) => child.name) : ["", "clearer"];
  const axis = html("div", { class: "axis" }, html("span", {}, left && "← " + left), html("span", {}, "border"), html("span", {}, right + " →"));
  const legend = isPair ? null : html("div", { class: "legend" }, ...node.children.flatMap((child, which) => [
    html("i", { style: { background: tone(which) } }), html("span", {}, child.name), html("span", { class: "num" }, plural(child.size, "row"))]));
  return [html("h3", {}, "Margins of this split"), picture, axis, legend];
}

function thumb(one) {
  const name = nameOf(one);
  const image = html("img", { src: pictureOf(one), alt: name, loading: "lazy", onload: (event) => event.target.classList.toggle("small", event.target.naturalWidth < 40) });
  return html("figure", { title: name }, image, html("figcaption", {}, name));
}
// Rows with their values of the deciding features and their margin.
function rowTable(node, some, margin) {
  const columns = some[0].values.map((_, n) => ({ head: node.deciding[n].name.replaceAll("_", "_\u200b"), cell: (one) => one.values[n] }));
  if (margin && some.some((one) => one.margin !== null)) columns.push({ head: margin, cell: (one) => (one.margin === null ? "–" : one.margin.toFixed(2)) });
  const body = some.map((one) => {
    const [name, code] = data.rows[one.row];
    const dot = code >= 0 ? html("i", { class: "blot", title: data.classes[code], style: { background: colour(code) } }) : null;
    return html("tr", {}, html("td", {}, dot, name), ...columns.map((column) => html("td", {}, column.cell(one))));
  });
  const top = html("tr", {}, html("th", {}, ""), ...columns.map((column) => html("th", {}, column.head)));
  return html("table", { class: "rows" }, html("thead", {}, top), html("tbody", {}, ...body));
}
function examples(node, which, title, why, margin) {
  const some = node[which], pictured = some.filter(pictureOf);
  if (!some.length || !pictured.length && !data.names_are_words && !some[0].values.length) return [];  // numbers of rows alone are of no use
  return [html("h3", { title: why }, title, html("span", { class: "why" }, why)), pictured.length ? html("div", { class: "thumbs" }, ...pictured.map(thumb)) : rowTable(node, some, margin)];
}

function members(node) {
  if (!hasNames()) return [html("p", { class: "muted small" }, "This page has too many rows to list or download them.")];
  const most = Math.min(node.stop, node.start + 500), names = [];
  for (let n = node.start; n < most; n++) names.push(nameAt(n));
  const rest = node.size - names.length;
  return [html("details", {}, html("summary", {}, "All " + plural(node.size, "row")), html("p", { class: "members" }, names.join(" · ") + (rest > 0 ? ` · and ${count(rest)} more` : ""))),
    order ? html("button", { class: "download", onclick: () => download(node) }, `Download ${node.size === 1 ? "this row" : node.depth ? "these " + plural(node.size, "row") : "all " + plural(data.n_rows + data.n_noise, "row")} (CSV)`) : null];
}

// Noise: rows that are in no cluster. Their names follow those of the tree's rows.
function noiseList(node) {
  if (node.depth || !data.n_noise) return [];
  const names = [];
  for (let n = 0; hasNames() && n < Math.min(data.n_noise, 50); n++) names.push(nameAt(data.n_rows + n));
  const rest = data.n_noise - names.length, more = rest > 0 && names.length ? ` · and ${count(rest)} more` : "";
  return [html("h3", {}, "Noise"), html("p", { class: "muted" }, `${plural(data.n_noise, "row")} too far from every cluster to belong to one: cluster -1 in downloads.`), html("p", { class: "members" }, names.join(" · ") + more)];
}

// A row that was searched for: its cluster, and its least margin on the path.
function rowCard(node, position) {
  if (position === undefined) return null;
  const card = html("div", { class: "row-card" }, html("b", {}, nameAt(position)), ` is in ${node.label || node.name}.`);
  if (leastMargins) {
    const margin = (leastMargins.margin[position] - 300) / 100, about = leastMargins.node[position];
    const text = `Its least margin on the path, at “${nodes[about].name}”, is ${margin.toFixed(2)}: ${margin < 0.3 ? "a close call" : margin < 1 ? "clear enough" : "clear"}.`;
    card.append(html("div", { class: "muted" }, text));
  }
  return card;
}

function showPanel(node, { position } = {}) {
  const panel = byId("panel"), hadFocus = panel.contains(document.activeElement);
  const title = html("div", { class: "panel-title" }, node.label ? html("span", { class: "tag" }, node.label) : null, ...soft(node.name));
  const border = kids(node).length ? "nearest to the border between its children" : "nearest to its border";
  panel.replaceChildren(...[rowCard(node, position), crumbs(node), title, sizeLine(node), ...notes(node), ...distinctive(node), ...deciding(node), ...childButtons(node), ...histogram(node), ...classBars(node),
    ...examples(node, "typical", "Typical rows", "nearest to the mean"), ...examples(node, "extreme", "Extreme rows", "farthest inside all borders", "least margin"),
    ...examples(node, "borderline", "Borderline rows", border, "margin"), ...noiseList(node), ...members(node)].filter(Boolean));
  panel.scrollTop = 0;
  byId("status").textContent = spoken(node);
  if (hadFocus) panel.focus();
}
listeners.push(showPanel);
