"""What the page holds, and what it takes."""

import io
import json
import re
import zlib
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from taxarbor import HMMC, Taxarbor, load_animals, make_planted_tree
from taxarbor.exchange import from_labels, from_linkage
from taxarbor.report import report


def context_of(path):
    text = path.read_text("utf-8")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(data[1])


def names_in(context):
    return zlib.decompress(b64decode(context["names"])).decode().split("\n")


def decode(picture):
    """Return the pixels of a data URL."""
    kind, _, data = picture.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(b64decode(data))))


def test_the_page_says_what_the_tree_says_every_time(animals, animals_page, tmp_path):
    X, kinds, model = animals
    taxonomy, context = model.taxonomy_, context_of(animals_page)
    assert context["n_rows"] == 206
    assert context["n_clusters"] == taxonomy.tree.n_leaves == 12
    for node, shown in enumerate(context["nodes"]):
        rows = taxonomy.tree.rows(node)
        assert shown["stop"] - shown["start"] == len(rows)
        assert shown["parent"] == taxonomy.tree.parent(node)
        reasons = taxonomy.reasons(node, 8)
        assert [one["name"] for one in shown["deciding"]] == [one.name for one in reasons]
        assert all(one["name"] in X.columns for one in shown["distinctive"])
        assert sum(count for _, count in shown["classes"]) == len(rows)
        for one in (*shown["typical"], *shown["extreme"], *shown["borderline"]):
            assert one["row"] in rows
        if shown["margins"]:
            assert sum(map(sum, shown["margins"])) == len(rows)
        counts = {context["classes"][code]: n for code, n in shown["classes"] if code >= 0}
        own = [kinds[row] for row in rows]
        assert all(own.count(name) == n for name, n in counts.items())
    assert names_in(context) == [X.index[row] for row in taxonomy.tree.order]
    assert 0.4 < context["scores"]["adjusted_rand"] < 0.8
    report(model, X, tmp_path / "again.html", classes=kinds, title="Animals")
    assert (tmp_path / "again.html").read_bytes() == animals_page.read_bytes()


def test_nothing_is_fetched(animals_page, hostile_page):
    for path in (animals_page, hostile_page):
        page = path.read_text("utf-8")
        assert set(re.findall(r"https?://[^\"'\s<]+", page)) <= {"http://www.w3.org/2000/svg"}
        assert page.count("</script>") == 2


def test_30000_rows_and_50_clusters_take_less_than_a_megabyte(tmp_path):
    data = make_planted_tree(n_rows=30_000, branching=2, depth=6, random_state=0)
    model = Taxarbor(50, n_init=1, random_state=0).fit(data.X)
    names = [f"cell {n:05d}" for n in range(30_000)]
    classes = np.char.add("type ", data.labels.astype(str))
    report(model, data.X, tmp_path / "page.html", row_names=names, classes=classes)
    assert (tmp_path / "page.html").stat().st_size < 1_000_000


def test_pictures(tmp_path):
    digits, path = load_digits(), tmp_path / "page.html"
    model = Taxarbor(10, random_state=0).fit(digits.data)
    for images in (
        digits.images / 16,
        (digits.images * 15).astype(np.uint8),
        np.repeat(digits.images[..., None] / 16, 3, axis=3).astype(np.float32),
    ):
        report(model, digits.data, path, images=images, classes=digits.target)
        pictures = context_of(path)["pictures"]
        assert len(pictures) > 50
        for row, picture in pictures.items():
            expected = digits.images[int(row)] / 16 * (255 if images.dtype.kind == "f" else 240)
            pixels = decode(picture)
            pixels = pixels[..., 0] if images.ndim == 4 else pixels
            np.testing.assert_allclose(pixels, expected, atol=0.51)
    for value in (-1.0, 2.0, np.nan):
        with pytest.raises(ValueError, match="from 0 to 1, got"):
            report(model, digits.data, path, images=np.full((1797, 2, 2), value))
    # Large ones are made smaller: a pixel is the mean of those that it stands for.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    images = rng.integers(0, 255, size=(300, 200, 150, 3), dtype=np.uint8)
    report(Taxarbor(20, random_state=0).fit(X), X, path, images=images)
    assert path.stat().st_size < 1_000_000
    context = context_of(path)
    for row, picture in context["pictures"].items():
        pixels = decode(picture)
        step = -(-200 // len(pixels))
        expected = images[int(row), :step, :step].mean(axis=(0, 1))
        np.testing.assert_allclose(pixels[0, 0], expected, atol=0.51)
    inner = {node["parent"] for node in context["nodes"]}
    for number, node in enumerate(context["nodes"]):
        if number not in inner:
            assert all(str(one["row"]) in context["pictures"] for one in node["typical"])


def test_any_tree_has_a_page(tmp_path):
    X = load_animals().X
    trees = [
        from_linkage(linkage(X, "ward"), 9),
        from_labels(X[:, 0]),
        from_labels(np.zeros(len(X))),
        HMMC(5, random_state=0).fit(X),
        Taxarbor(9, branching=3, random_state=0).fit(X),
        HMMC(5, random_state=0).fit(sparse.csr_array(X)),
    ]
    path = tmp_path / "page.html"
    for taxonomy in trees:
        report(taxonomy, X, path)
        tree = getattr(taxonomy, "taxonomy_", taxonomy).tree
        assert len(context_of(path)["nodes"]) == tree.n_nodes
    animals = load_animals()
    report(trees[-2], X, path, classes=animals.names, truth=animals.tree)
    assert context_of(path)["scores"]["adjusted_shortest_path"] > 0.1


def test_rows_without_a_class_are_no_class(animals, tmp_path):
    X, kinds, model = animals
    path, taxonomy = tmp_path / "page.html", model.taxonomy_
    gaps = [kind if row % 3 else None for row, kind in enumerate(kinds)]
    with pytest.warns(UserWarning, match="69 rows"):
        report(model, X, path, classes=gaps)
    context, known = context_of(path), np.arange(206) % 3 > 0
    assert set(context["classes"]) == {*gaps} - {None}
    for node, shown in enumerate(context["nodes"]):
        counts, rows = dict(shown["classes"]), taxonomy.tree.rows(node)
        assert counts.pop(-2, 0) == np.sum(~known[rows])
        assert sum(counts.values()) == np.sum(known[rows])
    expected = adjusted_rand_score(np.array(kinds)[known], taxonomy.tree.labels[known])
    assert context["scores"]["adjusted_rand"] == pytest.approx(expected, abs=1e-4)


def test_what_does_not_fit_is_refused_and_nothing_is_written(animals, tmp_path):
    X, _, model = animals
    path = tmp_path / "page.html"
    path.write_text("old")
    for change, name in (
        ({"classes": ["a"] * 5}, "class"),
        ({"row_names": ["a"]}, "row names"),
        ({"images": np.zeros((206, 5))}, "images"),
        ({"images": np.zeros((9, 5, 5))}, "image"),
        ({"images": np.zeros((206, 5, 5, 2))}, "images"),
        ({"images": np.zeros((206, 5, 5), dtype=int)}, "images"),
        ({"truth": {"name": "a"}}, "classes"),
    ):
        with pytest.raises(ValueError, match=name):
            report(model, X, path, **change)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
    damaged = sparse.csr_array(X.to_numpy())
    damaged.indices[5] = 2 * 10**9
    with pytest.raises(ValueError, match=r"^X "):
        report(model, damaged, path)
    with pytest.raises(OSError, match="nowhere"):
        report(model, X, tmp_path / "nowhere" / "page.html")
    assert path.read_text() == "old"


def test_names_given_are_shown(animals, tmp_path):
    X, _, _ = animals
    path = tmp_path / "page.html"
    rows, columns = [f"r{n}" for n in range(206)], [f"c{n}" for n in range(85)]
    taxonomy = from_labels(np.arange(206) % 4).rename_features(columns)
    report(taxonomy, X.to_numpy(), path, row_names=rows)
    context = context_of(path)
    assert names_in(context) == [f"r{row}" for row in taxonomy.tree.order]
    names = {feature["name"] for node in context["nodes"] for feature in node["deciding"]}
    assert set() < names <= set(columns)
    assert not context["names_are_words"]  # r1, r2, ... take no room in the picture
    codes = ["".join(row) for row in np.random.default_rng(0).choice([*"ACGT"], (206, 14))]
    for names, are_words in ((list(X.index), True), (codes, False)):
        report(taxonomy, X.to_numpy(), path, row_names=names)
        assert context_of(path)["names_are_words"] is are_words


def test_the_page_of_a_table(table_page):
    path, taxonomy = table_page
    context, columns = context_of(path), taxonomy.columns
    assert (context["n_features"], context["n_noise"]) == (len(columns), 0)
    table = context["table"]
    assert [name for name, _, _ in table["columns"]] == [one.label for one in columns]
    assert {kind.split(":")[0] for _, kind, _ in table["columns"]} >= {"number", "category"}
    assert table["dropped"] == [list(pair) for pair in columns.dropped]
    assert table["notes"] == list(map(str, columns.notes))
    shown = [one for node in context["nodes"] for one in node["typical"] + node["borderline"]]
    assert "unknown" in [cell for one in shown for cell in one["values"]]
    leads = [lead for node in context["nodes"] for lead in node["deciding"]]
    assert any(lead["missing"] for lead in leads)
    assert all("%" in lead["mean"] for lead in leads if " = " in lead["text"])
    features = [one for node in context["nodes"] for one in node["distinctive"]]
    assert any(feature["missing"] for feature in features)


def test_the_page_says_where_splits_are_decided(four_clusters, three_nodes, tmp_path):
    for (taxonomy, X), expected in (
        (four_clusters, ["decided at node 0, among 4 clusters"] * 3),
        (three_nodes, ["decided at node 0, among 3 nodes"] * 2 + [""]),
    ):
        report(taxonomy, X, tmp_path / "page.html")
        nodes = context_of(tmp_path / "page.html")["nodes"]
        assert [node["decision"] for node in nodes] == [*expected, *[""] * 4]
        assert all(node["n_deciding"] == 2 for node in nodes[1:])
        assert [len(node["margins"]) for node in nodes] == [2, 2, 2, 0, 0, 0, 0]
