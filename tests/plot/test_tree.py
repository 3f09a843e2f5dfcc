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
from matplotlib.colors import to_hex
from matplotlib.patches import FancyBboxPatch

from taxarbor.exchange import from_labels
from taxarbor.plot import plot_tree
from taxarbor.plot._tree_plot import lay_out
from tests.plot.conftest import TAXONOMIES

# Where nodes stand


@st.composite
def arrangements(draw):
    tree, max_depth = draw(TAXONOMIES).tree, draw(st.none() | st.integers(0, 5))
    limit = tree.height if max_depth is None else max_depth
    nodes = np.flatnonzero(tree.depth <= limit)
    sizes = hnp.arrays(float, len(nodes), elements=st.floats(1, 300))
    widths, heights, is_down = draw(sizes), draw(sizes), draw(st.booleans())
    return tree, nodes, heights, is_down, lay_out(tree, nodes, widths, heights, is_down=is_down)


@given(arrangement=arrangements())
def test_boxes_are_in_order_and_parents_in_the_middle(arrangement):
    tree, nodes, heights, is_down, layout = arrangement
    width, height = (layout.high - layout.low).T
    np.testing.assert_allclose(width, width[0])
    np.testing.assert_allclose(height, heights)
    center = (layout.low + layout.high) / 2 * ([1, 1] if is_down else [1, -1])
    middle = dict(zip(nodes.tolist(), center[:, int(not is_down)].tolist(), strict=True))
    ends = []
    for node in nodes.tolist():
        below = [middle[child] for child in tree.children(node) if child in middle]
        assert below == sorted(below)
        if below:
            assert middle[node] == pytest.approx((below[0] + below[-1]) / 2)
        else:
            ends.append(node)
    ends.sort(key=tree.start.__getitem__)
    steps = np.diff([middle[node] for node in ends])
    assert (steps > 0.0).all()
    np.testing.assert_allclose(steps, steps[:1].repeat(len(steps)))


@given(arrangement=arrangements())
def test_boxes_are_apart_and_on_the_page(arrangement):
    *_, layout = arrangement
    for i, j in itertools.combinations(range(len(layout.low)), 2):
        apart = (layout.high[i] < layout.low[j]) | (layout.high[j] < layout.low[i])
        assert apart.any()
    lines = np.concatenate([layout.branches.reshape(-1, 2), layout.stubs.reshape(-1, 2)])
    corners = np.concatenate([layout.low, layout.high, lines])
    assert (corners > 0).all()
    assert (corners < layout.size).all()


@given(arrangement=arrangements())
def test_branches_lead_from_parents_to_children_and_enter_no_box(arrangement):
    tree, nodes, _, is_down, layout = arrangement
    for a, b in itertools.chain(*(itertools.pairwise(line) for line in layout.branches)):
        assert np.isclose(a, b).any()  # across or along
        low, high = np.minimum(a, b), np.maximum(a, b)
        outside = (high <= layout.low + 1e-9) | (low >= layout.high - 1e-9)
        assert outside.any(axis=1).all()
    towards = np.array([0, -1] if is_down else [1, 0])
    center, half = (layout.low + layout.high) / 2, (layout.high - layout.low) / 2
    parents = np.searchsorted(nodes, tree.parents[nodes[1:]])
    np.testing.assert_allclose(layout.branches[:, 0], (center + towards * half)[parents])
    np.testing.assert_allclose(layout.branches[:, -1], (center - towards * half)[1:])
    depth = tree.depth[nodes]
    is_cut = (depth == depth.max()) & ~np.isin(nodes, tree.leaves)
    np.testing.assert_allclose(layout.stubs[:, 0], (center + towards * half)[is_cut])


# Words and boxes


def boxes_of(ax):
    return [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]


def words(ax):
    """Return the lines of text in each box."""
    ends = [(*box.get_bbox().min, *box.get_bbox().max) for box in boxes_of(ax)]
    lines = [[] for _ in ends]
    for text in ax.texts:
        x, y = text.get_position()
        (at,) = [n for n, (x0, y0, x1, y1) in enumerate(ends) if x0 < x < x1 and y0 < y < y1]
        lines[at].append(text)
    return [[text.get_text() for text in texts] for texts in lines]


def bars_of(ax):
    """Return left, bottom, width, height and colour of each piece of a bar."""
    bars = itertools.chain(*ax.containers)
    return [(*bar.get_bbox().bounds, to_hex(bar.get_facecolor())) for bar in bars]


def assert_readable(ax):
    """Check places in pixels."""
    renderer = ax.figure.canvas.get_renderer()
    boxes = np.array([box.get_window_extent(renderer).extents for box in boxes_of(ax)])
    for a, b in itertools.combinations(boxes, 2):
        assert (a[2:] < b[:2]).any() or (b[2:] < a[:2]).any()
    drawn = itertools.chain(ax.texts, *ax.containers)
    places = [one.get_window_extent(renderer).extents for one in drawn]
    for place in places:
        inside = np.hstack([place[:2] >= boxes[:, :2], place[2:] <= boxes[:, 2:]]).all(axis=1)
        assert inside.sum() == 1
    for a, b in itertools.pairwise(places[: len(ax.texts)]):  # one below the other
        assert a[1] + 1 >= b[3] or b[2] < a[0] or a[2] < b[0] or b[1] > a[3]
    low, high = ax.get_window_extent().extents.reshape(2, 2)
    if ax.get_legend() is not None:
        low[1] = ax.get_legend().get_window_extent().extents[3]
    assert (boxes[:, :2] >= low - 1e-6).all()
    assert (boxes[:, 2:] <= high + 1e-6).all()


@pytest.mark.parametrize("orientation", ["down", "right"])
def test_seven_lines_in_four_layers(animals, orientation):
    taxonomy, names = animals

    def describe(node):
        rows = taxonomy.tree.rows(node)
        some = rows[np.linspace(0, len(rows) - 1, 3).astype(int)]
        features = ["+eats insects or worms", "-lives in sea", "striped"]
        return [f"{len(rows):,} images", *(f"{names[row]} (123)" for row in some), *features]

    ax = plot_tree(taxonomy, max_depth=4, describe=describe, orientation=orientation)
    assert len(boxes_of(ax)) > 20
    assert ax.texts[0].get_fontsize() == pytest.approx(8)
    for dpi in (70, 200):
        ax.figure.set_dpi(dpi)
        assert_readable(ax)
    shown = np.flatnonzero(taxonomy.tree.depth <= 4).tolist()
    assert words(ax) == [describe(node) for node in shown]


def test_words_by_default(known, animals, four_clusters):
    assert words(plot_tree(known))[:4] == [
        ["12 rows"], ["3 rows", "higher a"], ["6 rows", "higher $b$"],
        ["3 rows", "lower $b$", "lower a"],
    ]  # fmt: skip
    # They are those of the text, shortened.
    taxonomy, _ = animals
    pattern = r"node (\d+): (.*?)(?: \(.*\))?(?: \[c\d+\])?$"
    lines = re.findall(pattern, taxonomy.to_text(), re.MULTILINE)
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
            ax = plot_tree(known, describe=lambda node, text=text: [text])
            ax.figure.savefig(tmp_path / "a.svg")
        assert words(ax) == [[text]] * 6
        assert (tmp_path / "a.svg").read_text("utf-8").count(f">{text}</text>") == 6


def test_a_cut_is_shown(known):
    for max_depth, n_boxes, n_stubs in ((None, 6, 0), (np.int64(1), 4, 1)):
        ax = plot_tree(known, max_depth=max_depth)
        assert len(boxes_of(ax)) == n_boxes
        assert len(ax.collections[1].get_segments()) == n_stubs
    faces = [box.get_facecolor() for box in boxes_of(ax)]
    assert faces[0] == faces[2] != faces[1] == faces[3]


def test_unstable_nodes_are_pale(known, assessed):
    ax = plot_tree(assessed, describe=lambda node: ["one"], classes=["one", "two"] * 6)
    is_solid = [box.get_linestyle() == "solid" for box in boxes_of(ax)]
    assert is_solid == [True] * 4 + [False] * 2
    assert [text.get_alpha() == 1.0 for text in ax.texts] == is_solid
    names = [text.get_text() for text in ax.get_legend().texts]
    assert names == ["one", "two", "pale: not stable"]
    assert plot_tree(known).get_legend() is None
    assert plot_tree(assessed, max_depth=1).get_legend() is None


def test_a_root_alone_and_boxes_without_lines(single, known):
    ax = plot_tree(single)
    assert words(ax) == [["3 rows"]]
    assert_readable(ax)
    ax = plot_tree(known, describe=lambda node: [] if node else ["root", ""])
    assert words(ax) == [["root", ""], *[[]] * 5]
    ax.figure.canvas.draw()


def test_large_trees(chain):
    ax = plot_tree(from_labels(np.arange(200)))
    assert ax.figure.get_figwidth() == pytest.approx(100)
    assert ax.texts[0].get_fontsize() < 9
    assert_readable(ax)
    # Text too small to draw is left out.
    ax = plot_tree(from_labels(np.arange(1500)))
    assert len(boxes_of(ax)) == 1501
    assert not ax.texts
    assert len(boxes_of(plot_tree(chain, max_depth=100))) == 201


# Classes


@settings(max_examples=10)
@given(taxonomy=TAXONOMIES, data=st.data())
def test_bars_have_the_shares_of_the_classes(data, taxonomy):
    tree = taxonomy.tree
    labels = st.lists(st.integers(0, 11), min_size=tree.n_rows, max_size=tree.n_rows)
    classes = np.array([f"class {n}" for n in data.draw(labels)])
    ax = plot_tree(taxonomy, classes=classes)
    legend, sizes = ax.get_legend(), Counter(classes.tolist())
    colours = [to_hex(one.get_facecolor()) for one in legend.get_patches()]
    name_of = dict(zip(colours, [text.get_text() for text in legend.texts], strict=True))
    named = {*name_of.values()}
    assert sorted(sizes[name] for name in named - {"other"}) == sorted(sizes.values())[-8:]
    assert ("other" in named) == (len(sizes) > 8)
    shown = words(ax)
    for node, box in enumerate(boxes_of(ax)):
        shares, (x0, y0), (x1, y1) = Counter(), box.get_bbox().min, box.get_bbox().max
        for left, bottom, width, _, colour in bars_of(ax):
            if x0 < left < x1 and y0 < bottom < y1:
                shares[name_of[colour]] += width / (x1 - x0 - 12)
        counts, expected = Counter(classes[tree.rows(node)].tolist()), Counter()
        for name, count in counts.items():
            expected[name if name in named else "other"] += count / tree.sizes[node]
        assert shares == pytest.approx(expected)
        largest, _, share = shown[node][1].rpartition(" · ")
        assert counts[largest] == max(counts.values())
        assert share == f"{max(counts.values()) / tree.sizes[node]:.0%}"
    plt.close("all")


def test_the_order_and_names_of_classes(known):
    def legend(classes):
        texts = plot_tree(known, classes=classes).get_legend().texts
        return [text.get_text() for text in texts]

    assert legend(["b", "c", "c", "a"] * 3) == ["c", "b", "a"]
    gaps = ["a", None, "b", "a", "", "a"] * 2
    assert legend(gaps) == ["a", "b", "(no label)"]
    assert legend([f"c{n:02}" for n in range(11)] + [None])[8:] == ["other", "(no label)"]
    assert words(plot_tree(known, classes=gaps))[0] == ["12 rows", "a · 75%", "b · 25%"]
    assert words(plot_tree(known, classes=["a"] * 11 + ["b"]))[0] == ["12 rows", "a · 92%"]


def test_given_axes_are_used(known):
    classes, sizes = ["one", "two", "three", "four"] * 3, ((3, 2), (6.4, 4.8), (40, 40))
    for size, orientation in itertools.product(sizes, ["down", "right"]):
        _, (ax, _) = plt.subplots(1, 2, figsize=size)
        ax.set_aspect("equal")
        ax.invert_yaxis()
        assert plot_tree(known, ax=ax, orientation=orientation, classes=classes) is ax
        ax.figure.canvas.draw()
        assert_readable(ax)
        places = np.array([box.get_window_extent().extents for box in boxes_of(ax)])
        axis, sign = (1, 1) if orientation == "down" else (0, -1)
        assert (sign * (places[0, axis] - places[1:, axis]) > 0).all()
