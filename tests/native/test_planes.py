"""Samples by hash and sides of planes, against Python."""

from itertools import pairwise

import numpy as np
import pytest

from taxarbor import native
from taxarbor.rows._order import float_of, key_of

MASK = 2**64 - 1


def python_hash(key, number):
    z = key ^ (number * 0x9E3779B97F4A7C15 & MASK)
    for _ in range(2):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        z ^= z >> 31
    return z


def python_draw(keys, limits, nodes, counts, n, first):
    found, number = [], first
    for i in range(n):
        node = 0 if nodes is None else int(nodes[i])
        for c in range(number, number + (1 if counts is None else int(counts[i]))):
            if node >= 0 and (h := python_hash(int(keys[node]), c)) <= int(limits[node]):
                found.append((i, h))
            number = c + 1
    return found


def drawn(*arguments):
    positions, hashes = native.draw(*arguments)
    assert positions.dtype == np.int64
    assert hashes.dtype == np.uint64
    return list(zip(positions.tolist(), hashes.tolist(), strict=True))


def test_hashes_are_those_of_python():
    numbers = np.array([0, 1, 2, 12345, 2**40, 2**63 - 1])
    for key in (0, 1, 2**63 + 11, MASK):
        expected = [python_hash(key, int(c)) for c in numbers]
        assert native.hashes(key, numbers).tolist() == expected


@pytest.mark.parametrize("with_nodes", [False, True])
@pytest.mark.parametrize("with_counts", [False, True])
def test_draw_takes_the_copies_of_low_hash(with_nodes, with_counts):
    rng = np.random.default_rng(0)
    n, first = 400, 10**12
    keys = rng.integers(0, 2**64, 3, dtype="u8")
    limits = np.array([2**61, 2**64 - 1, 0], dtype="u8")
    nodes = rng.integers(-1, 3, n).astype("i4") if with_nodes else None
    counts = rng.integers(0, 4, n).astype("i4") if with_counts else None
    found = drawn(keys, limits, nodes, counts, n, first)
    assert found == python_draw(keys, limits, nodes, counts, n, first)
    assert 0 < len(found) < 3 * n


def test_draw_does_not_depend_on_blocks():
    rng = np.random.default_rng(1)
    n, keys, limits = 300, np.array([7, 9], "u8"), np.array([2**62, 2**63], "u8")
    nodes = rng.integers(-1, 2, n).astype("i4")
    counts = rng.integers(0, 5, n).astype("i4")
    before = np.concatenate([[0], np.cumsum(counts)])
    found = drawn(keys, limits, nodes, counts, n, 50)
    for cuts in ([1], [17, 120, 121]):
        parts = []
        for a, b in pairwise([0, *cuts, n]):
            first = 50 + int(before[a])
            part = drawn(keys, limits, nodes[a:b], counts[a:b], b - a, first)
            parts += [(i + a, h) for i, h in part]
        assert parts == found


def test_copies_are_drawn_as_repeated_rows_are():
    counts = np.array([2, 0, 1, 3], dtype="i4")
    keys, limits = np.array([3], "u8"), np.array([2**64 - 1], "u8")
    found = drawn(keys, limits, None, counts, 4, 0)
    rows = np.repeat(np.arange(4), counts)
    repeated = drawn(keys, limits, None, None, len(rows), 0)
    assert found == [(int(rows[i]), h) for i, h in repeated]


# ---- planes ----------------------------------------------------------------------------------


def draw_tree(rng, n=500, q=21):
    """Return coordinates, and a tree of four planes and five leaves."""
    Z = rng.normal(size=(n, q)).astype("f4")
    planes, offsets = rng.normal(size=(4, q)), rng.normal(size=4)
    children = np.array([[2, 1], [~0, ~1], [3, ~2], [~4, ~3]], dtype="i4")
    return Z, planes, offsets, rng.normal(size=4).astype("f4"), children


def some_scores(Z, plane, offset):
    """Return the scores in the order of the kernel: eight totals, of every eighth feature."""
    products = plane * Z.astype("f8")
    n, q = products.shape
    t = np.zeros((8, n))
    for j in range(q):
        t[j % 8] += products[:, j]
    sums = ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]))
    return (offset + sums).astype("f4")


@pytest.mark.parametrize("q", [1, 7, 8, 21, 64])
def test_leaves_are_those_of_the_scores(q):
    Z, planes, offsets, thresholds, children = draw_tree(np.random.default_rng(q), q=q)
    scores = np.stack([some_scores(Z, *one) for one in zip(planes, offsets, strict=True)])
    for at in range(4):
        found = native.plane_scores(Z, planes[at], offsets[at])
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, scores[at])
    thresholds[2] = scores[2, 0]  # rows at a threshold go to the first child
    expected = []
    for own in scores.T:
        at = 0
        while at >= 0:
            at = int(children[at, 0 if own[at] >= thresholds[at] else 1])
        expected.append(~at)
    leaves = native.descend(Z, planes, offsets, thresholds, children)
    assert leaves.dtype == np.int32
    assert leaves.tolist() == expected
    assert len(set(expected)) > (1 if q == 1 else 3)


def test_scores_do_not_depend_on_blocks_or_alignment():
    """One row at a time and anywhere in memory."""
    Z, planes, offsets, *_ = draw_tree(np.random.default_rng(9), n=64, q=13)
    scores = some_scores(Z, planes[0], offsets[0])
    room = np.zeros(64 * 13 + 16, dtype="f4")
    children = np.array([[~1, ~0]], dtype="i4")
    for shift in range(16):
        moved = room[shift : shift + Z.size].reshape(Z.shape)
        moved[:] = Z
        for i in range(len(Z)):
            row, at = moved[i : i + 1], scores[i : i + 1]
            assert native.plane_scores(row, planes[0], offsets[0]) == at
            for threshold, leaf in ((at, 1), (np.nextafter(at, np.float32(np.inf)), 0)):
                rest = planes[:1], offsets[:1], threshold, children
                assert native.descend(row, *rest).tolist() == [leaf]


def test_keys_are_in_the_order_of_the_numbers():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**32, 1000, dtype="u8").astype("u4").view("f4")
    special = np.array([0.0, 1e-45, -1e-45, np.inf, -np.inf], dtype="f4")
    values = np.concatenate([values[~np.isnan(values)], special])
    keys = key_of(values)
    assert keys.dtype == np.uint32
    np.testing.assert_array_equal(values[np.argsort(keys)], np.sort(values))
    np.testing.assert_array_equal(float_of(keys), values)
    assert key_of(np.array([-0.0], dtype="f4")) == key_of(np.array([0.0], dtype="f4"))


Z, PLANES, OFFSETS, THRESHOLDS, CHILDREN = draw_tree(np.random.default_rng(0), n=6, q=3)
NODES, COUNTS = np.zeros(6, dtype="i4"), np.ones(6, dtype="i4")
KEYS = np.array([1, 2], dtype="u8")


def with_child(child):
    """Return children, one of whom is another."""
    found = CHILDREN.copy()
    found[2, 1] = child
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Z": Z.astype("f8")}, "Z must be an array of float32"),
        ({"planes": PLANES[:, :-1].copy()}, r"planes .*shape \(any, 3\)"),
        ({"planes": PLANES * np.nan}, "planes must be finite"),
        ({"planes": PLANES[:0]}, "the number of planes must be at least 1"),
        ({"offsets": OFFSETS[:-1]}, r"offsets .*shape \(4,\)"),
        ({"thresholds": np.zeros(4)}, "thresholds must be an array of float32"),
        ({"children": CHILDREN[:3]}, r"children .*shape \(4, 2\)"),
        ({"children": with_child(4)}, "children must lie between -5 and 3"),
        ({"children": with_child(-6)}, "children must lie between -5 and 3"),
        ({"children": with_child(2)}, "children must come after their parents; got 2 below 2"),
        ({"children": with_child(0)}, "children must come after their parents; got 0 below 2"),
    ],
)
def test_wrong_planes_are_refused(change, message):
    names = ["Z", "planes", "offsets", "thresholds", "children"]
    sound = dict(zip(names, (Z, PLANES, OFFSETS, THRESHOLDS, CHILDREN), strict=True))
    with pytest.raises(ValueError, match=message):
        native.descend(**(sound | change))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: native.plane_scores(Z, PLANES[0, :-1], 0.0),
            r"plane .*shape \(3,\)",
        ),
        (lambda: native.draw(KEYS[:0], KEYS[:0], None, None, 3, 0), "number of keys"),
        (lambda: native.draw(KEYS, KEYS[:1], None, None, 3, 0), r"limits .*shape \(2,\)"),
        (lambda: native.draw(KEYS, KEYS, NODES, None, 3, 0), r"nodes .*shape \(3,\)"),
        (lambda: native.draw(KEYS, KEYS, np.full(3, 2, "i4"), None, 3, 0), "nodes must lie"),
        (lambda: native.draw(KEYS, KEYS, None, COUNTS[:2], 3, 0), r"counts .*shape \(3,\)"),
        (lambda: native.draw(KEYS, KEYS, None, None, -1, 0), "n must be at least 0"),
        (lambda: native.draw(KEYS, KEYS, None, None, 1, -1), "first must be at least 0"),
        (lambda: native.hashes(1, np.zeros(2)), "numbers must be an array of int64"),
    ],
)
def test_wrong_draws_and_scores_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- sums of labels --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_label_sums_take_counts_and_leave_out_rows(dtype):
    X = np.arange(12, dtype="f4").reshape(4, 3)
    labels = np.array([5, -1, 0, 5], dtype=dtype)
    sums = native.label_sums(X, labels, 7)
    assert sums.shape == (7, 3)
    assert sums[5].tolist() == (X[0] + X[3]).tolist()
    counts = np.array([2, 9, 0, 3], dtype="i4")
    weighted = native.label_sums(X, labels, 7, counts)
    assert weighted[5].tolist() == (2 * X[0] + 3 * X[3]).tolist()
    assert (weighted[:5] == 0).all()
    with pytest.raises(ValueError, match="labels must lie"):
        native.label_sums(X, labels, 5)
    with pytest.raises(ValueError, match="n_labels must be at least 1"):
        native.label_sums(X, labels, 0)
