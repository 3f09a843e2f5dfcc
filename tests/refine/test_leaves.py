"""Leaves that compete for rows: the objective falls, no leaf is lost, and sizes hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxarbor.grow import Run, StoppingRule, grow
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.refine import Coordinates, _leaves, compete
from taxarbor.refine._leaves import fit_leaves
from taxarbor.rows import as_rows
from taxarbor.split import GapSplitter


def divide(n_rows, n_leaves, rng):
    """Return random labels of which none is missing."""
    labels = rng.integers(0, n_leaves, n_rows)
    labels[rng.permutation(n_rows)[:n_leaves]] = np.arange(n_leaves)
    return labels


def clouds(n_rows, n_features, rng):
    X = rng.standard_normal((n_rows, n_features)) * rng.uniform(0.1, 3.0, n_features)
    return X + rng.integers(0, 3, (n_rows, 1)) * rng.normal(0.0, 3.0, n_features)


def fit_for(n_steps, coordinates, labels, n_leaves, shrinkage=1.0):
    """Fit the leaves with other constants than the product's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_leaves, "STEPS", n_steps)
        patch.setattr(_leaves, "SHRINKAGE", shrinkage)
        return fit_leaves(coordinates, labels, n_leaves)


def sent_by(coordinates, model):
    return (coordinates.values[:, :-1] @ model.weights.T + model.offsets).argmax(axis=1)


# ---- the model ----


@given(
    n_rows=st.integers(6, 120),
    n_features=st.integers(1, 12),
    n_leaves=st.integers(2, 6),
    shrinkage=st.sampled_from([0.0, 1e-3, 1.0, 10.0]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60)
def test_the_objective_never_rises(n_rows, n_features, n_leaves, shrinkage, seed):
    rng = np.random.default_rng(seed)
    coordinates = Coordinates.of(as_rows(clouds(n_rows, n_features, rng)), seed)
    labels = divide(n_rows, n_leaves, rng)
    trace = np.array(fit_for(12, coordinates, labels, n_leaves, shrinkage).trace)
    assert np.isfinite(trace).all()
    assert (np.diff(trace) <= 1e-7 * (1.0 + np.abs(trace[:-1]))).all()


def test_the_objective_falls_on_data(coordinates_of, data):
    for X in data.values():
        labels = divide(len(X), 6, np.random.default_rng(2))
        for dtype, slack in (("float64", 1e-8), ("float32", 1e-4)):
            trace = np.array(fit_for(10, coordinates_of(X.astype(dtype)), labels, 6).trace)
            assert (np.diff(trace) <= slack * np.abs(trace).max()).all()
            assert trace[-1] < trace[0]


def test_the_first_round_by_hand(coordinates_of, data):
    coordinates = coordinates_of(data["cloud"])
    labels = divide(300, 4, np.random.default_rng(0))
    model = fit_for(1, coordinates, labels, 4, shrinkage=0.5)
    Z = coordinates.values[:, :-1]
    means = np.stack([Z[labels == k].mean(axis=0) for k in range(4)])
    apart = Z - means[labels]
    within = apart.T @ apart / len(Z)
    S = within + 0.5 * np.trace(within) / Z.shape[1] * np.eye(Z.shape[1])
    np.testing.assert_allclose(model.trace, [np.linalg.slogdet(S)[1]], rtol=1e-10)
    apart = Z[:, None] - means
    distances = np.einsum("nkp,pq,nkq->nk", apart, np.linalg.inv(S), apart)
    np.testing.assert_array_equal(sent_by(coordinates, model), distances.argmin(axis=1))


def test_rows_on_the_wrong_side_come_home(coordinates_of):
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(4), 50)
    X = rng.standard_normal((200, 3)) + 12.0 * np.eye(4, 3)[truth]
    labels = truth.copy()
    labels[::9] = rng.integers(0, 4, len(labels[::9]))
    coordinates = coordinates_of(X)
    np.testing.assert_array_equal(
        sent_by(coordinates, fit_leaves(coordinates, labels, 4)), truth
    )
    # Settled labels end it.
    assert len(fit_for(9, coordinates, truth, 4).trace) == 1


def test_a_leaf_that_would_be_lost_ends_it(coordinates_of):
    """Of two leaves with the same mean the first would get all rows of both."""
    X = np.repeat([[0.0, 0.0], [4.0, 1.0]], 10, axis=0)
    labels = np.array([0] * 5 + [1] * 5 + [2] * 10)
    model = fit_for(5, coordinates_of(X), labels, 3)
    assert len(model.trace) == 1
    assert model.weights.shape == (3, 2)


def test_leaves_without_scatter(coordinates_of):
    """What is left within leaves is rounding, and grows with the number of rows."""
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        for n_features, copies in ((4, 6), (10, 5000), (70, 500)):
            X = np.repeat(rng.standard_normal((5, n_features)), copies, axis=0).astype(dtype)
            labels = np.repeat(np.arange(5), copies)
            coordinates = coordinates_of(X)
            model = fit_leaves(coordinates, labels, 5)
            assert np.isfinite(model.trace).all()
            np.testing.assert_array_equal(sent_by(coordinates, model), labels)
        X = 1e-3 * rng.standard_normal((8000, 80))
        X[0] = 1e6
        labels = np.arange(8000) % 3
        labels[0] = 0
        model = fit_leaves(coordinates_of(X.astype(dtype)), labels, 3)
        assert np.isfinite(model.weights).all()


# ---- the competition ----


def tree_of(labels):
    """Return a tree whose leaves have these rows: the first one split off, and so on."""
    builder = HierarchyBuilder(len(labels))
    node = 0
    for label in range(labels.max()):
        rest = (labels[builder.rows(node)] > label).astype(np.intp)
        node = builder.add_split(node, rest)[1]
    return builder


def wanted_by(placement, X):
    rule = placement.rule
    return ((X - rule.center) @ rule.weights.T + rule.offsets).argmax(axis=1)


@given(
    n_rows=st.integers(8, 90),
    n_leaves=st.integers(2, 6),
    least=st.integers(1, 12),
    room=st.integers(0, 12),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=150)
def test_sizes_hold_when_rows_have_moved(n_rows, n_leaves, least, room, seed):
    """A row is where it wants to be, or where it was; and where sizes allow, the former."""
    rng = np.random.default_rng(seed)
    X = clouds(n_rows, 3, rng)
    labels = divide(n_rows, n_leaves, rng)
    tree, rows = tree_of(labels), as_rows(X)
    grown = tree.labels.copy()
    np.testing.assert_array_equal(grown, labels)
    sizes = np.bincount(grown)
    most = least + room
    placement = compete(
        tree, Coordinates.of(rows, 0), rows, min_leaf_size=least, max_leaf_size=most
    )
    assert placement.leaves.tolist() == tree.leaves
    wanted, found = wanted_by(placement, X), tree.labels
    after = np.bincount(found, minlength=n_leaves)
    assert (after >= np.minimum(sizes, least)).all()
    assert (after <= np.maximum(sizes, most)).all()
    assert ((found == wanted) | (found == grown)).all()
    would = np.bincount(wanted, minlength=n_leaves)
    if ((would >= np.minimum(sizes, least)) & (would <= np.maximum(sizes, most))).all():
        np.testing.assert_array_equal(found, wanted)


def test_those_that_gain_least_stay():
    """Ten rows want to go to the other leaf, and so many may: the ones nearest to it."""
    X = np.concatenate([np.linspace(-1.0, 1.0, 30), np.linspace(5.0, 6.0, 10)])[:, None]
    grown = np.repeat([0, 1], [10, 30])
    for most in (15, 20, 25, 29):
        tree, rows = tree_of(grown), as_rows(X)
        placement = compete(tree, Coordinates.of(rows, 0), rows, max_leaf_size=most)
        wanted = wanted_by(placement, X)
        assert np.bincount(wanted).tolist() == [30, 10]
        np.testing.assert_array_equal(tree.labels, (np.arange(40) >= most).astype(int))
        tree = tree_of(grown)
        compete(tree, Coordinates.of(rows, 0), rows, min_leaf_size=40 - most)
        np.testing.assert_array_equal(tree.labels, (np.arange(40) >= most).astype(int))


def test_a_root_on_its_own_has_nothing_to_compete_for(data):
    rows = as_rows(data["cloud"])
    tree = HierarchyBuilder(300)
    assert compete(tree, Coordinates.of(rows, 0), rows) is None
    assert not tree.labels.any()


def test_grown_trees_compete_alike_with_any_number_of_threads(data):
    for X in (data["cloud"], data["animals"], data["wide"]):
        found = []
        for n_threads in (1, 2):
            rows = as_rows(X, n_threads=n_threads)
            coordinates = Coordinates.of(rows, 0)
            stop = StoppingRule(n_leaves=7)
            tree = grow(coordinates.rows, GapSplitter(), branching=2, stop=stop, run=Run())
            placement = compete(tree, coordinates, rows)
            found.append((tree.labels.tobytes(), placement.rule.weights.tobytes()))
            np.testing.assert_array_equal(tree.labels, wanted_by(placement, X))
        assert found[0] == found[1]


def test_means_of_leaves_that_are_part_of_a_wider_array():
    rng = np.random.default_rng(0)
    for dtype, rtol in (("float32", 1e-6), ("float64", 1e-12)):
        Z = (rng.normal(size=(500, 9)) + 1.0).astype(dtype)[:, :-1]
        labels = rng.permutation(np.arange(500) % 7)
        found = _leaves.leaf_means(Z, labels, np.bincount(labels))
        means = [Z[labels == leaf].mean(axis=0, dtype=np.float64) for leaf in range(7)]
        np.testing.assert_allclose(found, means, rtol=rtol)
        with pytest.raises(ValueError, match="labels must lie between 0 and 6"):
            _leaves.leaf_means(Z, labels + 1, np.bincount(labels))
