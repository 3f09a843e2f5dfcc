// Rows as CSV (RFC 4180), made from what the page holds.
function field(value) {
  let text = String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;  // no formula for a spreadsheet
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
function toCsv(node) {
  const head = ["row", allNames && "name", "cluster", "path"].filter(Boolean);
  const lines = [head];
  clusters.forEach((cluster, label) => {
    if (cluster.stop <= node.start || cluster.start >= node.stop) return;
    const way = path(cluster).slice(1).map((step) => step.name).join(" > ");
    for (let n = Math.max(cluster.start, node.start); n < Math.min(cluster.stop, node.stop); n++) {
      const cells = [order[n]];
      if (allNames) cells.push(allNames[n]);
      cells.push(label, way);
      lines.push(cells);
    }
  });
  for (let n = data.n_rows; node === root && n < order.length; n++) {  // noise
    lines.push([order[n], ...(allNames ? [allNames[n]] : []), -1, ""]);
  }
  return lines.map((cells) => cells.map(field).join(",") + "\r\n").join("");
}
function download(node) {
  const address = URL.createObjectURL(new Blob([toCsv(node)], { type: "text/csv;charset=utf-8" }));
  const link = html("a", { href: address, download: node.above ? `rows-of-${node.label || "node-" + node.id}.csv` : "rows.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
