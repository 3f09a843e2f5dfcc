import json
import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

from taxarbor import GrowthWarning, HierarchicalKMeans, Hierarchy

KINDS = ["float64 dense", "float64 csr", "float32 dense", "float32 csr"]
CRITERIA = ["scatter", "compact"]
FOLDER = Path(
    os.environ.get("TAXARBOR_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)


def fit(X, n_clusters=8, **parameters):
    return HierarchicalKMeans(n_clusters, **{"random_state": 0, **parameters}).fit(X)


@pytest.fixture(scope="module")
def blobs():
    """Twelve groups of different sizes, far from each other, and which row is in which."""
    rng = np.random.default_rng(3)
    truth = rng.permutation(np.repeat(np.arange(12), np.arange(20, 80, 5)))
    middles = 60.0 * rng.normal(size=(12, 5))
    return middles[truth] + rng.normal(size=(len(truth), 5)), truth


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
        (6, None, 2),
        (30, None, 3),
        (30, 60, 4),
        (None, 90, 3),
    ],
)
def test_stopping(X, inner, criterion, n_clusters, max_leaf_size, max_depth):
    limits = {"max_leaf_size": max_leaf_size, "max_depth": max_depth}
    tree = fit(X, n_clusters, criterion=criterion, **limits).hierarchy_
    size, depth, most = max_leaf_size or 0, max_depth or 99, n_clusters or 999
    spared = (tree.n_rows <= size) | (tree.depth >= depth)
    assert 1 < tree.n_leaves <= most
    assert not spared[inner(tree)].any()
    assert tree.n_leaves == most or spared[tree.leaves].all()


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("branching", [2, 3, 5])
@pytest.mark.parametrize("n_clusters", range(1, 10))
def test_leaves_come_in_steps(X, criterion, branching, n_clusters):
    step = branching - 1
    reachable = 1 + (n_clusters - 1) // step * step
    parameters = {"branching": branching, "criterion": criterion}
    if reachable == n_clusters:
        tree = fit(X, n_clusters, **parameters).hierarchy_
    else:
        told = (
            f"{reachable} lea(f|ves) where {n_clusters} .* into {branching} adds {step} leaves"
        )
        with pytest.warns(GrowthWarning, match=told):
            tree = fit(X, n_clusters, **parameters).hierarchy_
    assert tree.n_leaves == reachable
    assert all(len(tree.children(node)) in {0, branching} for node in range(tree.n_nodes))


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_rows_are_never_told_apart(as_kind, kind):
    rows = np.random.default_rng(3).standard_normal((5, 6))
    X = as_kind(np.repeat(rows, 11, axis=0), kind)
    with pytest.warns(
        GrowthWarning, match="5 leaves where 20 .* its 11 rows are in fewer than 2 places"
    ):
        model = fit(X, 20)
    assert model.hierarchy_.n_leaves == 5
    assert (model.labels_.reshape(5, 11) == model.labels_[::11, None]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_equal_rows_are_one_leaf(as_kind, kind):
    told = r"1 leaf where 4 were asked for: leaf node 0 \(37 rows\) was refused: its 37 rows"
    with pytest.warns(GrowthWarning, match=told):
        assert not fit(as_kind(np.full((37, 3), 0.1), kind), 4).labels_.any()


def test_small_leaves_are_refused(X):
    with pytest.warns(
        GrowthWarning, match=r"rows are too few for 2 .*; and \d+ more"
    ) as record:
        fit(X[:40], 40)
    assert record[0].filename == __file__


# What it finds


@pytest.mark.parametrize("kind", KINDS)
def test_groups_far_apart_are_found(blobs, as_kind, kind):
    X, truth = blobs
    model = fit(as_kind(X, kind), 12, n_init=5)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    # The smallest average distance favours groups that are whole already.
    assert adjusted_rand_score(truth, fit(X, 12, criterion="compact").labels_) < 0.9


def test_flat(blobs):
    X, truth = blobs
    model = fit(X, 12, branching=12, n_init=20)
    assert model.hierarchy_.height == 1
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    oracle = KMeans(12, n_init=20, random_state=0).fit(X)
    np.testing.assert_allclose(
        model.hierarchy_.objective[0], oracle.inertia_ / len(X), rtol=1e-6
    )


@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", ["planted", "animals", "cloud"])
def test_scores(data, inner, name, criterion, branching):
    X = data[name]
    tree = fit(X, 9, criterion=criterion, branching=branching).hierarchy_
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
@pytest.mark.parametrize("name", ["planted", "animals", "cloud"])
def test_the_leaf_of_the_highest_score_is_split_next(data, name, criterion):
    tree = fit(data[name], 12, criterion=criterion).hierarchy_
    split_at = {int(tree.birth[child]): int(tree.parents[child]) for child in range(1, 23)}
    for step in range(1, tree.n_splits + 1):
        born = [node for node in range(tree.n_nodes) if tree.birth[node] < step]
        waiting = [node for node in born if node not in {split_at[t] for t in range(1, step)}]
        assert tree.score[split_at[step]] == np.nanmax(tree.score[waiting])


def test_compact_grows_deeper_than_scatter(data):
    deep, even = (fit(data["cloud"], 16, criterion=c).hierarchy_ for c in CRITERIA[::-1])
    assert deep.height > even.height


@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", ["planted", "animals", "cloud"])
def test_a_smaller_tree_is_the_larger_one_pruned(data, inner, name, criterion, branching):
    parameters = {"criterion": criterion, "branching": branching}
    small, large = (fit(data[name], n, **parameters).hierarchy_ for n in (9, 17))
    pruned = large.prune(9)
    for field in ("start", "stop", "parents", "birth"):
        np.testing.assert_array_equal(getattr(pruned, field), getattr(small, field))
    np.testing.assert_array_equal(pruned.labels, small.labels)
    np.testing.assert_array_equal(large.cut(9), small.labels)
    for node in inner(small):
        assert pruned.score[node] == small.score[node]
        assert pruned.rules[node].weights.tobytes() == small.rules[node].weights.tobytes()


@pytest.mark.parametrize("n_init", [1, 4])
def test_more_starts_are_never_worse(data, n_init):
    one, many = (
        fit(data["cloud"], 5, branching=5, n_init=n).hierarchy_.objective[0]
        for n in (n_init, 3 * n_init)
    )
    assert many <= one


# Predictions, and what a fit leaves behind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("branching", [2, 3, 5])
@pytest.mark.parametrize("name", ["planted", "animals", "cloud", "wide", "binary", "line"])
def test_predict_repeats_the_labels(data, as_kind, name, branching, kind):
    X = as_kind(data[name], kind)
    model = fit(X, 9, branching=branching)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("kind", KINDS)
def test_predict_repeats_the_labels_far_from_the_origin(data, as_kind, kind):
    X = as_kind(data["cloud"] + 1e4, kind)
    model = fit(X, 9)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_predict_repeats_the_labels_of_splits_that_settled():
    """Many rows, hardly in groups: centres that move a little move past some rows."""
    X = np.random.default_rng(0).standard_normal((20_000, 12)).astype(np.float32)
    model = fit(X, 6)
    statuses = {info.status for info in model.hierarchy_.info if info}
    assert "settled" in statuses
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_decision_path_leads_to_the_predicted_leaf(X):
    model = fit(X, 7, branching=3)
    tree, new = model.hierarchy_, X[::7] + 0.3
    visited = model.decision_path(new)
    for row, leaf in enumerate(model.predict(new)):
        nodes = visited.indices[visited.indptr[row] : visited.indptr[row + 1]]
        assert tuple(nodes) == tree.path(tree.leaves[leaf])


def test_fitted_attributes(X):
    model = HierarchicalKMeans(6, random_state=0)
    assert model.fit(X) is model
    assert isinstance(model.hierarchy_, Hierarchy)
    assert model.n_features_in_ == X.shape[1]
    assert "feature_names_in_" not in vars(model)
    np.testing.assert_array_equal(model.labels_, model.hierarchy_.labels)
    assert set(model.labels_) == set(range(6))
    again = HierarchicalKMeans(6, random_state=0).fit_predict(X)
    np.testing.assert_array_equal(model.labels_, again)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_of_each_split(data, as_kind, inner, kind):
    tree = fit(as_kind(data["cloud"], kind), 9).hierarchy_
    for node in inner(tree):
        assert tree.rules[node].dtype == kind.split()[0]
        info = tree.info[node]
        assert (np.diff(info.trace) <= 0.0).all()
        assert len(info.trace) == info.n_iter + 1
        assert tree.objective[node] == info.trace[-1]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["planted", "cloud"])
def test_one_tree_however_it_is_asked_for(data, structure, name, dtype, criterion):
    X = data[name].astype(dtype)
    first = fit(X, criterion=criterion).hierarchy_
    for other in (np.asfortranarray(X), pd.DataFrame(X)):
        assert fit(other, criterion=criterion).hierarchy_.to_json() == first.to_json()
    assert fit(X, criterion=criterion, n_jobs=2).hierarchy_.to_json() == first.to_json()
    csr = fit(sparse.csr_array(X), criterion=criterion, n_jobs=2).hierarchy_
    np.testing.assert_array_equal(csr.labels, first.labels)
    assert structure(csr) == structure(first)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(X, frame):
    names = [f"f{j}" for j in range(X.shape[1])]
    named = frame(dict(zip(names, X.T, strict=True)))
    model = fit(named)
    assert model.feature_names_in_.tolist() == names
    assert model.hierarchy_.feature_names == tuple(names)
    np.testing.assert_array_equal(model.labels_, fit(X).labels_)
    np.testing.assert_array_equal(model.predict(named), model.labels_)
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
    np.testing.assert_array_equal(tree.predict(X), model.labels_)


def test_random_state(data):
    X = data["cloud"]
    by_int = fit(X, random_state=3).hierarchy_.to_json()
    by_state = fit(X, random_state=np.random.RandomState(3)).hierarchy_.to_json()
    assert by_int == by_state
    assert fit(X, random_state=4).hierarchy_.to_json() != by_int
    assert fit(X, random_state=None).hierarchy_.n_leaves == 8


# Parameters


@pytest.mark.parametrize(
    ("parameters", "error", "told"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1, got 0"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters must be an integer, got 2.5"),
        ({"n_clusters": 601}, ValueError, "n_clusters=601 .* n_samples=600 rows; lower"),
        ({"n_clusters": None}, ValueError, "give n_clusters, .*: nothing ends the growth"),
        ({"branching": 1}, ValueError, "branching must be at least 2, got 1"),
        ({"branching": None}, TypeError, "branching must be an integer, got None"),
        ({"criterion": "ward"}, ValueError, "one of 'scatter', 'compact'; got 'ward'"),
        ({"criterion": None}, ValueError, "criterion must be one of .*; got None"),
        ({"max_leaf_size": 0}, ValueError, "max_leaf_size must be at least 1, got 0"),
        ({"max_depth": 1.0}, TypeError, "max_depth must be an integer, got 1.0"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1, got 0"),
        ({"n_init": "auto"}, TypeError, "n_init must be an integer, got 'auto'"),
        ({"random_state": "x"}, ValueError, "'x' cannot be used to seed"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ],
)
def test_bad_parameters(X, parameters, error, told):
    model = HierarchicalKMeans(**parameters)
    with pytest.raises(error, match=told):
        model.fit(X)
    with pytest.raises(NotFittedError, match="This HierarchicalKMeans instance"):
        model.predict(X)


def test_unsettled_splits_are_told_of(monkeypatch, data):
    """Without naming parameters that this estimator does not have."""
    monkeypatch.setattr("taxarbor.split._kmeans.MAX_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match=r"\d of 7 splits did not settle") as record:
        fit(data["cloud"])
    assert "solver" not in str(record[0].message)


def test_silence(X, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(X, 20, max_depth=2, verbose=1)
    assert capfd.readouterr() == ("", "")


# The paper's comparison


def test_hkm_d_on_animals_with_attributes():
    """Within 0.3 points of what the definitions of the measures were checked by."""
    from taxarbor.metrics import score_hierarchy

    path = FOLDER / "awa_attr.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent; the variable TAXARBOR_DATA can name its folder")
    with np.load(path, allow_pickle=False) as file:
        X, y = file["X"].astype(np.float32), file["class_names"][file["y"]]
    truth = json.loads(path.with_name("awa_attr.hierarchy.json").read_text(encoding="utf-8"))
    found = []
    for seed in range(3):
        model = HierarchicalKMeans(50, n_init=10, random_state=seed, n_jobs=2).fit(X)
        scores = score_hierarchy(model.hierarchy_, y, truth)
        found.append([scores[name] for name in ("shortest_path", "path_sharing", "rand")])
    expected = [90.59, 90.72, 96.05]
    np.testing.assert_allclose(100.0 * np.mean(found, axis=0), expected, rtol=0.0, atol=0.3)
