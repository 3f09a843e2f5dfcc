// The tree: places, drawing, opening and closing, moving and zooming.
const RIVER = 20, LEAST = 52, MOST_APART = 96, NARROWEST = 182, WIDEST = 224;
let line = LEAST, column = WIDEST;  // between ends, and between levels: as there is room
const open = new Set();
const hits = new Set();
const view = { k: 1, x: 0, y: 0 };
const canvas = byId("tree"), scene = byId("scene");
const ruler = document.createElement("canvas").getContext("2d");
let shown = [], focused = 0;
const drawn = new Map();  // the element of each node in sight

function fit(text, width, font = "550 13px system-ui, sans-serif") {
  ruler.font = font;
  if (ruler.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ruler.measureText(text.slice(0, middle) + "…").width <= width) low = middle; else high = middle - 1;
  }
  return text.slice(0, low).trimEnd() + "…";
}

// On a branch there is little room: an arrow for a word.
const arrows = (name) => name.replace(/(^|, )higher /g, "$1↑ ").replace(/(^|, )lower /g, "$1↓ ");

// Break a text into two lines at most.
function wrap(text, width) {
  if (fit(text, width) === text) return [text];
  const comma = text.indexOf(", ") + 1;  // rather there than elsewhere
  if (comma && fit(text.slice(0, comma), width) === text.slice(0, comma)) return [text.slice(0, comma), fit(text.slice(comma + 1), width)];
  const words = text.split(/(?<=[ _])/);
  let first = words.shift();
  while (words.length && fit(first + words[0], width) === first + words[0]) first += words.shift();
  return words.length ? [fit(first, width), fit(words.join(""), width)] : [fit(first, width)];
}

// Open the earliest splits until so many ends are in sight.
function openFirst(count) {
  open.clear();
  let inSight = 1;
  const splits = nodes.filter((node) => node.children.length);
  splits.sort((a, b) => nodes[a.children[0]].birth - nodes[b.children[0]].birth);
  for (const node of splits) {
    if (inSight + node.children.length - 1 > count) break;
    open.add(node.id);
    inSight += node.children.length - 1;
  }
}
// Open all above a node; says whether any was closed.
function reveal(node) {
  const before = open.size;
  path(node).slice(0, -1).forEach((above) => open.add(above.id));
  return open.size > before;
}

function arrange() {
  const order = [], waiting = [0];
  while (waiting.length) {
    const node = nodes[waiting.pop()];
    order.push(node);
    node.isOpen = node.children.length > 0 && open.has(node.id);
    if (node.isOpen) for (let n = node.children.length - 1; n >= 0; n--) waiting.push(node.children[n]);
  }
  let n = 0;
  for (const node of order) {
    node.x = node.depth * column;
    if (!node.isOpen) node.y = line * n++;
  }
  for (const node of order.slice().reverse()) {
    if (node.isOpen) node.y = (nodes[node.children[0]].y + nodes[node.children.at(-1)].y) / 2;
  }
  return order;
}
const breadth = (node) => Math.max(1.2, RIVER * node.size / data.n_rows);

function link(node) {
  const parent = nodes[node.parent];
  let before = 0;
  for (const id of parent.children) { if (id === node.id) break; before += nodes[id].size; }
  const from = parent.y + RIVER * ((before + node.size / 2) - parent.size / 2) / data.n_rows;
  const x0 = parent.x + 9, bend = x0 + 40;
  const d = `M${x0},${from}C${x0 + 26},${from} ${bend - 24},${node.y} ${bend},${node.y}H${node.x - 8}`;
  return svg("path", { class: "link", d, "stroke-width": breadth(node), "data-id": node.id });
}

function makeUp(node, x, y, width) {
  const element = svg("g", { transform: `translate(${x},${y})` });
  let at = 0;
  for (const [code, count] of node.classes) {
    const part = width * count / node.size;
    element.append(svg("rect", { x: at, width: Math.max(part, 0.3), height: 5, style: { fill: colour(code) } }));
    at += part;
  }
  return element;
}

function side(node) {
  const pictures = node.children.length ? [] : node.exemplars.map((one) => data.pictures[one.row]).filter(Boolean);
  if (pictures.length) {
    const element = svg("g", { class: "side" }, svg("text", { class: "label", x: node.x + 15, y: node.y + 4 }, node.label));
    pictures.forEach((href, n) => element.append(svg("image", { href, x: node.x + 46 + 32 * n, y: node.y - 14, width: 28, height: 28, class: "thumb" })));
    return element;
  }
  const text = svg("text", { class: "side", x: node.x + 15, y: node.y + 4 });
  if (!node.children.length) {
    const names = node.exemplars.map((one) => data.rows[one.row][0]).join(", ");
    text.append(svg("tspan", { class: "label" }, node.label), svg("tspan", { dx: 8 }, fit(names, 210, "12.5px system-ui, sans-serif")));
  } else if (!node.isOpen) {
    text.append(plural(countLeaves(node), "cluster"));
  }
  return text;
}
function countLeaves(node) {
  return leaves.filter((leaf) => leaf.start >= node.start && leaf.stop <= node.stop).length;
}

function draw(node) {
  const isLeaf = !node.children.length, left = node.parent === null ? node.x - 88 : node.x - column + 50;
  const half = breadth(node) / 2, size = plural(node.size, "row");
  const isRoot = node.parent === null, siblings = isRoot ? [0] : nodes[node.parent].children;
  const kinds = ["node", isLeaf && "leaf", !isLeaf && !node.isOpen && "closed"];
  const element = svg("g", {
    class: kinds.filter(Boolean).join(" "), role: "treeitem", id: "node-" + node.id, "data-id": node.id,
    "aria-level": node.depth + 1, "aria-setsize": siblings.length, "aria-posinset": siblings.indexOf(node.id) + 1,
    "aria-expanded": isLeaf ? null : String(node.isOpen), "aria-label": `${node.name}, ${size}`,
  });
  element.append(svg("title", {}, `${node.name} · ${size}`));
  const room = column - 60;
  const lines = wrap(arrows(node.name), room), above = isRoot ? 3 : half + 6;
  const top = node.y - above - 15 * lines.length, bottom = node.y + (isRoot ? 2 : half) + 18;
  element.append(svg("rect", { class: "back", x: left - 6, y: top, rx: 8, width: isRoot ? 100 : column - 36, height: bottom - top }));
  lines.forEach((text, n) => element.append(svg("text", { class: "name", x: left, y: node.y - above - 15 * (lines.length - 1 - n) }, text)));
  element.append(svg("text", { class: "size", x: left, y: bottom - 6 }, size));
  if (node.classes.length && !isRoot) element.append(makeUp(node, left + 72, bottom - 13, room - 72));
  element.append(svg("circle", { class: "dot", cx: node.x, cy: node.y, r: isLeaf ? 5 : 7.5 }));
  if (!isLeaf) element.append(svg("text", { class: "sign", x: node.x, y: node.y + 4 }, node.isOpen ? "–" : "+"));
  element.append(side(node));
  return element;
}

function render(keepFocus = false) {
  shown = arrange();
  if (!shown.some((node) => node.id === focused)) focused = chosen && shown.includes(chosen) ? chosen.id : 0;
  drawn.clear();
  for (const node of shown) drawn.set(node.id, { element: draw(node), branch: node.parent === null ? null : link(node) });
  const all = [...drawn.values()];
  scene.replaceChildren(...all.map((one) => one.branch).filter(Boolean), ...all.map((one) => one.element));
  mark();
  if (keepFocus) byId("node-" + focused).focus({ preventScroll: true });
  place();
}
// Show what is chosen, found and focused, on what is drawn already.
function mark() {
  const lit = new Set(chosen ? path(chosen).map((node) => node.id) : []);
  for (const [id, { element, branch }] of drawn) {
    const isChosen = chosen !== null && id === chosen.id;
    element.classList.toggle("chosen", isChosen);
    element.classList.toggle("hit", hits.has(id));
    element.setAttribute("aria-selected", String(isChosen));
    element.setAttribute("tabindex", id === focused ? 0 : -1);
    if (branch) branch.classList.toggle("lit", lit.has(id));
  }
}
function place() { scene.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.k})`); }

function bounds() {
  const xs = shown.map((node) => node.x), ys = shown.map((node) => node.y);
  const ends = shown.some((node) => !node.children.length) ? 275 : 90;
  return { left: -100, top: Math.min(...ys) - 46, right: Math.max(...xs) + ends, bottom: Math.max(...ys) + 34 };
}
// Put the ends as far apart as there is room for, when all columns are in sight.
function spread(least) {
  const depth = Math.max(1, ...shown.map((node) => node.depth)), beside = bounds().right - column * depth + 100;
  column = Math.min(WIDEST, Math.max(NARROWEST, (canvas.clientWidth / Math.max(least, 0.8) - beside) / depth));
  const k = Math.max(least, Math.min(1.1, canvas.clientWidth / (column * depth + beside)));
  const ends = shown.filter((node) => !node.isOpen).length;
  line = Math.min(MOST_APART, Math.max(LEAST, (canvas.clientHeight / k - 140) / Math.max(1, ends - 1)));
  render();
}
function showAll(least = 0) {
  if (!canvas.clientWidth) return;  // another page is shown
  spread(least);
  const box = bounds(), width = canvas.clientWidth, height = canvas.clientHeight;
  const whole = Math.min(width / (box.right - box.left), height / (box.bottom - box.top), 1.15);
  view.k = Math.max(whole, least);
  const room = height - view.k * (box.bottom - box.top);
  view.x = 14 - view.k * box.left;
  // What does not fit as a whole is shown around the root.
  view.y = room >= 0 ? room / 2 - view.k * box.top : height / 2 - view.k * nodes[0].y;
  place();
}
function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const k = Math.min(4, Math.max(0.04, view.k * factor));
  view.x = x - (x - view.x) * k / view.k;
  view.y = y - (y - view.y) * k / view.k;
  view.k = k;
  place();
}
function bringIn(node) {
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const left = view.x + view.k * (node.x - column + 40), right = view.x + view.k * (node.x + 120), y = view.y + view.k * node.y;
  if (left < 10) view.x += 10 - left; else if (right > width - 10) view.x -= Math.min(right - width + 10, left - 10);
  if (y < 50 || y > height - 70) view.y += height / 2 - y;
  place();
}
function toggle(node) {
  if (!node.children.length) return;
  const before = { x: view.x + view.k * node.x, y: view.y + view.k * node.y };
  if (open.has(node.id)) open.delete(node.id); else open.add(node.id);
  render(true);
  view.x += before.x - (view.x + view.k * node.x);  // what was clicked stays where it is
  view.y += before.y - (view.y + view.k * node.y);
  place();
}

function onKey(event) {
  const node = nodes[focused], at = shown.indexOf(node);
  const go = (other) => { if (other) { focused = other.id; choose(other, { keepFocus: true }); } };
  const moves = {
    ArrowDown: () => go(shown[at + 1]),
    ArrowUp: () => go(shown[at - 1]),
    ArrowRight: () => (node.isOpen ? go(nodes[node.children[0]]) : toggle(node)),
    ArrowLeft: () => (node.isOpen ? toggle(node) : go(node.parent === null ? null : nodes[node.parent])),
    Home: () => go(shown[0]),
    End: () => go(shown.at(-1)),
    Enter: () => { toggle(node); choose(node, { keepFocus: true }); },
    " ": () => { toggle(node); choose(node, { keepFocus: true }); },
  };
  if (moves[event.key]) { moves[event.key](); event.preventDefault(); event.stopPropagation(); }
}

function openAll() { nodes.forEach((node) => node.children.length && open.add(node.id)); render(); showAll(0.4); }

function watchPointer() {
  const fingers = new Map();
  let moved = 0;
  const reach = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a.x - b.x, a.y - b.y); };
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    moved = 0;
  });
  window.addEventListener("pointermove", (event) => {
    const last = fingers.get(event.pointerId);
    if (!last) return;
    const old = fingers.size === 2 ? reach() : 0;
    const dx = event.clientX - last.x, dy = event.clientY - last.y;
    moved += Math.abs(dx) + Math.abs(dy);
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (fingers.size === 2) zoom(reach() / Math.max(old, 1));
    else if (moved > 4) { canvas.classList.add("moving"); view.x += dx; view.y += dy; place(); }
  });
  const lift = (event) => { fingers.delete(event.pointerId); canvas.classList.remove("moving"); };
  window.addEventListener("pointerup", lift);
  window.addEventListener("pointercancel", lift);
  canvas.addEventListener("click", (event) => {
    const target = event.target.closest(".node");
    if (!target || moved > 4) return;
    const node = nodes[Number(target.dataset.id)];
    focused = node.id;
    const onDot = event.target.classList.contains("dot");
    if (event.detail === (onDot ? 1 : 2)) toggle(node);
    choose(node, { keepFocus: true, stay: true });
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
    else { view.x -= event.deltaX; view.y -= event.deltaY; place(); }
  }, { passive: false });
}

listeners.push((node, { keepFocus = false, stay = false }) => {
  focused = node.id;
  if (reveal(node) || !drawn.has(node.id)) render(keepFocus);
  else { mark(); if (keepFocus) byId("node-" + focused).focus({ preventScroll: true }); }
  if (!stay) bringIn(node);
});
