// The cut: the tree as it was when it had fewer clusters. Everything else follows it.
const splits = nodes.filter((node) => node.children.length).sort((a, b) => a.children[0].birth - b.children[0].birth);
const cutListeners = [];
let step = Infinity, clusters = leaves;
const kids = (node) => (node.children.length && node.children[0].birth <= step ? node.children : []);
const isThere = (node) => node.birth <= step;

// Undo the latest splits until there are at most so many clusters, as Taxonomy.cut does.
function cutAt(wanted) {
  let made = 1;
  step = 0;
  for (const node of splits) {
    made += node.children.length - 1;
    if (made > wanted) break;
    step = node.children[0].birth;
  }
  clusters = nodes.filter((node) => isThere(node) && !kids(node).length).sort((a, b) => a.start - b.start);
  nodes.forEach((node) => { node.label = null; node.count = 0; });
  clusters.forEach((node, n) => { node.label = "c" + n; node.count = 1; });
  for (let n = nodes.length - 1; n > 0; n--) nodes[n].above.count += nodes[n].count;
  cutListeners.forEach((listener) => listener());
  if (chosen) {
    while (!isThere(chosen)) chosen = chosen.above;
    choose(chosen, { stay: true });
  }
}

function showCut() {
  const all = data.n_clusters, now = clusters.length;
  byId("cut").value = now;
  byId("cut-number").value = now;
  byId("cut").setAttribute("aria-valuetext", `${count(now)} of ${plural(all, "cluster")}`);
  byId("subtitle").textContent = [plural(data.n_rows + data.n_noise, "row"), plural(data.n_features, "feature"), now < all ? `${count(now)} of ${plural(all, "cluster")}` : plural(all, "cluster")].join(" · ");
}

// The stability of every cut over the number of clusters: a thin line above the slider, or a picture.
function curve(width, height, last, isLarge = true) {
  const { suggested, n_refits: refits } = data.stability, points = data.stability.curve.filter(([n]) => n <= last);
  const x = (n) => width * (n - 1) / Math.max(1, last - 1), y = (value) => height - 2 - (height - 4) * clamp(value, 0, 1);
  const way = (which) => points.filter((point) => point[which] !== null).map((point, n) => `${n ? "L" : "M"}${x(point[0]).toFixed(1)},${y(point[which]).toFixed(1)}`).join("");
  return svg("svg", { class: isLarge ? "curve large" : "curve", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: isLarge ? null : "none", role: "img",
    "aria-label": `Stability of each number of clusters over ${refits} refits, beside data without clusters; suggested: ${plural(suggested, "cluster")}` },
    svg("path", { class: "reference", d: way(2) }), svg("path", { class: "stability", d: way(1) }),
    svg("line", { class: "suggested", x1: x(Math.min(suggested, last)), x2: x(Math.min(suggested, last)), y1: 0, y2: height }));
}
function startCut() {
  const slider = byId("cut"), field = byId("cut-number");
  let waiting = 0;
  slider.max = field.max = data.n_clusters;
  byId("cut-all").textContent = "of " + count(data.n_clusters);
  slider.addEventListener("input", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(() => cutAt(Number(slider.value))); });
  field.addEventListener("change", () => cutAt(clamp(Math.round(Number(field.value)) || 1, 1, data.n_clusters)));
  field.addEventListener("keydown", (event) => event.stopPropagation());
  byId("cutter").hidden = data.n_clusters === 1;
  if (data.stability) {
    const button = html("button", { id: "suggested", onclick: () => cutAt(data.stability.suggested), title: "The largest number of clusters that are all stable" }, "suggested: " + count(data.stability.suggested));
    byId("cut-all").replaceWith(button);
    byId("track").prepend(curve(200, 22, data.n_clusters, false));
  }
  cutListeners.push(showCut);
}
