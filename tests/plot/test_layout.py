"""Places, words, classes and branches of nodes; no tree is too deep or too wide."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor.exchange import from_labels
from taxarbor.plot._axes import CLASSES, GRID, N_BRANCHES, OTHER
from taxarbor.plot._layout import count_classes, find_branches, lay_out, tidy
from taxarbor.plot._tree import describe_node


@given(data=st.data())
def test_places(data, trees, depths):
    taxonomy, max_depth = data.draw(trees), data.draw(depths)
    layout = lay_out(taxonomy, max_depth)
    limit = taxonomy.tree.height if max_depth is None else max_depth
    nodes = layout.nodes.tolist()
    # The nodes are those above the cut, and their parents theirs.
    assert nodes == [
        node for node in range(taxonomy.tree.n_nodes) if taxonomy.tree.depth[node] <= limit
    ]
    np.testing.assert_array_equal(layout.depth, taxonomy.tree.depth[nodes])
    is_cut = [taxonomy.tree.depth[n] == limit and not taxonomy.tree.is_leaf(n) for n in nodes]
    np.testing.assert_array_equal(layout.is_cut, is_cut)
    assert layout.height == min(limit, taxonomy.tree.height)
    assert layout.nodes[layout.parents].tolist() == [
        taxonomy.tree.parent(node) for node in nodes[1:]
    ]
    # Ends stand in order at equal distances, parents in the middle.
    place = dict(zip(nodes, layout.breadth.tolist(), strict=True))
    ends = []
    for node, middle in place.items():
        below = [place[child] for child in taxonomy.tree.children(node) if child in place]
        assert below == sorted(below)
        if below:
            assert middle == (below[0] + below[-1]) / 2
        else:
            ends.append(node)
    assert layout.n_ends == len(ends)
    assert sorted(place[node] for node in ends) == list(range(len(ends)))
    assert (np.diff(taxonomy.tree.start[sorted(ends, key=place.get)]) > 0).all()
    for depth in range(layout.height + 1):
        places = sorted(layout.breadth[layout.depth == depth])
        assert all(b - a >= 1 for a, b in itertools.pairwise(places))


def test_known_places(known, single):
    layout = lay_out(known)
    assert layout.nodes.tolist() == [0, 1, 2, 3, 4, 5]
    assert layout.breadth.tolist() == [1.5, 0, 1.5, 3, 1, 2]
    cut = lay_out(known, np.int64(1))
    assert cut.breadth.tolist() == [1, 0, 1, 2]
    assert cut.is_cut.tolist() == [False, False, True, False]
    root = lay_out(known, 0)
    assert root.nodes.tolist() == [0]
    assert root.is_cut.all()
    for max_depth in (None, 0, 3):
        alone = lay_out(single, max_depth)
        assert (alone.nodes, alone.breadth, alone.depth) == ([0], [0], [0])
        assert alone.parents.shape == (0,)
        assert not alone.is_cut.any()


def test_deep_and_wide_trees(chain):
    layout = lay_out(chain)
    assert (layout.n_ends, layout.height) == (chain.n_leaves, chain.height)
    assert layout.breadth.min() == 0
    assert layout.breadth.max() == chain.n_leaves - 1
    wide = lay_out(from_labels(np.arange(10_000)))
    assert wide.breadth[0] == 9999 / 2
    np.testing.assert_array_equal(wide.breadth[1:], np.arange(10_000))


def described(taxonomy):
    makeup = count_classes(taxonomy, None)
    return [describe_node(taxonomy, makeup, node) for node in range(taxonomy.tree.n_nodes)]


def test_the_default_says_what_to_text_says(animals):
    taxonomy, _ = animals
    told = re.findall(
        r"node (\d+): (.*?)(?: \(came.*\))?(?: \[c\d+\])?$", taxonomy.to_text(), re.M
    )
    assert len(told) == taxonomy.tree.n_nodes
    lines = described(taxonomy)
    for node, line in told:
        words = ", ".join(text for text, _ in lines[int(node)])
        assert words == line.replace(" (words", ", words").replace(" rows)", " rows")


def test_words_by_default(known):
    assert described(known)[:4] == [
        [("12 rows", "title")],
        [("3 rows", "title"), ("higher a", "plus")],
        [("6 rows", "title"), ("higher $b$", "plus")],
        [("3 rows", "title"), ("lower $b$", "minus"), ("lower a", "minus")],
    ]
    assert described(from_labels([0] + [1] * 12_345)) == [
        [("12,346 rows", "title")], [("1 row", "title")], [("12,345 rows", "title")],
    ]  # fmt: skip


def test_lines_are_short_printable_and_have_a_style():
    lines = ["a", "b", ("c", "plus"), ("d", "title"), "e"]
    styles = ["title", "plain", "plus", "title", "plain"]
    assert tidy(lines, 0) == list(zip("abcde", styles, strict=True))
    assert tidy((), 0) == []
    long = "x" * 28
    ((whole, _), (cut, _), (odd, _)) = tidy([long, long + "x", "a\n\x07b \ud800 "], 0)
    assert whole == long
    assert cut == "x" * 27 + "…"
    assert odd == "a  b ?"
    with pytest.raises(TypeError, match=r"got the text 'one' for node 7: put it in a list"):
        tidy("one", 7)
    told = r"one of title, plain, plus, minus, got 'bold' for node 7"
    with pytest.raises(ValueError, match=told):
        tidy([("one", "bold")], 7)


def names(makeup):
    return [name for name, _ in makeup.entries]


@given(data=st.data())
def test_classes_are_counted(data, trees):
    taxonomy = data.draw(trees)
    labels = st.lists(
        st.integers(0, 11), min_size=len(taxonomy.tree.order), max_size=len(taxonomy.tree.order)
    )
    classes = np.array([f"class {n}" for n in data.draw(labels)])
    makeup = count_classes(taxonomy, classes)
    assert set(makeup.names) == set(classes)
    sizes = Counter(classes.tolist())
    assert sorted(sizes[name] for name in names(makeup)[:8]) == sorted(sizes.values())[-8:]
    assert ("other" in names(makeup)) == (len(sizes) > 8)
    assert [colour for _, colour in makeup.entries] == [*CLASSES, OTHER][: len(makeup.entries)]
    for node in range(taxonomy.tree.n_nodes):
        rows = taxonomy.tree.rows(node)
        found = Counter(classes[rows].tolist())
        assert makeup.counts[node].sum() == len(rows)
        for name, count in zip(names(makeup)[:8], makeup.counts[node], strict=False):
            assert found[name] == count
        largest, _, share = makeup.describe(taxonomy, node)[0][0].rpartition(" · ")
        assert found[largest] == max(found.values())
        assert share == f"{max(found.values()) / len(rows):.0%}"


def test_the_order_and_names_of_classes(known):
    makeup = count_classes(known, ["b", "c", "c", "a"] * 3)
    assert names(makeup) == ["c", "a", "b"]
    assert makeup.describe(known, 0) == [("c · 50%", "plain"), ("a · 25%", "plain")]
    assert names(count_classes(known, [10, 9, 9, 9] * 3)) == ["9", "10"]
    assert names(count_classes(known, [10.5, -1.0, 3.0, 3.0] * 3)) == ["-1.0", "3.0", "10.5"]
    small = count_classes(known, ["a"] * 11 + ["b"])
    assert small.describe(known, 0) == [("a · 92%", "plain")]
    many = count_classes(known, [f"c{n:02}" for n in range(12)])
    assert many.entries[8:] == (("other", OTHER),)
    assert many.counts[0].tolist() == [1] * 8 + [4]
    assert count_classes(known, None).describe(known, 0) == []
    gaps = count_classes(known, ["a", None, "b", "a", "", "a"] * 2)
    assert gaps.entries == (("a", CLASSES[0]), ("b", CLASSES[1]), ("(no label)", GRID))
    assert (gaps.names, gaps.counts[0].tolist()) == (("a", "b"), [6, 2, 4])
    assert gaps.describe(known, 0) == [("a · 75%", "plain"), ("b · 25%", "plain")]
    many = count_classes(known, [f"c{n:02}" for n in range(11)] + [None])
    assert many.entries[8:] == (("other", OTHER), ("(no label)", GRID))
    assert many.counts[0].tolist() == [1] * 8 + [3, 1]
    given_names = np.empty(12, dtype=object)
    given_names[:] = [
        7,
        1,
        "\x00",
        "x\ny",
        ("t",),
        2.5,
        True,
        b"b",
        "z" * 99,
        "\ud800",
        "a",
        "b",
    ]
    shown = set(count_classes(known, given_names).names)
    assert {"7", "1", "(empty)", "x y", "2.5"} < shown
    assert max(map(len, shown)) == 28


def test_wrong_classes_are_refused(known):
    for classes in ([1, 2], 3, np.zeros((12, 2)), []):
        with pytest.raises(ValueError, match="one class for each of the 12 rows"):
            count_classes(known, classes)
    with pytest.raises(ValueError, match="none of the 12 rows has a label"):
        count_classes(known, ["", None] * 6)


@given(data=st.data())
def test_branches_are_the_clusters_after_the_first_splits(data, trees):
    taxonomy = data.draw(trees)
    branches = find_branches(taxonomy)
    clusters = {0}
    for step in range(1, taxonomy.tree.n_splits + 1):
        born = np.flatnonzero(taxonomy.tree.birth == step).tolist()
        if step > 1 and len(clusters) + len(born) - 1 > N_BRANCHES:
            break
        clusters = clusters - {taxonomy.tree.parent(born[0])} | set(born)
    heads = sorted(clusters, key=lambda node: taxonomy.tree.start[node])
    for node in range(taxonomy.tree.n_nodes):
        above = [heads.index(head) for head in taxonomy.tree.path(node) if head in clusters]
        assert branches[node] == (above[0] if above and len(heads) > 1 else -1)


def test_many_branches(chain):
    branches = find_branches(from_labels(np.arange(40)))
    assert branches.tolist() == [-1, *range(40)]
    branches = find_branches(chain)
    assert sorted(set(branches.tolist())) == list(range(-1, N_BRANCHES))
