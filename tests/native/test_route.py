"""Where rules send rows, distances, planes, hashes and labels, against NumPy and Python."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from taxarbor import native
from taxarbor.tree.route_rows import RoutingTable


def make_table(rules, n_leaves):
    """Return a table of rules, each (features, centers, weights, offsets, targets)."""
    features, centers, weights, offsets, targets = zip(*rules, strict=True)
    return RoutingTable(
        np.cumsum([0, *map(len, features)]),
        np.concatenate(features).astype(np.int32),
        np.concatenate(centers).astype(float),
        np.concatenate([np.ravel(own) for own in weights]).astype(float),
        np.cumsum([0, *map(len, targets)]),
        np.concatenate(offsets).astype(float),
        np.concatenate(targets).astype(np.int32),
        n_leaves,
    )


NO_RULES = RoutingTable(
    *(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0), np.zeros(0)),
    *(np.zeros(1, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int32), 1),
)


def draw_rules(rng, n_rules, n_features, max_targets=6):
    """Return rules; each stands among the targets of one before it, of any depth below it."""
    n_targets = rng.integers(2, max_targets + 1, n_rules)
    targets = [np.full(n, -1) for n in n_targets]
    for later in range(1, n_rules):
        free = [(r, k) for r in range(later) for k in np.flatnonzero(targets[r] < 0)]
        r, k = free[rng.integers(len(free))]
        targets[r][k] = later
    n_leaves = 0
    for own in targets:
        for k in np.flatnonzero(own < 0):
            own[k] = ~n_leaves
            n_leaves += 1
    rules = []
    for own in targets:
        used = rng.choice(n_features, rng.integers(1, min(n_features, 9) + 1), replace=False)
        weights = rng.normal(size=(len(used), len(own)))
        centers, offsets = rng.normal(size=len(used)), rng.normal(size=len(own))
        rules.append((used, centers, weights, offsets, own))
    return rules, n_leaves


def route_by_hand(rules, X):
    labels = []
    for x in X.astype(float):
        at = 0
        while at >= 0:
            used, centers, weights, offsets, targets = rules[at]
            at = int(targets[np.argmax((x[used] - centers) @ weights + offsets)])
        labels.append(~at)
    return np.array(labels)


def make_data(X, kind="dense", n_threads=1, rng=None):
    zero = np.zeros(X.shape[1])
    if kind == "dense":
        return native.Data.dense(np.ascontiguousarray(X), zero, n_threads)
    S = sparse.csr_array(X)
    values, columns = S.data.copy(), S.indices.astype(np.int32)
    if rng is not None:  # columns in any order
        for first, last in zip(S.indptr[:-1], S.indptr[1:], strict=True):
            order = first + rng.permutation(last - first)
            values[first:last], columns[first:last] = values[order], columns[order]
    starts = S.indptr.astype(np.int64)
    return native.Data.csr(values, columns, starts, X.shape[1], zero, n_threads)


def draw_rows(rng, n, p, dtype="f8"):
    return (rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.6)).astype(dtype)


@given(
    n_rows=st.integers(1, 70),
    n_features=st.integers(1, 40),
    n_rules=st.integers(1, 8),
    dtype=st.sampled_from(["f4", "f8"]),
    kind=st.sampled_from(["dense", "csr"]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=80, deadline=None)
def test_rows_go_where_scores_are_highest(n_rows, n_features, n_rules, dtype, kind, seed):
    rng = np.random.default_rng(seed)
    rules, n_leaves = draw_rules(rng, n_rules, n_features)
    X = draw_rows(rng, n_rows, n_features, dtype)
    data, table = make_data(X, kind, rng=rng), make_table(rules, n_leaves)
    labels, refused = native.route(data, table)
    assert labels.dtype == np.int32
    assert refused == -1
    expected = route_by_hand(rules, X)
    np.testing.assert_array_equal(labels, expected)
    some = rng.integers(0, n_rows, 20)
    np.testing.assert_array_equal(native.route(data.take(some), table)[0], expected[some])


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_threads_and_other_rows_change_nothing(kind, dtype):
    """Where values are missing, too; the first row that cannot be routed is refused."""
    rng = np.random.default_rng(0)
    rules, n_leaves = draw_rules(rng, 20, 67)
    X, table = draw_rows(rng, 9000, 67, dtype), make_table(rules, n_leaves)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:40] = 0.0
    fill = rng.normal(size=67).astype(dtype).astype(float)
    filled = np.where(np.isnan(X), fill, X).astype(dtype)
    labels, _ = native.route(make_data(filled, kind), table)
    np.testing.assert_array_equal(labels[:300], route_by_hand(rules, filled[:300]))
    assert len(set(labels.tolist())) > 9
    order = rng.permutation(9000)
    for n_threads in (1, 4):
        data = make_data(X, kind, n_threads)
        for some in (np.arange(9000), order, *np.array_split(order, 7)):
            found, refused = native.route(data.take(some), table, fill)
            assert refused == -1
            np.testing.assert_array_equal(found, labels[some])
            first = np.isnan(X[some]).any(axis=1).argmax()
            assert native.route(data.take(some), table)[1] == first


def test_dense_and_sparse_rows_agree_to_the_bit():
    """Also where scores are equal but for rounding."""
    rng = np.random.default_rng(0)
    rules, n_leaves = draw_rules(rng, 12, 30)
    X = rng.integers(0, 2, (5000, 30)).astype("f4")
    table = make_table(rules, n_leaves)
    table = replace(table, weights=np.round(table.weights, 1), offsets=0 * table.offsets)
    dense, _ = native.route(make_data(X), table)
    np.testing.assert_array_equal(native.route(make_data(X, "csr", rng=rng), table)[0], dense)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_infinities_are_refused_wherever_they_are(kind):
    """In columns that no rule uses as well."""
    rule = [3], [0.0], [[0.5, -0.5]], [0.0, 0.0], [~0, ~1]
    for column in range(20):
        X = draw_rows(np.random.default_rng(column), 6000, 20)
        X[4321, column], X[5000, 3] = (-1) ** column * np.inf, np.inf
        for fill in (None, np.zeros(20)):
            assert native.route(make_data(X, kind, 2), make_table([rule], 2), fill)[1] == 4321


ENTRIES = {
    "targets": [(0, 0), (-1, 1), (1, 99), (1, -99)],
    "starts": [(0, 1), (1, -1), (1, 99), (-1, 99)],
    "firsts": [(0, -1), (1, -(2**63)), (1, 1), (1, 99), (-1, 0)],
    "features": [(0, 4), (0, -1)],
    "centers": [(0, np.nan)],
    "weights": [(0, np.inf)],
    "offsets": [(0, np.nan)],
}
"""Of each array of a table, positions with values that they cannot have."""


def test_damaged_tables_are_refused():
    weights = np.arange(6.0).reshape(2, 3)
    first = [0, 3], [0.0, 1.0], weights, np.zeros(3), [1, ~0, ~1]
    second = [1, 2], [0.0, 1.0], weights[:, :2], np.zeros(2), [~2, ~3]
    table, data = make_table([first, second], 4), make_data(np.ones((5, 4)))
    native.route(data, table)
    damaged = [replace(NO_RULES, n_leaves=2), *(replace(table, n_leaves=n) for n in (0, 1))]
    for name, entries in ENTRIES.items():
        array = getattr(table, name)
        damaged += [replace(table, **{name: np.resize(array, size)}) for size in (0, 1, 100)]
        damaged.append(replace(table, **{name: array.astype("f2")}))
        for position, value in entries:
            changed = array.copy()
            changed[position] = value
            damaged.append(replace(table, **{name: changed}))
    for other in damaged:
        with pytest.raises(ValueError, match=r"must|without rules"):
            native.route(data, other)
    for fill in (np.zeros(3), np.full(4, np.nan), np.zeros(4, dtype="f4")):
        with pytest.raises(ValueError, match=r"^fill "):
            native.route(data, table, fill)


# ---- distances and labels ----


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("p", [1, 7, 8, 37])
def test_distances(kind, dtype, p):
    rng = np.random.default_rng(p)
    X = draw_rows(rng, 4500, p, dtype)
    X[rng.random(X.shape) < 0.02] = np.nan
    labels = rng.integers(-1, 5, 4500).astype("i4")
    centers, factors, fill = rng.normal(size=(5, p)), rng.uniform(0, 3, p), rng.normal(size=p)
    away = (np.where(np.isnan(X), fill, X) - centers[labels]) * factors
    expected = np.where(labels < 0, np.inf, np.linalg.norm(away, axis=1))
    found = native.distances(make_data(X, kind, rng=rng), labels, centers, factors, fill)
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    again = native.distances(make_data(X, kind, 4), labels, centers, factors, fill)
    np.testing.assert_allclose(again, found, rtol=1e-12)
    some = rng.integers(0, 4500, 100)
    taken = make_data(X, kind).take(some)
    part = native.distances(taken, labels[some], centers, factors, fill)
    np.testing.assert_allclose(part, found[some], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_labels_are_sorted_as_numpy_does(dtype):
    rng = np.random.default_rng(0)
    for n, n_labels in ((0, 1), (1, 1), (50, 3), (3000, 40), (10, 500)):
        labels = rng.integers(-1, n_labels, n).astype(dtype)
        expected = np.argsort(labels, kind="stable")[np.count_nonzero(labels < 0) :]
        found = native.sort_by_label(labels, n_labels)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_label_sums_take_counts_and_leave_out_rows(dtype):
    X = np.arange(12, dtype="f4").reshape(4, 3)
    labels, counts = np.array([5, -1, 0, 5], dtype=dtype), np.array([2, 9, 0, 3], dtype="i4")
    assert native.label_sums(X, labels, 7)[5].tolist() == (X[0] + X[3]).tolist()
    weighted = native.label_sums(X, labels, 7, counts)
    assert weighted.shape == (7, 3)
    assert weighted[5].tolist() == (2 * X[0] + 3 * X[3]).tolist()
    assert (weighted[:5] == 0).all()


# ---- hashes and planes ----

MASK = 2**64 - 1


def python_hash(key, number):
    z = key ^ (number * 0x9E3779B97F4A7C15 & MASK)
    for _ in range(2):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        z ^= z >> 31
    return z


def test_hashes_are_those_of_python():
    numbers = np.array([0, 1, 2, 12345, 2**40, 2**63 - 1])
    for key in (0, 1, 2**63 + 11, MASK):
        expected = [python_hash(key, int(c)) for c in numbers]
        assert native.hashes(key, numbers).tolist() == expected


@pytest.mark.parametrize("q", [1, 7, 8, 21, 64])
def test_plane_scores(q):
    rng = np.random.default_rng(q)
    Z, plane, offset = rng.normal(size=(500, q)).astype("f4"), rng.normal(size=q), 0.7
    scores = native.plane_scores(Z, plane, offset)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, Z @ plane + offset, rtol=1e-6, atol=1e-6)


def test_wrong_arguments_are_refused():
    Z, plane, labels = np.zeros((6, 3), "f4"), np.zeros(3), np.zeros(6, "i4")
    centers, ones, data = np.zeros((2, 3)), np.ones(3), make_data(np.ones((6, 3)))
    native.distances(data, labels, centers, ones, plane)
    for name, call in (
        ("labels", lambda: native.distances(data, labels + 2, centers, ones, plane)),
        ("labels", lambda: native.distances(data, labels[1:], centers, ones, plane)),
        ("centers", lambda: native.distances(data, labels, np.zeros((2, 4)), ones, plane)),
        ("centers", lambda: native.distances(data, labels, centers + np.nan, ones, plane)),
        ("factors", lambda: native.distances(data, labels, centers, -ones, plane)),
        ("fill", lambda: native.distances(data, labels, centers, ones, plane + np.inf)),
        ("labels", lambda: native.sort_by_label(np.array([0, 3]), 3)),
        ("labels", lambda: native.sort_by_label(np.zeros(2), 1)),
        ("labels", lambda: native.sort_by_label(np.zeros((2, 2), "i4"), 1)),
        ("n_labels", lambda: native.sort_by_label(np.array([-(2**40), 0]), 0)),
        ("labels", lambda: native.label_sums(Z, labels + 5, 5)),
        ("n_labels", lambda: native.label_sums(Z, labels, 0)),
        ("plane", lambda: native.plane_scores(Z, plane[:-1], 0.0)),
        ("Z", lambda: native.plane_scores(Z.astype("f8"), plane, 0.0)),
        ("numbers", lambda: native.hashes(1, np.zeros(2))),
    ):
        with pytest.raises(ValueError, match=f"{name} "):
            call()
