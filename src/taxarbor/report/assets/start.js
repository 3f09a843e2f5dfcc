"use strict";
// What the other parts share: the data, and ways to make elements. Text is only ever set as text.
const data = JSON.parse(document.getElementById("data").textContent);
const nodes = data.nodes;
nodes.forEach((node, id) => { node.id = id; node.children = []; node.size = node.stop - node.start; });
nodes.forEach((node) => {
  node.depth = 0;
  if (node.parent !== null) {
    nodes[node.parent].children.push(node.id);
    node.depth = nodes[node.parent].depth + 1;
  }
});
const leaves = nodes.filter((node) => !node.children.length).sort((a, b) => a.start - b.start);
leaves.forEach((node, label) => { node.label = "c" + label; });

const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#a39a00", "#8a63b8"];
const byId = (id) => document.getElementById(id);

function fill(element, attributes, kids) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") Object.assign(element.style, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...kids.filter((kid) => kid !== null && kid !== undefined));
  return element;
}
function html(tag, attributes, ...kids) { return fill(document.createElement(tag), attributes, kids); }
function svg(tag, attributes, ...kids) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, kids);
}

const plural = (count, one) => count.toLocaleString("en") + " " + one + (count === 1 ? "" : "s");
const percent = (share, digits = 0) => (100 * share).toFixed(digits) + " %";
function number(value) {
  if (value === null) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(1);
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 6 : 3 });
}
function colour(code) {
  if (code < 0) return "var(--other)";
  return COLOURS[code] || `hsl(${Math.round(code * 137.5) % 360} 42% 58%)`;
}
// The names of all rows, in the order of the tree; or their numbers, where they have none.
const allNames = data.names === null ? null : data.names.split("\n");
const hasNames = allNames !== null || data.order !== null;
const nameAt = (position) => (allNames ? allNames[position] : "row " + data.order[position]);
function path(node) {
  const way = [node];
  while (way[0].parent !== null) way.unshift(nodes[way[0].parent]);
  return way;
}
function majority(node) { return node.classes.find(([code]) => code >= 0) || null; }

// Who wants to know that another node was chosen.
const listeners = [];
let chosen = null;
function choose(node, options = {}) {
  chosen = node;
  listeners.forEach((listener) => listener(node, options));
}
