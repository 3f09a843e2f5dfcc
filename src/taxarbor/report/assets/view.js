// The picture, drawn as a tree or as an icicle: what both share. Text has the same size at any zoom.
const canvas = byId("tree"), scene = byId("scene");
const ruler = document.createElement("canvas").getContext("2d");
const NAME = "550 12.5px system-ui, sans-serif", PLAIN = "12px system-ui, sans-serif", FINE = "11px system-ui, sans-serif", FOLDED = "550 11px system-ui, sans-serif";
const hits = new Set(), drawn = new Map(), fitted = new Map();  // nodes that match the search, elements, shortened texts
let kind = "tree", shade = "none";
const linkLayer = svg("g"), nodeLayer = svg("g");
scene.append(linkLayer, nodeLayer);
let shown = [], inSight = new Set(), focused = 0, drawnAt = 0;

function measure(text, font) { ruler.font = font; return ruler.measureText(text).width; }
// Shorten a text to a width.
function fit(text, width, font = NAME) {
  const key = `${font}|${Math.round(width)}|${text}`;
  if (fitted.has(key)) return fitted.get(key);
  if (fitted.size > 20000) fitted.clear();
  let low = 0, high = text.length;
  if (measure(text, font) <= width) low = high;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(text.slice(0, middle) + "…", font) <= width) low = middle; else high = middle - 1;
  }
  const short = low === text.length ? text : low ? text.slice(0, low).trimEnd() + "…" : "";
  fitted.set(key, short);
  return short;
}
// In a picture there is little room: a sign for a word.
const SIGNS = { "at most": "≤", above: ">", "at least": "≥", below: "<" };
const BOUND = new RegExp(` (${Object.keys(SIGNS).join("|")}) (?=-?\\d\\S*(?: \\w+illion)?(?:, | or unknown|$))`, "g");
const arrows = (name) => name.replace(BOUND, (_, words) => ` ${SIGNS[words]}\u00a0`).replace(/(^|, )(higher|more often) /g, "$1↑\u00a0").replace(/(^|, )(lower|less often) /g, "$1↓\u00a0");
// Break a text into some lines, after commas or between words.
function wrap(text, width, most = 2) {
  const lines = [], words = text.split(/(?<=[ _])/), bare = (part) => part.trim().replace(/,$/, ""), fits = (part) => fit(part, width) === part;
  while (words.length && lines.length < most - 1) {
    let next = words.shift();
    while (words.length && !next.endsWith(", ") && fits(bare(next + words[0]))) next += words.shift();
    lines.push(fit(bare(next), width));
  }
  if (words.length) lines.push(fit(words.join(""), width));
  return lines;
}

// A cluster in a few words: its recurrence, if that is shown; its typical rows, if they have names; or its largest class.
function gist(node) {
  if (shade === "stability") return node.depth ? `${node.n_recovered} of ${plural(data.stability.n_refits, "refit")}` : "";
  if (data.names_are_words) return node.typical.slice(0, 4).map(nameOf).join(", ");
  const top = majority(node);
  return top ? `${percent(shareOf(node, top[1]))} ${className(top[0])}` : "";
}
function makeUp(node, x, y, width, height = 5) {
  const element = svg("g", { class: "make-up", transform: `translate(${x},${y})` });
  let at = 0;
  for (const [code, rows] of node.classes) {
    const part = width * rows / node.size;
    if (part < 1) break;  // what is finer is grey
    element.append(svg("rect", { x: at, width: part, height, style: { fill: colour(code) } }));
    at += part;
  }
  if (width - at > 0.1) element.append(svg("rect", { x: at, width: width - at, height, style: { fill: "var(--other)" } }));
  return element;
}

// Colours of nodes, by choice.
const SHADES = {
  classes: { head: "by class", when: () => data.classes.length },
  stability: { head: "by stability", when: () => data.stability && data.n_clusters > 1, share: (node) => node.n_recovered / data.stability.n_refits },
  none: { head: "no colour", when: () => true },
};
const mix = (share) => `color-mix(in oklab, var(--low), var(--high) ${Math.round(100 * clamp(share, 0, 1))}%)`;
function paint(node) {
  if (shade === "none" || !node.depth) return null;
  if (shade === "classes") { const top = majority(node); return top && colour(top[0]); }
  return mix(SHADES[shade].share(node));
}
// The legend of the colours; classes that do not fit on the line are folded into a button.
function showKey(isWhole = false) {
  const key = byId("key");
  key.hidden = shade === "none";
  if (shade === "stability") {
    const refits = data.stability.n_refits, texts = ["recovered in", `0 of ${refits} refits`, `${refits} of ${refits}`].map((text) => html("span", {}, text));
    key.replaceChildren(...texts.slice(0, 2), html("i", { class: "ramp" }), texts[2]);
    return;
  }
  const codes = data.classes.map((_, code) => code).slice(0, isWhole ? 500 : 60);
  const chips = codes.map((code) => html("span", { class: "chip" }, html("i", { style: { background: colour(code) } }), data.classes[code]));
  const more = html("button", { class: "more", onclick: () => showKey(!isWhole) }, "");
  key.replaceChildren(...chips, more);
  more.hidden = data.classes.length === chips.length && key.scrollHeight <= 30;
  if (isWhole) { more.hidden = false; more.textContent = "fewer"; return; }
  for (let left = chips.length; left > 1 && !more.hidden; left--) {
    more.textContent = `and ${plural(data.classes.length - left, "class", "classes")} more`;
    if (key.scrollHeight <= 30 && left < data.classes.length) break;
    chips[left - 1].remove();
    more.textContent = `and ${plural(data.classes.length - left + 1, "class", "classes")} more`;
    if (key.scrollHeight <= 30) break;
  }
}
function startShades() {
  const list = byId("shade"), able = Object.keys(SHADES).filter((name) => SHADES[name].when());
  list.append(...able.map((name) => html("option", { value: name }, SHADES[name].head)));
  shade = able[0];
  list.value = shade;
  byId("shades").hidden = able.length === 1;
  list.addEventListener("change", () => { shade = list.value; showKey(); render(); });
  showKey();
}

// A node of either picture.
function nodeElement(node, classes) {
  const isOpen = node.isOpen, siblings = node.above ? node.above.children : [node];
  return svg("g", {
    class: ["node", ...classes].filter(Boolean).join(" "), role: "treeitem", id: "node-" + node.id, "data-id": node.id,
    "aria-level": node.depth + 1, "aria-setsize": siblings.length, "aria-posinset": siblings.indexOf(node) + 1,
    "aria-expanded": kids(node).length ? String(isOpen) : null, "aria-label": spoken(node),
  }, svg("title", {}, spoken(node).replaceAll(", ", " · ")));
}
function render(keepFocus = false) {
  if (!canvas.clientWidth) return;  // another page is shown
  shown = kind === "tree" ? arrangeTree() : arrangeIcicle();
  inSight = new Set(shown);
  if (!inSight.has(nodes[focused])) focused = inSight.has(chosen) ? chosen.id : shown[0].id;
  drawn.clear();
  linkLayer.replaceChildren();
  nodeLayer.replaceChildren();
  drawNear();
  if (keepFocus) byId("node-" + focused).focus({ preventScroll: true });
  place();
}
// Draw what is on the canvas or near it, and what has the focus; what is drawn already stays.
function drawNear() {
  const height = canvas.clientHeight, isTree = kind === "tree";
  const isNear = (node) => { const other = node.above ? node.above.y : node.y; return view.y + Math.max(node.y, other) > -height && view.y + Math.min(node.y, other) < 2 * height; };
  drawnAt = view.y;
  for (const node of shown) {
    if (drawn.has(node.id) || isTree && node.id !== focused && !isNear(node)) continue;
    const branch = isTree && node.above ? link(node) : null, element = isTree ? drawTree(node) : drawCell(node);
    drawn.set(node.id, { element, branch });
    if (branch) linkLayer.append(branch);
    nodeLayer.append(element);
  }
  mark();
}
// Mark the chosen, the matching and the focused nodes among those that are drawn.
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
function place() { scene.setAttribute("transform", `translate(${kind === "tree" ? view.x : 0},${view.y})`); }

function zoom(factor, x, y) { if (kind === "tree") zoomTree(factor, x, y); else zoomIcicle(factor, y); }
function showAll() { if (kind === "tree") fitTree(); else zoomTo(root, false); }
function showKind(name) {
  kind = name;
  for (const one of ["tree", "icicle"]) byId("as-" + one).setAttribute("aria-pressed", String(one === name));
  byId("expand").hidden = name === "icicle";
  canvas.setAttribute("class", name);
  showAll();
  if (chosen) choose(chosen, {});
}

function onKey(event) {
  const node = nodes[focused];
  const go = (other) => { if (other) { focused = other.id; choose(other, { keepFocus: true }); } };
  const moves = kind === "tree" ? treeKeys(node, go) : icicleKeys(node, go);
  moves[" "] = moves.Enter;
  if (moves[event.key]) { moves[event.key](); event.preventDefault(); event.stopPropagation(); }
}

function watchPointer() {
  const fingers = new Map();
  let moved = 0, before = 0;
  const reach = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a.x - b.x, a.y - b.y); };
  const within = (point) => { const box = canvas.getBoundingClientRect(); return [point.x - box.left, point.y - box.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    moved = 0;
    if (fingers.size === 2) before = reach();
  });
  window.addEventListener("pointermove", (event) => {
    const last = fingers.get(event.pointerId);
    if (!last) return;
    const dx = event.clientX - last.x, dy = event.clientY - last.y;
    moved += Math.abs(dx) + Math.abs(dy);
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (fingers.size === 2) {
      const [a, b] = [...fingers.values()], factor = reach() / Math.max(before, 1);
      if (Math.abs(Math.log(factor)) > 0.08) { zoom(factor, ...within({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 })); before = reach(); }
    } else if (moved > 4 && (kind === "tree" || stretch > 1)) {
      canvas.classList.add("moving");
      if (kind === "tree") moveTree(dx, dy); else moveIcicle(dy);
    }
  });
  const lift = (event) => { fingers.delete(event.pointerId); canvas.classList.remove("moving"); };
  window.addEventListener("pointerup", lift);
  window.addEventListener("pointercancel", lift);
  canvas.addEventListener("click", (event) => {
    const target = event.target.closest(".node");
    if (!target || moved > 4) return;
    const node = nodes[Number(target.dataset.id)];
    focused = node.id;
    if (kind === "tree") clickTree(node, event); else clickCell(node);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey && kind === "tree") moveTree(-event.deltaX, -event.deltaY);
    else zoom(Math.exp(-clamp(event.deltaY, -120, 120) / 300), ...within({ x: event.clientX, y: event.clientY }));
  }, { passive: false });
}

listeners.push((node, { keepFocus = false, stay = false }) => {
  focused = node.id;
  const isNew = kind === "tree" ? revealInTree(node) : revealInIcicle(node);
  if (isNew || !inSight.has(node)) render();
  else if (!drawn.has(node.id)) drawNear();
  else mark();
  if (keepFocus) byId("node-" + focused).focus({ preventScroll: true });
  if (!stay && kind === "tree") bringIn(node);
});
cutListeners.push(() => {
  while (zoomed.above && !(isThere(zoomed) && kids(zoomed).length)) zoomed = zoomed.above;
  if (chosen && kind === "icicle") zoomTo(zoomed, false); else if (chosen) render();
});
