// The tree. What has no room for legible text is folded, and says how much that is; zooming makes room.
const APART = 104, COLUMN = 112, WIDEST = 180, STUB = 34, RIVER = 18, PAD = 14;
const view = { x: 0, y: 0 };
const choices = new Map();  // nodes that were opened or closed by hand
let scale = 1, least = 33, line = 33, column = COLUMN, side = 150, margin = 64, edge = 0;

// Open the earliest splits that there is room for, and what was opened by hand.
function findOpen(width, height) {
  const room = Math.max(2, Math.floor((height - PAD) / least)), levels = 1 + Math.floor((width - margin - STUB - side) / COLUMN);
  const fitting = new Set(), open = new Set();
  let ends = 1;
  for (const node of splits) {
    if (!kids(node).length) break;
    const more = node.children.length - 1;
    if ((!node.above || fitting.has(node.above)) && node.depth < Math.max(1, levels) && (ends + more <= room || !node.above)) { fitting.add(node); ends += more; }
    if ((!node.above || open.has(node.above)) && (choices.get(node) ?? fitting.has(node))) open.add(node);
  }
  return open;
}
function arrangeTree() {
  const wide = canvas.clientWidth, width = wide * scale, height = canvas.clientHeight * scale;
  side = clamp(0.25 * wide, 132, 260);
  [margin, least] = wide < 600 ? [16, 46] : [64, 33];
  const open = findOpen(width, height), arranged = [], waiting = [root];
  let ends = 0, depth = 0;
  while (waiting.length) {
    const node = waiting.pop();
    arranged.push(node);
    node.isOpen = open.has(node);
    if (node.isOpen) { depth = Math.max(depth, node.depth); waiting.push(...node.children.slice().reverse()); } else ends++;
  }
  // A split into very many cannot be folded: its ends have one line each.
  line = clamp((height - PAD) / ends, root.isOpen && root.children.length * least > height - PAD ? 16 : least, APART);
  column = clamp((width - margin - STUB - side) / Math.max(1, depth), COLUMN, WIDEST);
  let n = 0;
  edge = wide;
  for (const node of arranged) {
    node.x = !node.above ? margin : node.above.x + (node.isOpen ? column : STUB);
    if (node.isOpen) continue;
    Object.assign(node, { y: line * (n++ + 0.5), band: line });
    edge = Math.max(edge, node.x + side);
  }
  for (const node of arranged.slice().reverse()) {
    if (!node.isOpen) continue;
    node.y = (node.children[0].y + node.children.at(-1).y) / 2;
    node.band = node.children.reduce((sum, child) => sum + child.band, 0);  // nothing else is in its column there
    node.free = Math.min(node.y - node.children[0].y + node.children[0].band / 2, node.children.at(-1).y + node.children.at(-1).band / 2 - node.y);
  }
  return arranged;
}
const river = () => Math.min(RIVER, 0.4 * line) / data.n_rows;
const breadth = (node) => Math.max(1.2, river() * node.size);

function link(node) {
  const parent = node.above;
  let before = 0;
  for (const one of parent.children) { if (one === node) break; before += one.size; }
  const from = parent.y + river() * (before + node.size / 2 - parent.size / 2), x = parent.x + 7;
  const d = `M${x},${from}C${x + 12},${from} ${x + 4},${node.y} ${x + 20},${node.y}H${node.x - 5}`;
  const stroke = shade === "stability" ? paint(node) : null;
  return svg("path", { class: "link", d, "stroke-width": breadth(node), "data-id": node.id, style: stroke ? { stroke } : null });
}

// Beside an end: the cluster and its name, and below that its rows and what is typical, or how much is folded.
function drawEnd(node, element) {
  const isFolded = kids(node).length > 0, end = edge - 8, isLow = line < 28;  // nothing else stands to its right
  const put = (text, x, dy, name) => { if (text) element.append(svg("text", { class: name, x, y: node.y + dy }, text)); };
  let x = node.x + 13;
  element.append(svg("rect", { class: "back", x: node.x - 10, y: node.y - Math.min(line, 32) / 2, rx: 7, width: Math.min(edge - node.x, 1.6 * side), height: Math.min(line, 32) }));
  const pictures = isFolded ? [] : node.typical.map(pictureOf).filter(Boolean).slice(0, isLow ? 0 : Math.floor(0.36 * (end - x) / 27));
  if (node.label) {
    put(node.label, x, pictures.length || isLow ? 4 : -2, "label");
    if (pictures.length) x += measure(node.label, NAME) + 8;
  }
  pictures.forEach((href, n) => element.append(svg("image", { href, x: x + 27 * n, y: node.y - 12, width: 24, height: 24, class: "thumb" })));
  x += 27 * pictures.length + (pictures.length ? 4 : 0);
  const name = node.above ? arrows(node.name) : node.name, used = node.label && !pictures.length ? measure(node.label, NAME) + 7 : 0;
  if (isLow) {
    const text = fit(name, 0.6 * (end - x)), after = x + used + measure(text, NAME) + 10;
    put(text, x + used, 4, "name");
    put(fit(plural(node.size, "row"), end - after, FINE), after, 4, "size");
    return;
  }
  put(fit(name, end - x - used), x + used, -2, "name");
  if (isFolded) {
    const parts = [plural(node.count, "cluster") + ",", plural(node.size, "row")], whole = parts.join(" ");
    if (measure(whole, FOLDED) <= end - x) put(whole, x, 12, "folded"); else parts.forEach((text, n) => put(text, x, 12 + 13 * n, "folded"));
    return;
  }
  const size = plural(node.size, "row");
  const bar = node.classes.length && !data.names_are_words && end - x > 200 ? 46 : node.classes.length && end - x > 130 ? 30 : 0;
  if (bar) element.append(makeUp(node, x, node.y + 5, bar));
  const left = x + (bar ? bar + 6 : 0), text = `${size} · ${gist(node)}`.replace(/ · $/, "");
  put(fit(text, end - left, FINE), left, 12, "size");
}
// On the branch to an open node: its name, and below that its rows.
function drawBranch(node, element) {
  if (!node.above) {
    element.append(svg("rect", { class: "back", x: 2, y: node.y - 14, rx: 7, width: node.x + 8, height: 32 }));
    if (margin > 40) [fit(count(node.size), margin - 14), node.size === 1 ? "row" : "rows"].forEach((text, n) => element.append(svg("text", { class: n ? "size" : "name", x: node.x - 12, y: node.y + 1 + 13 * n, "text-anchor": "end" }, text)));
    return;
  }
  const left = node.above.x + 27, room = node.x - 10 - left, half = breadth(node) / 2;
  const top = node.y - half - 5, below = node.y + half + 12, lines = wrap(arrows(node.name), room, clamp(Math.floor((node.free - half - 5) / 14), 1, 3));
  element.append(svg("rect", { class: "back", x: left - 4, y: top - 14 * lines.length, rx: 7, width: room + 8, height: below + 4 - top + 14 * lines.length }));
  lines.forEach((text, n) => element.append(svg("text", { class: "name", x: left, y: top - 14 * (lines.length - 1 - n) }, text)));
  const rows = plural(node.size, "row"), size = measure(rows, FINE) <= room ? rows : count(node.size), used = measure(size, FINE) + 6;
  element.append(svg("text", { class: "size", x: left, y: below }, size));
  if (node.classes.length && room - used > 14) element.append(makeUp(node, left + used, below - 7, room - used));
}
function drawTree(node) {
  const isEnd = !kids(node).length;
  const element = nodeElement(node, [isEnd && "leaf", !isEnd && !node.isOpen && "closed"]);
  if (node.isOpen) drawBranch(node, element); else drawEnd(node, element);
  element.append(svg("circle", { class: "dot", cx: node.x, cy: node.y, r: isEnd ? 5 : 7 }));
  if (!isEnd) element.append(svg("path", { class: "sign", d: `M${node.x - 3.2},${node.y}h6.4` + (node.isOpen ? "" : `M${node.x},${node.y - 3.2}v6.4`) }));
  return element;
}

// Keep the picture on the canvas, all of it if it fits.
function hold() {
  const box = bounds(), keep = (at, low, high, room) => clamp(at, Math.min(-low, room - high), Math.max(-low, room - high));
  view.x = keep(view.x, 0, box.right, canvas.clientWidth);
  view.y = keep(view.y, box.top, box.bottom, canvas.clientHeight);
  // A finger moves the picture only if there is more of it than is seen; else it scrolls the page.
  canvas.style.touchAction = box.bottom - box.top > canvas.clientHeight + 1 || box.right > canvas.clientWidth + 1 ? "none" : "pan-y";
  if (Math.abs(view.y - drawnAt) > canvas.clientHeight / 2) drawNear();
  place();
}
function bounds() {
  return { right: edge, top: -PAD / 2, bottom: line * shown.filter((node) => !node.isOpen).length + PAD / 2 };
}
function moveTree(dx, dy) { view.x += dx; view.y += dy; hold(); }
function fitTree() {
  choices.clear();
  scale = 1;
  render();
  const box = bounds();
  view.x = 0;
  view.y = (canvas.clientHeight - box.bottom - box.top) / 2;
  hold();
}
// Draw anew in such a way that a node, or what it is folded into, stays where it is.
function keepInPlace(node, change) {
  const { x, y } = node;
  change();
  render(true);
  while (!inSight.has(node)) node = node.above;
  moveTree(x - node.x, y - node.y);
}
function zoomTree(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const far = (node) => Math.hypot(view.x + node.x - x, view.y + node.y - y);
  const nearest = shown.reduce((best, node) => (far(node) < far(best) ? node : best));
  const most = Math.max(2, 1.6 * Math.max(least * clusters.length / canvas.clientHeight, (COLUMN * data.height + margin + STUB + side) / canvas.clientWidth));
  keepInPlace(nearest, () => { scale = clamp(scale * factor, 0.5, most); });
}
function bringIn(node) {
  const width = canvas.clientWidth, left = view.x + node.x - (node.isOpen ? column : STUB), right = view.x + node.x + side, y = view.y + node.y;
  if (left < 0) view.x -= left; else if (right > width) view.x -= Math.min(right - width, left);
  if (y < 40 || y > canvas.clientHeight - 40) view.y += canvas.clientHeight / 2 - y;
  hold();
}
function toggle(node) { if (kids(node).length) keepInPlace(node, () => choices.set(node, !node.isOpen)); }
function openAll() {
  for (const node of splits) if (kids(node).length) choices.set(node, true);
  keepInPlace(root, () => {});
}
function clickTree(node, event) {
  const isFolded = kids(node).length && !node.isOpen;
  if (isFolded || event.detail === (event.target.closest(".dot, .sign") ? 1 : 2)) toggle(node);
  choose(node, { keepFocus: true, stay: !isFolded });
}
function revealInTree(node) {
  const closed = path(node).slice(0, -1).filter((above) => !inSight.has(above) || !above.isOpen);
  closed.forEach((above) => choices.set(above, true));
  return closed.length > 0;
}
function treeKeys(node, go) {
  const at = shown.indexOf(node);
  const turn = () => { toggle(node); choose(node, { keepFocus: true }); };
  return {
    ArrowDown: () => go(shown[at + 1]), ArrowUp: () => go(shown[at - 1]), Home: () => go(shown[0]), End: () => go(shown.at(-1)), Enter: turn,
    ArrowRight: () => (node.isOpen ? go(node.children[0]) : turn()),
    ArrowLeft: () => (node.isOpen ? turn() : go(node.above)),
  };
}
