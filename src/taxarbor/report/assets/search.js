// Search: nodes by their names, features and labels, and rows by their names.
const MAX_RESULTS = 12;
let results = [], marked = -1;

function matches(node, query) {
  const top = majority(node);
  const words = [node.name, node.label || "", ...node.deciding.map((feature) => feature.name), ...node.distinctive.slice(0, 4).map((feature) => feature.name)];
  if (top) words.push(data.classes[top[0]]);
  return words.some((word) => word.toLowerCase().includes(query));
}
function findRows(query) {
  const rows = [];
  if (hasNames()) {
    // An exact match comes first.
    for (let n = 0; n < data.n_rows && rows.length < 500; n++) {
      const name = nameAt(n);
      if (name.toLowerCase().includes(query)) rows.push({ kind: "row", text: name, position: n, isExact: name.toLowerCase() === query });
    }
    return rows.sort((a, b) => b.isExact - a.isExact).slice(0, MAX_RESULTS);
  }
  for (const leaf of leaves) {
    for (const one of [...leaf.typical, ...leaf.extreme, ...leaf.borderline]) {
      const name = nameOf(one);
      if (name.toLowerCase().includes(query) && !rows.some((other) => other.text === name)) rows.push({ kind: "row", text: name, leaf });
    }
  }
  return rows.slice(0, MAX_RESULTS);
}

function search() {
  const box = byId("search"), list = byId("found"), query = box.value.trim().toLowerCase();
  hits.clear();
  marked = -1;
  const matched = query ? nodes.filter((node) => isThere(node) && matches(node, query)) : [];
  matched.forEach((node) => hits.add(node.id));
  const rows = query ? findRows(query) : [];
  const branches = matched.slice(0, MAX_RESULTS).map((node) => ({ kind: node.label || "branch", text: node.name, node }));
  results = [...rows.slice(0, MAX_RESULTS / 2), ...branches, ...rows.slice(MAX_RESULTS / 2)].slice(0, MAX_RESULTS);
  list.replaceChildren(...results.map((result, n) => html("li", { role: "option", id: "found-" + n, "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); take(n); } },
    html("span", { class: "kind" }, result.kind), html("span", { class: "text", title: result.text }, result.text))));
  if (query && !results.length) list.append(html("li", { class: "muted", "aria-disabled": "true" }, "Nothing found"));
  if (query && !hasNames()) list.append(html("li", { class: "muted", "aria-disabled": "true" }, "This page has too many rows to search all of them: only typical, extreme and borderline rows are listed."));
  list.hidden = !query;
  box.setAttribute("aria-expanded", String(!list.hidden));
  byId("count").textContent = query ? `${plural(matched.length, "branch", "branches")} and ${plural(rows.length, "row")} found` : "";
  box.removeAttribute("aria-activedescendant");
  mark();
}
function point(n) {
  const options = [...byId("found").querySelectorAll("[role=option]")];
  if (!options.length) return;
  marked = (n + options.length) % options.length;
  options.forEach((option, at) => option.setAttribute("aria-selected", String(at === marked)));
  options[marked].scrollIntoView({ block: "nearest" });
  byId("search").setAttribute("aria-activedescendant", "found-" + marked);
}
function close() { byId("found").hidden = true; byId("search").setAttribute("aria-expanded", "false"); }
function take(n) {
  if (!results[n]) return;
  const { node, leaf, position } = results[n];
  showPage("tree");
  // The cluster of a row, as the tree is cut now.
  choose(node || path(leaf || leafAt(position)).filter(isThere).at(-1), { position });
  close();
}
function startSearch() {
  const box = byId("search");
  box.addEventListener("input", search);
  box.addEventListener("focus", () => { if (box.value) { byId("found").hidden = false; box.setAttribute("aria-expanded", "true"); } });
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    const keys = {
      ArrowDown: () => point(marked + 1), ArrowUp: () => point(marked - 1), Enter: () => take(Math.max(marked, 0)),
      Escape: () => { box.value = ""; search(); close(); box.blur(); },
    };
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
    event.stopPropagation();
  });
}
