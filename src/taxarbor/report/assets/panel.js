// The panel: all that is known about the chosen node.
function crumbs(node) {
  const line = html("p", { class: "crumbs" });
  path(node).forEach((above, n) => {
    if (n) line.append(" › ");
    line.append(above === node ? html("span", {}, above.name) : html("button", { onclick: () => choose(above) }, above.name));
  });
  return line;
}

function told(node) {
  const parts = [plural(node.size, "row"), percent(node.size / data.n_rows, node.size < 0.1 * data.n_rows ? 1 : 0) + " of all"];
  if (node.label) parts.unshift("Cluster " + node.label);
  if (node.children.length && node.n_features) parts.push("its split uses " + plural(node.n_features, "feature"));
  if (node.fidelity !== null) parts.push("the rule agrees on " + percent(node.fidelity) + " of its rows");
  return html("p", { class: "muted" }, parts.join(" · "));
}

function featureLine(feature) {
  const value = (mean) => (feature.yes_no ? percent(mean) : number(mean));
  const way = feature.sign > 0 ? "plus" : "minus";
  const word = feature.yes_no ? (feature.sign > 0 ? "yes" : "no") : (feature.sign > 0 ? "higher" : "lower");
  return html("div", { class: "feature" },
    html("span", { class: "what" }, html("b", { class: way }, word + " "), feature.name),
    html("span", { class: "how", title: "mean here, and of the siblings" }, value(feature.mean) + " here, " + value(feature.rest) + " beside"),
    html("div", { class: "bar", title: percent(feature.share) + " of the separation" },
      html("span", { style: { width: 100 * feature.share + "%", background: `var(--${way})` } })));
}

function features(node) {
  if (!node.features.length) return [];
  const more = node.n_leading - node.features.length;
  return [html("h3", {}, "What leads here"), ...node.features.map(featureLine),
    more > 0 ? html("p", { class: "muted" }, `and ${plural(more, "feature")} more`) : null];
}

function childButtons(node) {
  if (!node.children.length) return node.note ? [html("p", { class: "muted" }, "Not divided further: " + node.note)] : [];
  return [html("h3", {}, "Divides into"), ...node.children.map((id) => nodes[id]).map((child) =>
    html("button", { class: "child", onclick: () => choose(child) },
      html("span", {}, child.name), html("span", { class: "muted" }, plural(child.size, "row"))))];
}

function classBars(node) {
  if (!node.classes.length) return [];
  const strip = html("div", { class: "bar strip" }, ...node.classes.map(([code, count]) =>
    html("span", { style: { width: 100 * count / node.size + "%", background: colour(code) } })));
  const legend = html("div", { class: "legend" });
  for (const [code, count] of node.classes) {
    legend.append(html("i", { style: { background: colour(code) } }), html("span", {}, code < 0 ? "others" : data.classes[code]),
      html("span", { class: "num" }, `${count.toLocaleString("en")} · ${percent(count / node.size)}`));
  }
  return [html("h3", {}, "Known classes"), strip, legend];
}

function histogram(node) {
  if (!node.margins.length) return [];
  const isPair = node.margins.length === 2, tall = 70, wide = 360;
  const bins = node.margins[0].length, most = Math.max(1, ...node.margins[0].map((_, n) => node.margins.reduce((sum, side) => sum + side[n], 0)));
  const told = node.children.map((id) => `${nodes[id].name}: ${plural(nodes[id].size, "row")}`).join("; ");
  const picture = svg("svg", { class: "histogram", viewBox: `0 -4 ${wide} ${tall + 24}`, role: "img", "aria-label": "Histogram of margins. " + told });
  const shade = (which) => (isPair ? (which ? "var(--accent)" : "var(--first)") : COLOURS[which % COLOURS.length]);
  for (let n = 0; n < bins; n++) {
    let base = tall;
    node.margins.forEach((side, which) => {
      const height = tall * side[n] / most;
      base -= height;
      if (height) picture.append(svg("rect", { x: n * wide / bins + 0.5, y: base, width: wide / bins - 1, height, rx: 1, style: { fill: shade(which) } }));
    });
  }
  picture.append(svg("line", { x1: 0, x2: wide, y1: tall, y2: tall, style: { stroke: "var(--line)" } }),
    svg("line", { x1: wide / 2, x2: wide / 2, y1: -4, y2: tall, style: { stroke: "var(--ink)", strokeDasharray: "2 3" } }));
  const [left, right] = isPair ? node.children.map((id) => fit(nodes[id].name, 150, "9px system-ui")) : ["", "clearer →"];
  picture.append(svg("text", { x: 0, y: tall + 13 }, isPair ? "← " + left : ""), svg("text", { x: wide / 2, y: tall + 13, "text-anchor": "middle" }, "border"),
    svg("text", { x: wide, y: tall + 13, "text-anchor": "end" }, isPair ? right + " →" : right));
  const legend = isPair ? null : html("div", { class: "legend" }, ...node.children.flatMap((id, which) => [
    html("i", { style: { background: shade(which) } }), html("span", {}, nodes[id].name), html("span", { class: "num" }, plural(nodes[id].size, "row"))]));
  return [html("h3", {}, "How clearly it divides"), picture, legend];
}

function thumb(one) {
  const name = data.rows[one.row][0], source = data.pictures[one.row];
  const image = html("img", { src: source, alt: name, loading: "lazy", onload: (event) => event.target.classList.toggle("small", event.target.naturalWidth < 40) });
  return html("figure", { title: name }, image, html("figcaption", {}, name));
}

function rowTable(node, some, margin) {
  const columns = node.features.slice(0, 3);
  const body = some.map((one) => {
    const [name, code] = data.rows[one.row];
    const dot = code >= 0 ? html("i", { title: data.classes[code], style: { background: colour(code), display: "inline-block", width: ".6em", height: ".6em", borderRadius: "50%", marginRight: ".45em" } }) : null;
    return html("tr", {}, html("td", {}, dot, name), ...columns.map((_, n) => html("td", {}, number(one.values[n]))), html("td", {}, one.margin === null ? "–" : one.margin.toFixed(2)));
  });
  const top = html("tr", {}, html("th", {}, ""), ...columns.map((feature) => html("th", {}, feature.name.replaceAll("_", "_\u200b"))), html("th", {}, margin));
  return html("table", { class: "rows" }, html("thead", {}, top), html("tbody", {}, ...body));
}

function examples(node, kind, title, margin, without = []) {
  const some = node[kind].filter((one) => !without.some((other) => other.row === one.row));
  if (!some.length) return [];
  const pictured = some.filter((one) => data.pictures[one.row]);
  return [html("h3", {}, title), pictured.length ? html("div", { class: "thumbs" }, ...pictured.map(thumb)) : rowTable(node, some, margin)];
}

function members(node) {
  if (!hasNames) return [];
  const most = Math.min(node.stop, node.start + 500), names = [];
  for (let n = node.start; n < most; n++) names.push(nameAt(n));
  const rest = node.size - names.length;
  return [html("details", {}, html("summary", {}, "All " + plural(node.size, "row")),
    html("p", { class: "members" }, names.join(" · ") + (rest > 0 ? ` · and ${rest.toLocaleString("en")} more` : "")))];
}

// A row that was searched for: where it is, and where on its path it was least clear.
function foundRow(node, position) {
  if (position === undefined) return null;
  const card = html("div", { class: "found-row" }, html("b", {}, nameAt(position)), ` is in ${node.label || node.name}.`);
  if (data.weakest) {
    const [margin, id] = data.weakest[position];
    card.append(html("div", { class: "muted" }, `Its least margin on the path, at “${nodes[id].name}”, is ${margin.toFixed(2)}: ${margin < 0.3 ? "a close call" : margin < 1 ? "clear enough" : "clear"}.`));
  }
  return card;
}

function showPanel(node, { position } = {}) {
  const panel = byId("panel"), hadFocus = panel.contains(document.activeElement);
  panel.replaceChildren(...[foundRow(node, position), crumbs(node), html("div", { class: "panel-title" }, node.name), told(node), ...features(node), ...childButtons(node),
    ...histogram(node), ...classBars(node), ...examples(node, "exemplars", "Exemplars", "least margin"),
    ...examples(node, "borderline", node.children.length ? "On the border between its children" : "On its border", "margin", node.exemplars), ...members(node)].filter(Boolean));
  panel.scrollTop = 0;
  byId("said").textContent = `${node.name}, ${plural(node.size, "row")}`;
  if (hadFocus) panel.focus();
}
listeners.push(showPanel);
