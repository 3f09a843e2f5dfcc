"""Colours are what they are mixed from, and branches are those of a cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor.hierarchy import Hierarchy
from taxarbor.plot._palette import (
    BRANCHES,
    CLASSES,
    FACE,
    INK,
    N_BRANCHES,
    OTHER,
    find_branches,
    ink_on,
    mix,
    rgb,
    shade,
)


def contrast(one, other):
    """The ratio of the WCAG, at least 1."""

    def luminance(colour):
        parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in colour]
        return np.dot(parts, [0.2126, 0.7152, 0.0722])

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_mixing():
    assert rgb("#ff0080") == (1.0, 0.0, 128 / 255)
    assert mix("#ff0080", INK, 1.0) == rgb("#ff0080")
    assert mix("#ff0080", INK, 0.0) == rgb(INK)


@pytest.mark.parametrize("colour", [*CLASSES, *BRANCHES, OTHER])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 1.0])
def test_text_can_be_read(colour, share):
    face = mix(colour, FACE, share)
    ink = ink_on(face)
    assert contrast(face, rgb(ink)) > 3.5
    assert contrast(face, rgb(ink)) >= 0.9 * max(contrast(face, rgb(c)) for c in (INK, FACE))


@given(data=st.data())
def test_branches_are_those_of_a_cut(data, trees):
    tree = data.draw(trees)
    branches = find_branches(tree)
    if tree.n_leaves == 1:
        assert branches.tolist() == [-1]
        return
    n_first = len(tree.children(0))
    cut = tree.cut(min(max(N_BRANCHES, n_first), tree.n_leaves))
    assert cut.max() > 0
    for node in range(tree.n_nodes):
        found = set(cut[tree.rows(node)].tolist())
        assert branches[node] == (found.pop() if len(found) == 1 else -1)


@given(data=st.data())
def test_shades(data, trees):
    tree = data.draw(trees)
    faces = shade(tree, find_branches(tree))
    assert faces.shape == (tree.n_nodes, 3)
    assert (faces >= 0).all()
    assert (faces <= 1).all()


def test_many_branches():
    branches = find_branches(Hierarchy.from_labels(np.arange(40)))
    assert branches.tolist() == [-1, *range(40)]


def test_a_chain_has_branches(chain):
    branches = find_branches(chain)
    assert sorted(set(branches.tolist())) == list(range(-1, N_BRANCHES))
    assert shade(chain, branches).min() >= 0
