import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_info

from taxarbor import (
    GrowthWarning,
    HierarchicalKMeans,
    HierarchicalSpectral,
    Hierarchy,
    make_planted_tree,
)

KINDS = ["float64 dense", "float64 csr", "float32 dense", "float32 csr"]
CRITERIA = ["scatter", "compact"]


def fit(X, n_clusters=8, **parameters):
    return HierarchicalSpectral(n_clusters, **{"random_state": 0, **parameters}).fit(X)


@pytest.fixture(scope="module")
def rings():
    """Four rings about one centre, and which row is on which."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), [60, 120, 180, 240])
    angles = np.concatenate([np.linspace(0, 2 * np.pi, n, False) for n in np.bincount(truth)])
    lengths = 1.0 + truth + rng.normal(0.0, 0.02, len(truth))
    X = np.column_stack([np.cos(angles), np.sin(angles)]) * lengths[:, None]
    order = rng.permutation(len(X))
    return X[order], truth[order]


# Stopping


def test_one_cluster_is_one_leaf(X):
    model = fit(X, 1)
    assert model.hierarchy_.n_nodes == 1
    assert not model.labels_.any()
    assert not model.predict(X).any()


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    ("n_clusters", "max_leaf_size", "max_depth"),
    [
        (5, None, None),
        (None, 100, None),
        (None, None, 3),
        (6, 100, None),
        (30, 100, None),
        (30, None, 3),
        (30, 60, 4),
        (None, 90, 3),
    ],
)
def test_stopping(data, inner, criterion, n_clusters, max_leaf_size, max_depth):
    limits = {"max_leaf_size": max_leaf_size, "max_depth": max_depth}
    tree = fit(data["cloud"], n_clusters, criterion=criterion, **limits).hierarchy_
    size, depth, most = max_leaf_size or 0, max_depth or 99, n_clusters or 999
    spared = (tree.n_rows <= size) | (tree.depth >= depth)
    assert 1 < tree.n_leaves <= most
    assert not spared[inner(tree)].any()
    assert tree.n_leaves == most or spared[tree.leaves].all()


@pytest.mark.parametrize("branching", [2, 3, 5])
@pytest.mark.parametrize("n_clusters", [4, 5, 9])
def test_leaves_come_in_steps(X, branching, n_clusters):
    step = branching - 1
    reachable = 1 + (n_clusters - 1) // step * step
    if reachable == n_clusters:
        tree = fit(X, n_clusters, branching=branching).hierarchy_
    else:
        told = (
            f"{reachable} lea(f|ves) where {n_clusters} .* into {branching} adds {step} leaves"
        )
        with pytest.warns(GrowthWarning, match=told):
            tree = fit(X, n_clusters, branching=branching).hierarchy_
    assert tree.n_leaves == reachable
    assert all(len(tree.children(node)) in {0, branching} for node in range(tree.n_nodes))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copies", [11, 50])
def test_repeated_rows_are_never_told_apart(as_kind, kind, copies):
    rows = np.random.default_rng(3).standard_normal((5, 6))
    X = as_kind(np.repeat(rows, copies, axis=0), kind)
    told = f"5 leaves where 20 .* its {copies} rows are in fewer than 2 places"
    with pytest.warns(GrowthWarning, match=told):
        model = fit(X, 20)
    assert model.hierarchy_.n_leaves == 5
    assert (model.labels_.reshape(5, copies) == model.labels_[::copies, None]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", [37, 300])
def test_equal_rows_are_one_leaf(as_kind, kind, n_rows):
    told = rf"1 leaf where 4 .*: leaf node 0 \({n_rows} rows\) was refused: its {n_rows} rows"
    with pytest.warns(GrowthWarning, match=told):
        assert not fit(as_kind(np.full((n_rows, 3), 0.1), kind), 4).labels_.any()


def test_small_leaves_are_refused(X):
    with pytest.warns(
        GrowthWarning, match=r"rows are too few for 2 .*; and \d+ more"
    ) as record:
        fit(X[:40], 40)
    assert record[0].filename == __file__


# What it finds


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rings", [2, 4])
def test_rings_are_told_apart(rings, as_kind, kind, n_rings):
    """Where k-means cuts across them."""
    X, truth = (part[rings[1] < n_rings] for part in rings)
    parameters = {"n_clusters": n_rings, "branching": n_rings, "random_state": 0}
    labels = HierarchicalSpectral(**parameters).fit(as_kind(X, kind)).labels_
    assert adjusted_rand_score(truth, labels) == 1.0
    means = HierarchicalKMeans(**parameters, n_init=10).fit(X)
    assert adjusted_rand_score(truth, means.labels_) < 0.5


def test_planted_leaves_are_found(planted):
    labels = fit(planted.X, 8).labels_
    assert len(set(zip(labels, planted.labels, strict=True))) == 8


def test_flat_is_spectral_clustering():
    """As scikit-learn's, with the same neighbours, on clouds that just touch."""
    planted = make_planted_tree(300, depth=1, branching=3, separation=4.0, random_state=0)
    model = fit(planted.X, 3, branching=3, n_neighbors=10)
    oracle = SpectralClustering(
        3, affinity="nearest_neighbors", n_neighbors=11, n_init=10, random_state=0
    ).fit(planted.X)
    assert model.hierarchy_.height == 1
    assert adjusted_rand_score(oracle.labels_, model.labels_) > 0.9


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", ["planted", "animals", "cloud"])
def test_scores(data, inner, name, criterion):
    X = data[name]
    tree = fit(X, 9, criterion=criterion).hierarchy_
    for node in inner(tree):
        if criterion == "scatter":
            own = X[tree.rows(node)]
            expected = np.linalg.norm(own - own.mean(axis=0), axis=1).sum()
        else:
            parts = [X[tree.rows(child)] for child in tree.children(node)]
            lengths = [np.linalg.norm(part - part.mean(axis=0), axis=1) for part in parts]
            expected = -np.concatenate(lengths).mean()
        np.testing.assert_allclose(tree.score[node], expected, rtol=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_leaf_of_the_highest_score_is_split_next(data, criterion):
    tree = fit(data["cloud"], 12, criterion=criterion).hierarchy_
    split_at = {int(tree.birth[child]): int(tree.parents[child]) for child in range(1, 23)}
    for step in range(1, tree.n_splits + 1):
        born = [node for node in range(tree.n_nodes) if tree.birth[node] < step]
        waiting = [node for node in born if node not in {split_at[t] for t in range(1, step)}]
        assert tree.score[split_at[step]] == np.nanmax(tree.score[waiting])


@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", ["planted", "cloud"])
def test_a_smaller_tree_is_the_larger_one_pruned(data, inner, name, criterion, branching):
    parameters = {"criterion": criterion, "branching": branching}
    small, large = (fit(data[name], n, **parameters).hierarchy_ for n in (9, 17))
    pruned = large.prune(9)
    for field in ("start", "stop", "parents", "birth"):
        np.testing.assert_array_equal(getattr(pruned, field), getattr(small, field))
    np.testing.assert_array_equal(pruned.labels, small.labels)
    for node in inner(small):
        assert pruned.score[node] == small.score[node]
        assert pruned.rules[node].weights.tobytes() == small.rules[node].weights.tobytes()


def test_more_neighbors_make_another_graph(data):
    few, many = (fit(data["cloud"], 4, n_neighbors=n).labels_ for n in (3, 40))
    assert adjusted_rand_score(few, many) < 1.0
    assert fit(data["cloud"][:30], 3, n_neighbors=500).hierarchy_.n_leaves == 3


# Predictions, and what a fit leaves behind


@pytest.mark.parametrize("kind", KINDS)
def test_predict_is_the_nearest_mean_at_each_node(data, as_kind, kind):
    X = data["cloud"]
    model = fit(as_kind(X, kind), 6)
    tree, new = model.hierarchy_, X[::3] + 0.1
    predicted = model.predict(as_kind(new, kind))
    for row, leaf in zip(new, predicted, strict=True):
        node = 0
        while children := tree.children(node):
            means = [X[tree.rows(child)].mean(axis=0) for child in children]
            distances = [float(np.square(row - mean).sum()) for mean in means]
            node = children[int(np.argmin(distances))]
        assert node == tree.leaves[leaf]


def test_predict_repeats_the_labels_of_clear_groups(planted):
    model = fit(planted.X, 8, branching=8)
    np.testing.assert_array_equal(model.predict(planted.X), model.labels_)


def test_fitted_attributes(X):
    model = HierarchicalSpectral(6, random_state=0)
    assert model.fit(X) is model
    assert isinstance(model.hierarchy_, Hierarchy)
    assert model.n_features_in_ == X.shape[1]
    assert "feature_names_in_" not in vars(model)
    np.testing.assert_array_equal(model.labels_, model.hierarchy_.labels)
    assert set(model.labels_) == set(range(6))
    again = HierarchicalSpectral(6, random_state=0).fit_predict(X)
    np.testing.assert_array_equal(model.labels_, again)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_of_each_split(data, as_kind, inner, kind):
    tree = fit(as_kind(data["cloud"], kind), 9).hierarchy_
    for node in inner(tree):
        assert tree.rules[node].dtype == kind.split()[0]
        info = tree.info[node]
        assert len(info.trace) == info.n_iter + 1
        assert tree.objective[node] == info.trace[-1] >= 0.0


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["planted", "cloud"])
def test_one_tree_however_it_is_asked_for(data, name, dtype, criterion):
    X = data[name].astype(dtype)
    first = fit(X, criterion=criterion).hierarchy_
    for other in (np.asfortranarray(X), pd.DataFrame(X)):
        assert fit(other, criterion=criterion).hierarchy_.to_json() == first.to_json()
    assert fit(X, criterion=criterion, n_jobs=2).hierarchy_.to_json() == first.to_json()
    csr = fit(sparse.csr_array(X), criterion=criterion, n_jobs=2).hierarchy_
    np.testing.assert_array_equal(csr.labels, first.labels)


def test_many_nodes_side_by_side():
    """Eigenvectors are summed in one thread, whatever other nodes are at; limits go back."""
    X = make_planted_tree(1500, random_state=1).X
    one = fit(X, 12, n_jobs=1).hierarchy_.to_json()
    before = threadpool_info()
    for n_jobs in (2, 4, 4):
        assert fit(X, 12, n_jobs=n_jobs).hierarchy_.to_json() == one
        assert threadpool_info() == before


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_ties_do_not_hang_on_the_number_of_jobs(n_jobs):
    X = np.argwhere(np.ones((38, 38))).astype(float)
    one, other = (fit(X, 6, n_jobs=n).hierarchy_ for n in (1, n_jobs))
    assert one.to_json() == other.to_json()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(X, frame):
    names = [f"f{j}" for j in range(X.shape[1])]
    named = frame(dict(zip(names, X.T, strict=True)))
    model = fit(named)
    assert model.feature_names_in_.tolist() == names
    assert model.hierarchy_.feature_names == tuple(names)
    np.testing.assert_array_equal(model.labels_, fit(X).labels_)
    np.testing.assert_array_equal(model.predict(named), fit(X).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(named[names[::-1]])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("form", ["file", "json", "pickle"])
def test_a_saved_tree_predicts_alike(data, tmp_path, form, dtype):
    X = data["cloud"].astype(dtype)
    model, path = fit(X, 9), tmp_path / "tree"
    if form == "file":
        model.hierarchy_.save(path)
        tree = Hierarchy.load(path)
    elif form == "json":
        model.hierarchy_.to_json(path)
        tree = Hierarchy.from_json(path)
    else:
        tree = pickle.loads(pickle.dumps(model)).hierarchy_
    assert tree.to_json() == model.hierarchy_.to_json()
    np.testing.assert_array_equal(tree.predict(X), model.predict(X))


def test_random_state(data):
    X = data["cloud"]
    by_int = fit(X, random_state=3).hierarchy_.to_json()
    by_state = fit(X, random_state=np.random.RandomState(3)).hierarchy_.to_json()
    assert by_int == by_state
    assert fit(X, random_state=None).hierarchy_.n_leaves == 8


# Parameters


@pytest.mark.parametrize(
    ("parameters", "error", "told"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1, got 0"),
        ({"n_clusters": 601}, ValueError, "n_clusters=601 .* n_samples=600 rows; lower"),
        ({"n_clusters": None}, ValueError, "give n_clusters, .*: nothing ends the growth"),
        ({"branching": 1}, ValueError, "branching must be at least 2, got 1"),
        ({"criterion": "cut"}, ValueError, "one of 'scatter', 'compact'; got 'cut'"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1, got 0"),
        ({"n_neighbors": 2.0}, TypeError, "n_neighbors must be an integer, got 2.0"),
        ({"n_neighbors": None}, TypeError, "n_neighbors must be an integer, got None"),
        ({"max_leaf_size": 0}, ValueError, "max_leaf_size must be at least 1, got 0"),
        ({"max_depth": 1.0}, TypeError, "max_depth must be an integer, got 1.0"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1, got 0"),
        ({"n_init": True}, TypeError, "n_init must be an integer, got True"),
        ({"random_state": "x"}, ValueError, "'x' cannot be used to seed"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ],
)
def test_bad_parameters(X, parameters, error, told):
    model = HierarchicalSpectral(**parameters)
    with pytest.raises(error, match=told):
        model.fit(X)
    with pytest.raises(NotFittedError, match="This HierarchicalSpectral instance"):
        model.predict(X)


def test_unsettled_splits_are_told_of(monkeypatch, data):
    """Without naming parameters that this estimator does not have."""
    monkeypatch.setattr("taxarbor.split._kmeans.MAX_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match=r"\d of 7 splits did not settle") as record:
        fit(data["cloud"])
    assert "solver" not in str(record[0].message)


def test_silence(X, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(X, 20, max_depth=2, verbose=1)
    assert capfd.readouterr() == ("", "")
