// The icicle: the height of a cell is its share of the rows. A click shows a node at full height.
const STRIP = 24, CELL = 92, FOLD = 20, TEXT = 10;
let zoomed = root, stretch = 1;  // what has the full height, and how many times that is: more where cells have no parts to zoom to

function arrangeIcicle() {
  const width = canvas.clientWidth, height = canvas.clientHeight * stretch;
  const strips = path(zoomed).slice(width < 500 ? -2 : -5), first = STRIP * strips.length;
  let below = 0;
  for (const node of clusters) if (node.start >= zoomed.start && node.stop <= zoomed.stop) below = Math.max(below, node.depth - zoomed.depth);
  const end = clamp(0.2 * width, 50, 170);  // more room for the last of them
  const levels = clamp(Math.floor((width - first - end) / CELL), 1, Math.max(1, below)), cell = (width - first - end) / levels;
  const unit = height / zoomed.size, cells = [];
  if (!kids(zoomed).length) return [Object.assign(zoomed, { isOpen: false, isStrip: false, x: 0, y: 0, w: width, h: height })];  // all rows are one cluster
  strips.forEach((node, n) => { Object.assign(node, { isOpen: true, isStrip: true, x: n * STRIP, y: 0, w: STRIP, h: height }); cells.push(node); });
  const waiting = kids(zoomed).slice().reverse();
  while (waiting.length) {
    const node = waiting.pop(), level = node.depth - zoomed.depth - 1, h = unit * node.size;
    const some = h >= FOLD && level + 1 < levels ? kids(node) : [];
    const x = first + cell * level;
    Object.assign(node, { isOpen: some.length > 0, isStrip: false, x, y: unit * (node.start - zoomed.start), w: some.length ? cell : width - x, h });
    cells.push(node);
    waiting.push(...some.slice().reverse());
  }
  return cells;
}

function drawCell(node) {
  const { x, y, w, h } = node, isFolded = !node.isOpen && kids(node).length > 0, isEnd = !kids(node).length;
  const element = nodeElement(node, ["cell", isEnd && "leaf", isFolded && "closed", node.isStrip && "strip"]);
  const gap = h > 4 ? 1 : h > 1.5 ? 0.5 : 0, top = majority(node), strength = shade === "classes" && top ? 18 + 40 * shareOf(node, top[1]) : 46;
  const tint = paint(node) || "var(--lit)", part = node.isStrip ? 12 : shade === "none" ? 10 + 12 * (node.depth % 2) : strength;
  const fill = `color-mix(in srgb, ${tint} ${Math.round(part)}%, var(--card))`;
  element.append(svg("rect", { class: "back", x: x + 0.5, y: y + gap / 2, width: Math.max(w - 1.5, 1), height: Math.max(h - gap, 0.3), rx: h > 8 ? 3 : 0, style: { fill } }));
  if (isFolded && h > 3) element.append(svg("path", { class: "folds", d: `M${x + w - 4},${y + 2}V${y + h - 2}M${x + w - 7},${y + 2}V${y + h - 2}` }));
  if (node.isStrip) {
    const text = fit(node.above ? arrows(node.name) : `all rows · ${count(node.size)}`, h - 16, PLAIN);
    element.append(svg("text", { class: "plain", transform: `translate(${x + 16},${y + h - 8}) rotate(-90)` }, text));
    return element;
  }
  if (h >= TEXT) writeCell(node, element, isFolded);
  return element;
}
// One line in a low cell; more in a high one, and a name on up to two of them.
function writeCell(node, element, isFolded) {
  const { x, y, w, h } = node, room = w - 14, isLow = h < 31, isTiny = h < 14;
  const size = isFolded ? `${plural(node.count, "cluster")}, ${plural(node.size, "row")}` : plural(node.size, "row");
  const used = node.label ? measure(node.label, NAME) + 8 : 0, bar = shade === "classes" && !kids(node).length && room > 300 ? 64 : 0;
  const facts = [size, (shade === "stability" || !node.isOpen) && gist(node)].filter(Boolean);
  const put = (text, left, line, name) => { if (text) element.append(svg("text", { class: name + (isTiny ? " tiny" : ""), x: left, y: line }, text)); };
  const left = x + 7, name = arrows(node.name), high = isLow ? y + h / 2 + (isTiny ? 3.5 : 4) : Math.min(y + h / 2 - 3, y + 18);
  if (node.label) put(node.label, left, high, "label");
  if (bar) element.append(makeUp(node, x + w - bar - 8, high - 7, bar, 6));
  if (isLow) {
    const isWide = !node.isOpen && room > 130, first = isFolded && !isWide ? size : name;
    const text = fit(first, isWide ? Math.max(0.55 * room - used, 50) : room - used), after = used + measure(text, NAME) + 10;
    put(text, left + used, high, "name");
    if (isWide) put(fit(facts.join(" · "), room - after - bar - 4, FINE), left + after, high, "size");
    return;
  }
  const isOne = used || h < 40 || h < 62 && fit(name, room) === name, lines = isOne ? [fit(name, room - used - bar)] : wrap(name, room);
  lines.forEach((text, n) => put(text, left + used, high + 14 * n, "name"));
  facts.slice(0, Math.max(isOne ? 1 : 0, Math.floor((y + h - high - 14 * lines.length) / 14))).forEach((text, n) =>
    put(fit(text, room, FINE), left, high + 14 * (lines.length + n), "size"));
}

function zoomTo(node, keepFocus = true) {
  zoomed = kids(node).length ? node : node.above || node;
  moveIcicle(-view.y);
  stretch = 1;
  render(keepFocus);
}
function moveIcicle(dy) {
  view.y = clamp(view.y + dy, canvas.clientHeight * (1 - stretch), 0);
  canvas.style.touchAction = stretch > 1 ? "none" : "pan-y";
  place();
}
// Make all cells higher, such that what is at a height stays there.
function stretchTo(times, y = canvas.clientHeight / 2) {
  const before = stretch, lowest = Math.min(...kids(zoomed).map((node) => node.size)) / zoomed.size;
  stretch = clamp(times, 1, Math.max(1, 40 / (lowest * canvas.clientHeight)));
  render();
  moveIcicle((y - view.y) * (1 - stretch / before));
}
function clickCell(node) {
  if (node.isStrip) zoomTo(node === zoomed && node.above ? node.above : node);
  else if (kids(node).length) zoomTo(node);
  choose(node, { keepFocus: true });
}
// One level at a time: into the cell at a height, or out again.
let lastZoom = 0;
function zoomIcicle(factor, y) {
  if (y !== undefined && performance.now() - lastZoom < 220) return;
  lastZoom = performance.now();
  if (factor < 1) {
    if (stretch > 1) stretchTo(stretch / 1.7, y);
    else if (zoomed.above) zoomTo(zoomed.above, false);
    return;
  }
  const at = (node) => (y === undefined ? path(chosen).includes(node) : node.y <= y - view.y && y - view.y < node.y + node.h);
  const into = kids(zoomed).find(at) || (y === undefined ? kids(zoomed)[0] : null);
  if (into && kids(into).length) zoomTo(into, false); else stretchTo(1.7 * stretch, y);
}
// Show what a node is in at full height, and higher if its cell is too low to be seen then.
function revealInIcicle(node) {
  const isLow = () => !node.isStrip && node.h < 2;
  if (!inSight.has(node) || isLow()) {
    zoomTo(node, false);
    if (isLow()) stretchTo(16 / node.h);
  }
  const at = view.y + node.y + node.h / 2;
  if (!node.isStrip && (at < 0 || at > canvas.clientHeight)) moveIcicle(canvas.clientHeight / 2 - at);
  return false;  // nothing is left to be drawn
}
function icicleKeys(node, go) {
  const beside = (way) => shown.filter((other) => other.depth === node.depth && way * (other.y - node.y) > 0.01).sort((a, b) => way * (a.y - b.y))[0];
  return {
    ArrowRight: () => (node.isOpen ? go(node === zoomed || !node.isStrip ? kids(node)[0] : path(zoomed)[node.depth + 1]) : kids(node).length && clickCell(node)),
    ArrowLeft: () => go(node.above), ArrowDown: () => go(beside(1)), ArrowUp: () => go(beside(-1)),
    Home: () => go(root), End: () => go(shown.at(-1)), Enter: () => clickCell(node),
    Escape: () => { if (zoomed.above) { zoomTo(zoomed.above); choose(zoomed, { keepFocus: true }); } },
  };
}
