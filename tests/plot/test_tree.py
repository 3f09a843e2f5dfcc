"""Boxes do not overlap, whatever they hold, and show every word on the axes given."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from matplotlib import pyplot as plt

from taxarbor.exchange import from_labels
from taxarbor.plot import plot_tree
from taxarbor.plot._axes import CLASSES, GRID, OTHER
from taxarbor.plot._tree_plot import BAR_HEIGHT, PAD, lay_out, place_boxes

# Where nodes stand


@given(data=st.data(), max_depth=st.none() | st.integers(0, 5))
def test_places(data, max_depth, taxonomies):
    taxonomy = data.draw(taxonomies)
    tree, layout = taxonomy.tree, lay_out(taxonomy, max_depth)
    limit = tree.height if max_depth is None else max_depth
    nodes = layout.nodes.tolist()
    # The nodes are those above the cut, and their parents theirs.
    assert nodes == [node for node in range(tree.n_nodes) if tree.depth[node] <= limit]
    np.testing.assert_array_equal(layout.depth, tree.depth[nodes])
    is_cut = [tree.depth[n] == limit and not tree.is_leaf(n) for n in nodes]
    np.testing.assert_array_equal(layout.is_cut, is_cut)
    assert layout.nodes[layout.parents].tolist() == [tree.parent(node) for node in nodes[1:]]
    # Ends stand in order at equal distances, parents in the middle.
    place = dict(zip(nodes, layout.breadth.tolist(), strict=True))
    ends = []
    for node, middle in place.items():
        below = [place[child] for child in tree.children(node) if child in place]
        assert below == sorted(below)
        if below:
            assert middle == (below[0] + below[-1]) / 2
        else:
            ends.append(node)
    assert layout.n_ends == len(ends)
    assert sorted(place[node] for node in ends) == list(range(len(ends)))
    assert (np.diff(tree.start[sorted(ends, key=place.get)]) > 0).all()


@st.composite
def arrangements(draw, taxonomies):
    layout = lay_out(draw(taxonomies), draw(st.none() | st.integers(0, 5)))
    sizes = hnp.arrays(float, len(layout.nodes), elements=st.floats(1, 300))
    available = draw(st.none() | st.tuples(st.floats(10, 2000), st.floats(10, 2000)))
    orientation = draw(st.sampled_from(["down", "right"]))
    widths, heights = draw(sizes), draw(sizes)
    placed = place_boxes(layout, widths, heights, orientation, available)
    return layout, widths, heights, orientation, available, placed


@given(data=st.data())
def test_boxes_are_large_enough_apart_and_on_the_page(data, taxonomies):
    _, widths, heights, _, available, placed = data.draw(arrangements(taxonomies))
    for i, j in itertools.combinations(range(len(placed.low)), 2):
        apart = (placed.high[i] < placed.low[j]) | (placed.high[j] < placed.low[i])
        assert apart.any()
    width, height = (placed.high - placed.low).T
    np.testing.assert_allclose(width, widths.max())
    np.testing.assert_allclose(height, heights)
    ends = np.concatenate([placed.branches, placed.stubs]).reshape(-1, 2)
    corners = np.concatenate([placed.low, placed.high, ends])
    assert (corners > 0).all()
    assert (corners < placed.size).all()
    if available is None:
        assert placed.scale == 1
    else:
        assert 0 < placed.scale <= 1
        np.testing.assert_allclose(placed.scale * np.array(placed.size), available)


@given(data=st.data())
def test_branches_lead_from_parents_to_children_and_enter_no_box(data, taxonomies):
    layout, _, _, orientation, _, placed = data.draw(arrangements(taxonomies))
    for a, b in placed.branches:
        assert (a == b).any()  # across or along
        low, high = np.minimum(a, b), np.maximum(a, b)
        outside = (high <= placed.low + 1e-9) | (low >= placed.high - 1e-9)
        assert outside.any(axis=1).all()
    towards = {"down": np.array([0, -1]), "right": np.array([1, 0])}[orientation]
    center, half = (placed.low + placed.high) / 2, (placed.high - placed.low) / 2
    ends = placed.branches.reshape(-1, 2)
    parents, children = layout.parents, np.arange(1, len(center))
    leave = center[parents] + towards * half[parents]
    for point in (*leave, *(center[children] - towards * half[children])):
        assert (np.abs(ends - point).max(axis=1) < 1e-9).any()
    assert len(placed.stubs) == layout.is_cut.sum()
    for stub, node in zip(placed.stubs, np.flatnonzero(layout.is_cut), strict=True):
        np.testing.assert_allclose(stub[0], center[node] + towards * half[node])


# Words and boxes


def words(drawn):
    return [[text.get_text() for text in texts] for texts in drawn.texts]


def extents(drawn):
    """Return the places of boxes and of texts in pixels, (n, 4), and whose texts they are."""
    renderer = drawn.axes.figure.canvas.get_renderer()
    boxes = np.array([box.get_window_extent(renderer).extents for box in drawn.boxes])
    owners = [n for n, texts in enumerate(drawn.texts) for _ in texts]
    texts = [text.get_window_extent(renderer).extents for text in itertools.chain(*drawn.texts)]
    return boxes, np.array(texts), owners


def assert_readable(drawn):
    boxes, texts, owners = extents(drawn)
    for a, b in itertools.combinations(boxes, 2):
        assert (a[2:] < b[:2]).any() or (b[2:] < a[:2]).any()
    assert (texts[:, :2] >= boxes[owners, :2]).all()
    assert (texts[:, 2:] <= boxes[owners, 2:]).all()
    lower = 1 + np.flatnonzero(np.diff(owners) == 0)
    assert (texts[lower, 3] <= texts[lower - 1, 1] + 1).all()  # pixels
    assert (boxes >= 0).all()
    assert (boxes <= np.tile(drawn.axes.figure.bbox.size, 2)).all()
    # Bars are in boxes, below their texts.
    at = drawn.axes.transData.transform
    lowest = boxes[:, 3].copy()
    np.minimum.at(lowest, owners, texts[:, 1])
    bars = [] if drawn.bars is None else drawn.bars.get_paths()
    for left, bottom, right, top in (at(bar.vertices[:4])[[0, 2]].ravel() for bar in bars):
        center = np.array([left + right, bottom + top]) / 2
        is_around = (boxes[:, :2] < center).all(axis=1) & (boxes[:, 2:] > center).all(axis=1)
        (owner,) = np.flatnonzero(is_around)
        assert boxes[owner, 0] < left < right < boxes[owner, 2]
        assert boxes[owner, 1] < bottom < top < lowest[owner] + 1e-6


@pytest.mark.parametrize("orientation", ["down", "right"])
def test_seven_lines_in_four_layers(animals, orientation):
    taxonomy, names = animals

    def describe(node):
        rows = taxonomy.tree.rows(node)
        some = rows[np.linspace(0, len(rows) - 1, 3).astype(int)]
        features = [("+eats insects or worms", "plus"), ("-lives in sea", "minus"), "striped"]
        return [f"{len(rows):,} images", *(f"{names[row]} (123)" for row in some), *features]

    drawn = plot_tree(taxonomy, max_depth=4, describe=describe, orientation=orientation)
    assert len(drawn.boxes) > 20
    assert drawn.texts[0][1].get_fontsize() == pytest.approx(8)
    for dpi in (70, 200):
        drawn.axes.figure.set_dpi(dpi)
        assert_readable(drawn)
    assert words(drawn) == [
        [line if isinstance(line, str) else line[0] for line in describe(node)]
        for node in drawn.layout.nodes.tolist()
    ]


def test_words_by_default(known, animals, four_clusters):
    assert words(plot_tree(known))[:4] == [
        ["12 rows"], ["3 rows", "higher a"], ["6 rows", "higher $b$"],
        ["3 rows", "lower $b$", "lower a"],
    ]  # fmt: skip
    # They are those of the text, shortened.
    taxonomy, _ = animals
    lines = re.findall(
        r"node (\d+): (.*?)(?: \(.*\))?(?: \[c\d+\])?$", taxonomy.to_text(), re.MULTILINE
    )
    shown = words(plot_tree(taxonomy))
    assert len(lines) == len(shown)
    for node, line in lines:
        for full, short in zip(line.split(", "), shown[int(node)], strict=False):
            assert full == short or ("…" in short and len(short) == 28)
    shown = words(plot_tree(four_clusters[0]))
    assert "chooses among 4 clusters" in shown[0]
    assert not any("chooses" in text for lines in shown[1:] for text in lines)


def test_texts_are_literal(known, tmp_path):
    for text in ("$x$", r"$\frac$", "a $", r"\$5", "50% {", r"\alpha_1^2"):
        with plt.rc_context({"svg.fonttype": "none"}):
            drawn = plot_tree(known, describe=lambda node, text=text: [text])
            drawn.axes.figure.savefig(tmp_path / "a.svg")
        assert words(drawn) == [[text]] * 6
        assert (tmp_path / "a.svg").read_text("utf-8").count(f">{text}</text>") == 6


def test_a_cut_is_shown(known):
    whole, cut = plot_tree(known), plot_tree(known, max_depth=np.int64(1))
    assert (len(whole.boxes), len(cut.boxes)) == (6, 4)
    assert (len(whole.stubs.get_segments()), len(cut.stubs.get_segments())) == (0, 1)
    faces = [box.get_facecolor() for box in cut.boxes]
    assert faces[0] == faces[2] != faces[1] == faces[3]


def test_unstable_nodes_are_pale(known, assessed):
    drawn = plot_tree(assessed, classes=["one", "two"] * 6)
    assert [box.get_linestyle() == "solid" for box in drawn.boxes] == [True] * 4 + [False] * 2
    alphas = [texts[0].get_alpha() for texts in drawn.texts]
    assert min(alphas[:4]) == 1.0 > max(alphas[4:])
    assert [text.get_text() for text in drawn.legend.texts] == [
        "one",
        "two",
        "pale: not stable",
    ]
    assert plot_tree(known).legend is None
    assert plot_tree(assessed, max_depth=1).legend is None


def test_a_root_alone_and_boxes_without_lines(single, known):
    drawn = plot_tree(single)
    assert words(drawn) == [["3 rows"]]
    assert_readable(drawn)
    drawn = plot_tree(known, describe=lambda node: [] if node else ["root", ""])
    assert words(drawn) == [["root", ""], *[[]] * 5]
    drawn.axes.figure.canvas.draw()


def test_large_trees(chain):
    drawn = plot_tree(from_labels(np.arange(200)))
    assert drawn.axes.figure.get_figwidth() == pytest.approx(100)
    boxes, texts, owners = extents(drawn)
    assert drawn.texts[0][0].get_fontsize() < 9
    assert (np.diff(boxes[1:, 0]) > boxes[1:, 2][:-1] - boxes[1:, 0][:-1]).all()
    assert (texts[:, 2] - texts[:, 0] < boxes[owners, 2] - boxes[owners, 0]).all()
    # Text too small to draw is left out.
    drawn = plot_tree(from_labels(np.arange(1500)))
    assert len(drawn.boxes) == len(drawn.texts) == 1501
    assert not any(drawn.texts)
    assert len(plot_tree(chain, max_depth=100).boxes) == 201


# Classes


def describe_bars(drawn):
    """Return, of each box, the width of its pieces as shares, by the name of their class."""
    pieces = [path.vertices[:4] for path in drawn.bars.get_paths()]
    colours = [tuple(face) for face in drawn.bars.get_facecolors()]
    handles = [tuple(patch.get_facecolor()) for patch in drawn.legend.get_patches()]
    names = [text.get_text() for text in drawn.legend.texts]
    name_of = dict(zip(handles, names, strict=True))
    shares = [Counter() for _ in drawn.boxes]
    for piece, colour in zip(pieces, colours, strict=True):
        x, y = piece.mean(axis=0)
        for box, count in zip(drawn.boxes, shares, strict=True):
            is_here = box.get_x() < x < box.get_x() + box.get_width()
            if is_here and box.get_y() < y < box.get_y() + box.get_height():
                width = np.ptp(piece[:, 0]) / (box.get_width() - 2 * PAD)
                count[name_of[colour]] += width
    return shares


@settings(max_examples=10)
@given(data=st.data())
def test_bars_have_the_shares_of_the_classes(data, taxonomies):
    taxonomy = data.draw(taxonomies)
    tree = taxonomy.tree
    labels = st.lists(st.integers(0, 11), min_size=tree.n_rows, max_size=tree.n_rows)
    classes = np.array([f"class {n}" for n in data.draw(labels)])
    drawn = plot_tree(taxonomy, classes=classes)
    sizes = Counter(classes.tolist())
    named = {text.get_text() for text in drawn.legend.texts}
    assert sorted(sizes[name] for name in named - {"other"}) == sorted(sizes.values())[-8:]
    assert ("other" in named) == (len(sizes) > 8)
    for node, shares in enumerate(describe_bars(drawn)):
        counts = Counter(classes[tree.rows(node)].tolist())
        expected = Counter()
        for name, count in counts.items():
            expected[name if name in named else "other"] += count / tree.sizes[node]
        assert shares == pytest.approx(expected)
        largest, _, share = words(drawn)[node][1].rpartition(" · ")
        assert counts[largest] == max(counts.values())
        assert share == f"{max(counts.values()) / tree.sizes[node]:.0%}"
    plt.close("all")


def test_the_order_and_names_of_classes(known):
    def legend(classes):
        drawn = plot_tree(known, classes=classes)
        colours = [patch.get_facecolor() for patch in drawn.legend.get_patches()]
        names = [text.get_text() for text in drawn.legend.texts]
        return names, [plt.matplotlib.colors.to_hex(colour) for colour in colours]

    assert legend(["b", "c", "c", "a"] * 3) == (["c", "a", "b"], list(CLASSES[:3]))
    assert legend([10, 9, 9, 9] * 3)[0] == ["9", "10"]
    assert legend([10.5, -1.0, 3.0, 3.0] * 3)[0] == ["-1.0", "3.0", "10.5"]
    gaps = ["a", None, "b", "a", "", "a"] * 2
    assert legend(gaps) == (["a", "b", "(no label)"], [*CLASSES[:2], GRID])
    names, colours = legend([f"c{n:02}" for n in range(11)] + [None])
    assert names[8:] == ["other", "(no label)"]
    assert colours == [*CLASSES, OTHER, GRID]
    drawn = plot_tree(known, classes=gaps)
    assert words(drawn)[0] == ["12 rows", "a · 75%", "b · 25%"]
    assert words(plot_tree(known, classes=["a"] * 11 + ["b"]))[0] == ["12 rows", "a · 92%"]
    box, piece = drawn.boxes[0], drawn.bars.get_paths()[0].vertices[:4]
    foot = box.get_y() + PAD
    assert (piece[:, 1].min(), piece[:, 1].max()) == pytest.approx((foot, foot + BAR_HEIGHT))


def test_given_axes_are_filled(known):
    sizes = (3, 2), (6.4, 4.8), (40, 40)
    for size, orientation in itertools.product(sizes, ["down", "right"]):
        _, (ax, _) = plt.subplots(1, 2, figsize=size)
        ax.set_aspect("equal")
        ax.invert_yaxis()
        classes = ["one", "two", "three", "four"] * 3
        drawn = plot_tree(known, ax=ax, orientation=orientation, classes=classes)
        drawn.axes.figure.canvas.draw()
        assert_readable(drawn)
        boxes, _, _ = extents(drawn)
        low, high = ax.get_window_extent().extents.reshape(2, 2)
        assert (boxes[:, :2] >= low).all()
        assert (boxes[:, 2:] <= high).all()
        axis, sign = (1, 1) if orientation == "down" else (0, -1)
        assert (sign * (boxes[0, axis] - boxes[1:, axis]) > 0).all()
        if drawn.legend is not None:
            legend = drawn.legend.get_window_extent().extents
            assert legend[3] <= boxes[:, 1].min()
    _, ax = plt.subplots(figsize=(1, 1))
    assert plot_tree(known, ax=ax, classes=classes).legend is None  # too large
