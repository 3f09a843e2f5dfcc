"""Leaves that compete for rows: the objective falls, no leaf is lost, and sizes hold."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taxarbor._run import Run
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.refine import Coordinates, Leafing, _leaves, compete
from taxarbor.refine._leaves import fit_leaves


def divide(n_rows, n_leaves, rng):
    """Return random labels of which none is missing."""
    labels = rng.integers(0, n_leaves, n_rows)
    labels[rng.permutation(n_rows)[:n_leaves]] = np.arange(n_leaves)
    return labels


def clouds(n_rows, n_features, rng):
    X = rng.standard_normal((n_rows, n_features)) * rng.uniform(0.1, 3.0, n_features)
    return X + rng.integers(0, 3, (n_rows, 1)) * rng.normal(0.0, 3.0, n_features)


def leafing_of(coordinates, labels, column_of):
    """Return a tree whose leaves have these rows: the first one split off, and so on."""
    labels = np.asarray(labels)
    counts = coordinates.copies.counts
    weights = None if counts[0] is None else np.concatenate(counts)
    sizes = np.bincount(labels, weights=weights).astype(int).tolist()
    tree = HierarchyBuilder(sum(sizes))
    node = 0
    for label in range(len(sizes) - 1):
        node = tree.divide(node, [sizes[label], sum(sizes[label + 1 :])])[1]
    return Leafing.of(tree, column_of(labels.astype(np.int32), coordinates), coordinates)


@pytest.fixture
def fit_for(column_of):
    """Return how to fit leaves with other constants than the product's."""

    def make(n_steps, coordinates, labels, shrinkage=1.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_leaves, "STEPS", n_steps)
            patch.setattr(_leaves, "SHRINKAGE", shrinkage)
            return fit_leaves(leafing_of(coordinates, labels, column_of), coordinates)

    return make


def sent_by(coordinates, model):
    scores = coordinates.array.astype(np.float64) @ model.weights.T + model.offsets
    return scores.argmax(axis=1)


# ---- the model ----


@given(
    n_rows=st.integers(6, 120),
    n_features=st.integers(1, 12),
    n_leaves=st.integers(2, 6),
    shrinkage=st.sampled_from([0.0, 1e-3, 1.0, 10.0]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_objective_never_rises(fit_for, n_rows, n_features, n_leaves, shrinkage, seed):
    rng = np.random.default_rng(seed)
    coordinates = Coordinates.in_memory(clouds(n_rows, n_features, rng), seed)
    trace = np.array(
        fit_for(12, coordinates, divide(n_rows, n_leaves, rng), shrinkage=shrinkage).trace
    )
    assert np.isfinite(trace).all()
    assert (np.diff(trace) <= 1e-6 * (1.0 + np.abs(trace[:-1]))).all()


def test_the_objective_falls_on_data(coordinates_of, data, fit_for):
    for X in data.values():
        labels = divide(len(X), 6, np.random.default_rng(2))
        for dtype in ("float64", "float32"):
            trace = np.array(fit_for(10, coordinates_of(X.astype(dtype)), labels).trace)
            assert (np.diff(trace) <= 1e-6 * np.abs(trace).max()).all()
            assert trace[-1] < trace[0]


def test_the_first_round_by_hand(coordinates_of, data, fit_for):
    coordinates = coordinates_of(data["cloud"])
    labels = divide(300, 4, np.random.default_rng(0))
    model = fit_for(1, coordinates, labels, shrinkage=0.5)
    Z = coordinates.array.astype(np.float64)
    means = np.stack([Z[labels == k].mean(axis=0) for k in range(4)])
    apart = Z - means[labels]
    within = apart.T @ apart / len(Z)
    S = within + 0.5 * np.trace(within) / Z.shape[1] * np.eye(Z.shape[1])
    np.testing.assert_allclose(model.trace, [np.linalg.slogdet(S)[1]], rtol=1e-10)
    apart = Z[:, None] - means
    distances = np.einsum("nkp,pq,nkq->nk", apart, np.linalg.inv(S), apart)
    np.testing.assert_array_equal(sent_by(coordinates, model), distances.argmin(axis=1))


def test_rows_on_the_wrong_side_come_home(coordinates_of, column_of, fit_for):
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(4), 50)
    X = rng.standard_normal((200, 3)) + 12.0 * np.eye(4, 3)[truth]
    labels = truth.copy()
    labels[::9] = rng.integers(0, 4, len(labels[::9]))
    coordinates = coordinates_of(X)
    model = fit_leaves(leafing_of(coordinates, labels, column_of), coordinates)
    np.testing.assert_array_equal(sent_by(coordinates, model), truth)
    # Labels that are settled stay.
    assert len(set(fit_for(9, coordinates, truth).trace)) == 1


def test_a_leaf_that_would_be_lost_ends_it(coordinates_of, fit_for):
    """Of two leaves with the same mean the first would get all rows of both."""
    X = np.repeat([[0.0, 0.0], [4.0, 1.0]], 10, axis=0)
    labels = np.array([0] * 5 + [1] * 5 + [2] * 10)
    model = fit_for(5, coordinates_of(X), labels)
    assert len(model.trace) == 1
    assert model.weights.shape == (3, 2)


def test_leaves_without_scatter(coordinates_of, column_of):
    """What is left within leaves is rounding, and grows with the number of rows."""
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        for n_features, copies in ((4, 6), (10, 5000), (70, 500)):
            X = np.repeat(rng.standard_normal((5, n_features)), copies, axis=0).astype(dtype)
            labels = np.repeat(np.arange(5), copies)
            coordinates = coordinates_of(X)
            model = fit_leaves(leafing_of(coordinates, labels, column_of), coordinates)
            assert np.isfinite(model.trace).all()
            np.testing.assert_array_equal(sent_by(coordinates, model), labels)
        X = 1e-3 * rng.standard_normal((8000, 80))
        X[0] = 1e6
        labels = np.arange(8000) % 3
        labels[0] = 0
        coordinates = coordinates_of(X.astype(dtype))
        model = fit_leaves(leafing_of(coordinates, labels, column_of), coordinates)
        assert np.isfinite(model.weights).all()


# ---- the competition ----


def wanted_by(coordinates, model, values_of):
    """Return where rows would go, if sizes did not count."""
    nobody = Leafing(None, None, None, None)
    return values_of(_leaves._moved(nobody, coordinates, model).labels, coordinates)


@given(
    n_rows=st.integers(8, 90),
    n_leaves=st.integers(2, 6),
    least=st.integers(1, 12),
    room=st.integers(0, 12),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sizes_hold_when_rows_have_moved(
    coordinates_of, column_of, values_of, n_rows, n_leaves, least, room, seed
):
    """A row is where it wants to be, or where it was; and where sizes allow, the former."""
    rng = np.random.default_rng(seed)
    X, labels = clouds(n_rows, 3, rng), divide(n_rows, n_leaves, rng)
    for counts in (None, rng.integers(0, 4, n_rows)):
        if counts is not None:
            counts[np.unique(labels, return_index=True)[1]] += 1  # no leaf is empty
        coordinates = coordinates_of(X, counts=counts)
        grown = leafing_of(coordinates, labels, column_of)
        sizes, most = grown.counts, least + room
        moved, model = compete(grown, coordinates, least, most)
        wanted = wanted_by(coordinates, model, values_of)
        found = values_of(moved.labels, coordinates)
        there = np.ones(n_rows, dtype=bool) if counts is None else counts > 0
        assert (found[~there] == -1).all()
        after = np.bincount(found[there], None if counts is None else counts[there], n_leaves)
        np.testing.assert_array_equal(moved.counts, after)
        tree = moved.tree
        assert [tree.size(leaf) for leaf in tree.leaves] == after.tolist()
        assert (after >= np.minimum(sizes, least)).all()
        assert (after <= np.maximum(sizes, most)).all()
        assert ((found == wanted) | (found == labels))[there].all()
        would = np.bincount(wanted[there], None if counts is None else counts[there], n_leaves)
        if ((would >= np.minimum(sizes, least)) & (would <= np.maximum(sizes, most))).all():
            np.testing.assert_array_equal(found, wanted)


def test_those_that_gain_least_stay(coordinates_of, column_of, values_of):
    """Ten rows want to go to the other leaf, and so many may: the ones nearest to it."""
    X = np.concatenate([np.linspace(-1.0, 1.0, 30), np.linspace(5.0, 6.0, 10)])[:, None]
    labels = np.repeat([0, 1], [10, 30])
    for sizes in (None, [7, 20, 13]):
        coordinates = coordinates_of(X, sizes=sizes)
        for most in (15, 20, 25, 29):
            for bound in ({"max_leaf_size": most}, {"min_leaf_size": 40 - most}):
                grown = leafing_of(coordinates, labels, column_of)
                moved, model = compete(grown, coordinates, **bound)
                wanted = wanted_by(coordinates, model, values_of)
                assert np.bincount(wanted).tolist() == [30, 10]
                found = values_of(moved.labels, coordinates)
                np.testing.assert_array_equal(found, np.arange(40) >= most)


def test_rows_that_gain_as_little_go_back_together(coordinates_of, column_of, values_of):
    """Of 30 equal rows either all move or none."""
    X = np.concatenate([np.linspace(-1.0, 0.0, 10), np.full(30, 0.5), np.linspace(9, 10, 9)])
    labels = np.repeat([0, 1], [10, 39])
    for most in (20, 39):
        coordinates = coordinates_of(X[:, None])
        grown = leafing_of(coordinates, labels, column_of)
        moved, _ = compete(grown, coordinates, max_leaf_size=most)
        assert moved.counts.tolist() == [10, 39]
        np.testing.assert_array_equal(values_of(moved.labels, coordinates), labels)
    moved, _ = compete(
        leafing_of(coordinates, labels, column_of), coordinates, max_leaf_size=40
    )
    assert moved.counts.tolist() == [40, 9]


def test_notes_tell_of_leaves_that_have_other_rows(coordinates_of, column_of):
    X = np.repeat([[0.0], [1.0], [9.0]], 10, axis=0) + np.linspace(0.0, 0.1, 30)[:, None]
    labels = np.repeat([0, 1, 2], 10)
    labels[9], labels[10] = 1, 0
    coordinates = coordinates_of(X)
    grown = leafing_of(coordinates, labels, column_of)
    for leaf in grown.tree.leaves:
        grown.tree.refuse(leaf, "enough")
    moved, _ = compete(grown, coordinates)
    assert moved.counts.tolist() == [10, 10, 10]
    told = [moved.tree.note(leaf) for leaf in moved.tree.leaves]
    assert told == ["enough, before rows moved"] * 2 + ["enough"]


def test_grown_trees_compete_alike_however_they_are_run(
    coordinates_of, data, grown_on, values_of
):
    for X in (data["cloud"], data["animals"], data["wide"]):
        found = []
        with ThreadPoolExecutor(2) as pool:
            for run in (Run(), Run(pool=pool)):
                for sizes in (None, [30, 1, 50, len(X) - 81]):
                    coordinates = coordinates_of(X, sizes=sizes, pool=run.pool)
                    grown = grown_on(coordinates, 7, run=run)
                    moved, model = compete(grown, coordinates)
                    labels = values_of(moved.labels, coordinates)
                    found.append((labels.tobytes(), model.weights.tobytes()))
                    wanted = wanted_by(coordinates, model, values_of)
                    np.testing.assert_array_equal(labels, wanted)
                    rule = coordinates.rule(model.weights, model.offsets)
                    here = ((X - rule.center) @ rule.weights.T + rule.offsets).argmax(axis=1)
                    np.testing.assert_array_equal(labels, here)
        assert len(set(found)) == 1


def test_means_of_leaves(coordinates_of, column_of):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 9)) + 1.0
    labels = rng.permutation(np.arange(500) % 7)
    for counts in (None, rng.integers(1, 4, 500)):
        coordinates = coordinates_of(X, counts=counts, sizes=[100, 399, 1])
        found = leafing_of(coordinates, labels, column_of)
        Z = coordinates.array.astype(np.float64)
        of = [labels == leaf for leaf in range(7)]
        own = np.ones(500) if counts is None else counts
        np.testing.assert_array_equal(found.counts, [own[one].sum() for one in of])
        means = [np.average(Z[one], axis=0, weights=own[one]) for one in of]
        np.testing.assert_allclose(found.means, means, rtol=1e-12, atol=1e-15)
        for wrong in (labels + 1, labels - 1 + 8 * (labels == 0)):
            with pytest.raises(ValueError, match="labels"):
                Leafing.of(
                    found.tree, column_of(wrong.astype(np.int32), coordinates), coordinates
                )
