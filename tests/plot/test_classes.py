"""The make-up of nodes is what counting finds."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor.plot._classes import count_classes
from taxarbor.plot._palette import OTHER


@given(data=st.data())
def test_counts(data, trees):
    tree = data.draw(trees)
    labels = st.lists(st.integers(0, 11), min_size=len(tree.order), max_size=len(tree.order))
    classes = np.array([f"class {n}" for n in data.draw(labels)])
    makeup = count_classes(tree, classes)
    assert set(makeup.names) == set(classes)
    sizes = Counter(classes.tolist())
    named = sorted(sizes[name] for name in makeup.groups if name in sizes)
    assert named == sorted(sorted(sizes.values())[-8:])
    assert ("other" in makeup.groups) == (len(sizes) > 8)
    assert len(makeup.colours) == len(makeup.groups)
    assert makeup.counts.sum(axis=1).tolist() == tree.n_rows.tolist()
    groups, shares = makeup.majorities(tree, np.arange(tree.n_nodes))
    for node in range(tree.n_nodes):
        found = Counter(classes[tree.rows(node)].tolist())
        for group, count in zip(makeup.groups[:8], makeup.counts[node], strict=False):
            assert found[group] == count
        assert shares[node] == pytest.approx(max(found.values()) / tree.n_rows[node])
        if groups[node] < 8:
            assert found[makeup.groups[groups[node]]] == max(found.values())


def test_the_largest_come_first(known):
    makeup = count_classes(known, ["b", "c", "c", "a"] * 3)
    assert makeup.groups == ("c", "a", "b")
    assert makeup.describe(known, 0) == [("c · 50%", "plain"), ("a · 25%", "plain")]


def test_numbers_ascend(known):
    assert count_classes(known, [10, 9, 9, 9] * 3).groups == ("9", "10")
    assert count_classes(known, [10.5, -1.0, 3.0, 3.0] * 3).groups == ("-1.0", "3.0", "10.5")


def test_small_classes_are_not_named(known):
    makeup = count_classes(known, ["a"] * 11 + ["b"])
    assert makeup.describe(known, 0) == [("a · 92%", "plain")]


def test_many_classes(known):
    makeup = count_classes(known, [f"c{n:02}" for n in range(12)])
    assert makeup.groups[8:] == ("other",)
    assert makeup.colours[8] == OTHER
    assert makeup.counts[0].tolist() == [1] * 8 + [4]


def test_what_is_no_text_becomes_one(known):
    mixed = [
        7,
        1,
        "",
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
    given_names = np.empty(12, dtype=object)
    given_names[:] = mixed
    names = set(count_classes(known, given_names).names)
    assert {"7", "1", "(empty)", "x y", "2.5"} < names
    assert max(map(len, names)) == 28


@pytest.mark.parametrize("classes", [[1, 2], 3, np.zeros((12, 2)), []])
def test_what_are_no_classes_is_refused(known, classes):
    with pytest.raises(ValueError, match="one class for each of the 12 rows"):
        count_classes(known, classes)


def test_a_row_without_a_class_is_refused(known):
    with pytest.raises(
        ValueError, match="there is no class for 1 rows, the first of them row 3"
    ):
        count_classes(known, ["a", "b", "a", None] + ["b"] * 8)
