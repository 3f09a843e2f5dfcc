"use strict";
// What the other parts share: the data, and ways to make elements. Text is only ever set as text.
const data = JSON.parse(document.getElementById("data").textContent);
const nodes = data.nodes, root = nodes[0];
nodes.forEach((node, id) => {
  Object.assign(node, { id, children: [], size: node.stop - node.start, above: node.parent === null ? null : nodes[node.parent], depth: 0 });
  if (node.above) { node.above.children.push(node); node.depth = node.above.depth + 1; }
});
const leaves = nodes.filter((node) => !node.children.length).sort((a, b) => a.start - b.start);

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

// A long name may break after its underscores.
const soft = (text) => text.split(/(?<=_)/).flatMap((part, n) => (n ? [html("wbr"), part] : [part]));
const count = (value) => value.toLocaleString("en");
const plural = (value, one, many = one + "s") => `${count(value)} ${value === 1 ? one : many}`;
// Not all is never 100 %, and some is never 0 %.
function percent(share, digits = 0) {
  const text = (100 * share).toFixed(digits);
  return (share < 1 && Number(text) === 100 ? ">99" : share > 0 && Number(text) === 0 ? "<1" : text) + " %";
}
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const clamp = (value, least, most) => Math.max(least, Math.min(most, value));
function colour(code) {
  if (code < 0) return "var(--other)";
  return COLOURS[code] || `hsl(${Math.round(code * 137.5) % 360} 42% ${code % 2 ? 48 : 62}%)`;
}

// Values of all rows, in the order of the tree; null where they are not known, or in a browser too old to unpack them.
// Numbers, names and least margins.
let order = null, allNames = null, leastMargins = null;
async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  return new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
}
async function unpackNumbers(text) {
  const bytes = await unpack(text), many = bytes.length / 4, numbers = new Uint32Array(many);
  for (let n = 0; n < many; n++) numbers[n] = bytes[n] + 256 * (bytes[n + many] + 256 * (bytes[n + 2 * many] + 256 * bytes[n + 3 * many]));
  return numbers;
}
async function readRows() {
  if (!window.DecompressionStream) return;
  if (data.order) order = await unpackNumbers(data.order);
  if (data.names) allNames = new TextDecoder().decode(await unpack(data.names)).split("\n");
  if (data.least_margins) leastMargins = { margin: await unpackNumbers(data.least_margins.margin), node: await unpackNumbers(data.least_margins.node) };
}
const hasNames = () => allNames !== null || order !== null;
const nameAt = (position) => (allNames ? allNames[position] : "row " + order[position]);
function leafAt(position) {
  let low = 0, high = leaves.length - 1;
  while (low < high) { const middle = (low + high + 1) >> 1; if (leaves[middle].start <= position) low = middle; else high = middle - 1; }
  return leaves[low];
}

function path(node) {
  const way = [];
  for (let one = node; one; one = one.above) way.unshift(one);
  return way;
}
const majority = (node) => node.classes.find(([code]) => code >= 0) || null;
// Shares of classes are of the rows with a label; of the classes, -1 is all that are too many, and -2 is no label.
const unlabelled = (node) => (node.classes.find(([code]) => code === -2) || [-2, 0])[1];
const shareOf = (node, rows) => rows / (node.size - unlabelled(node));
const calledClass = (code) => (code < 0 ? (code === -2 ? "(no label)" : "others") : data.classes[code]);
const className = (code) => (code < 0 ? calledClass(code) : /^\d+$/.test(data.classes[code]) ? "class " + data.classes[code] : data.classes[code]);
const pictureOf = (one) => data.pictures[one.row];
const nameOf = (one) => data.rows[one.row][0];

// In words: the recurrence of a cluster, and all of a node for screen readers.
const recurrence = (node) => (data.stability && node.depth ? node.recurrence : "");
const leftOut = (node) => (node.left_out === null ? "" : `${percent(node.left_out)} of its held-out rows are assigned to it again`);
const spoken = (node) => [node.label && "cluster " + node.label, node.name, plural(node.size, "row"), recurrence(node)].filter(Boolean).join(", ");

// Called when another node is chosen.
const listeners = [];
let chosen = null;
function choose(node, options = {}) {
  chosen = node;
  listeners.forEach((listener) => listener(node, options));
}
