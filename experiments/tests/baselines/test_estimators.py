"""The paper's baselines: what they find, which leaf is next, where they send new rows."""

import json
import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info

from experiments.baselines import MMC, HierarchicalKMeans, HierarchicalSpectral
from taxarbor import HMMC, GrowthWarning, load_animals, make_planted_tree
from taxarbor.exchange import to_json

BOTH = [HierarchicalKMeans, HierarchicalSpectral]
CRITERIA = ("scatter", "compact")
HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("TAXARBOR_DATA", HERE.parents[4] / "shared" / "data"))


@pytest.fixture(scope="session")
def planted():
    """A planted tree of eight leaves, 600 rows, 20 features."""
    return make_planted_tree(600, random_state=1)


@pytest.fixture(scope="session")
def data(planted):
    """Read-only float64 arrays by name."""
    cloud = np.random.default_rng(0).standard_normal((500, 8))
    arrays = {"planted": planted.X, "animals": load_animals().X, "cloud": cloud}
    arrays = {name: np.array(X, dtype=np.float64) for name, X in arrays.items()}
    for X in arrays.values():
        X.flags.writeable = False
    return arrays


@pytest.fixture(scope="session", name="X")
def planted_rows(data):
    """The rows of the planted tree."""
    return data["planted"]


def as_kind(X, kind):
    """Return data as another kind: "float32 csr", "float64 dense", ..."""
    dtype, layout = kind.split()
    array = X.astype(dtype)
    return sparse.csr_array(array) if layout == "csr" else array


def inner(tree):
    """Return the nodes that were split."""
    return [node for node in range(tree.n_nodes) if not tree.is_leaf(node)]


@pytest.fixture(params=BOTH)
def kind(request):
    return request.param


def fit(kind, X, n_clusters=8, **parameters):
    return kind(n_clusters, **{"random_state": 0, **parameters}).fit(X)


# ---- growth ----


def test_scores_and_which_leaf_is_split_next(data, kind):
    """By hand; and of all that wait, the highest."""
    for name in ("planted", "animals", "cloud"):
        X = data[name]
        for criterion in CRITERIA:
            tree = fit(kind, X, 12, criterion=criterion).taxonomy_.tree
            for node in inner(tree):
                parts = [X[tree.rows(child)] for child in tree.children(node)]
                if criterion == "scatter":
                    parts = [X[tree.rows(node)]]
                lengths = [np.linalg.norm(part - part.mean(axis=0), axis=1) for part in parts]
                every = np.concatenate(lengths)
                expected = every.sum() if criterion == "scatter" else -every.mean()
                np.testing.assert_allclose(tree.score[node], expected, rtol=1e-9)
            pairs = zip(tree.birth[1:].tolist(), tree.parents[1:].tolist(), strict=True)
            split_at, done = dict(pairs), set()
            for step in range(1, tree.n_splits + 1):
                born = np.flatnonzero(tree.birth < step).tolist()
                waiting = [node for node in born if node not in done]
                assert tree.score[split_at[step]] == np.nanmax(tree.score[waiting])
                done.add(split_at[step])


def test_a_smaller_tree_is_the_larger_one_pruned(data, kind):
    for name in ("planted", "cloud"):
        for criterion in CRITERIA:
            for branching in (2, 3):
                parameters = {"criterion": criterion, "branching": branching}
                trees = (fit(kind, data[name], n, **parameters).taxonomy_.tree for n in (9, 17))
                small, large = trees
                pruned = large.prune(9)
                for field in ("start", "stop", "parents", "birth"):
                    np.testing.assert_array_equal(getattr(pruned, field), getattr(small, field))
                np.testing.assert_array_equal(pruned.labels, small.labels)
                np.testing.assert_array_equal(large.cut(9), small.labels)
                for node in inner(small):
                    assert pruned.score[node] == small.score[node]
                    ours, theirs = pruned.rules[node].weights, small.rules[node].weights
                    assert ours.tobytes() == theirs.tobytes()


def test_many_nodes_side_by_side(kind):
    """Sums are made in one thread, whatever other nodes are at; limits go back."""
    X = make_planted_tree(1500, random_state=1).X
    one = to_json(fit(kind, X, 12, n_jobs=1).taxonomy_)
    before = threadpool_info()
    for n_jobs in (2, 4):
        assert to_json(fit(kind, X, 12, n_jobs=n_jobs).taxonomy_) == one
        assert threadpool_info() == before
    grid = np.argwhere(np.ones((38, 38))).astype(float)  # of ties
    one, two = (to_json(fit(kind, grid, 6, n_jobs=n).taxonomy_) for n in (1, 2))
    assert one == two


def test_unsettled_splits_are_told_of(monkeypatch, data, kind):
    """Without naming parameters that these estimators do not have."""
    monkeypatch.setattr("experiments.baselines._splitters.MAX_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match=r"\d of 7 splits did not converge") as record:
        fit(kind, data["cloud"])
    assert "solver" not in str(record[0].message)


def test_bad_parameters(X, kind):
    for value in ("ward", None):
        message = f"criterion must be one of 'scatter', 'compact'; got {value!r}"
        with pytest.raises(ValueError, match=message):
            kind(criterion=value).fit(X)
    for value, error, message in (
        (0, ValueError, "n_neighbors must be at least 1, got 0"),
        (2.0, TypeError, "n_neighbors must be an integer, got 2.0"),
        (None, TypeError, "n_neighbors must be an integer, got None"),
    ):
        with pytest.raises(error, match=message):
            HierarchicalSpectral(n_neighbors=value).fit(X)


# ---- k-means ----


def test_clusters_far_apart_are_found():
    """And flat, they are scikit-learn's."""
    rng = np.random.default_rng(3)
    truth = rng.permutation(np.repeat(np.arange(12), np.arange(20, 80, 5)))
    X = 60.0 * rng.normal(size=(12, 5))[truth] + rng.normal(size=(len(truth), 5))
    for layout in ("float64 dense", "float32 csr"):
        labels = fit(HierarchicalKMeans, as_kind(X, layout), 12, n_init=5).labels_
        assert adjusted_rand_score(truth, labels) == 1.0
    # The smallest average distance favours clusters that are whole already.
    compact = fit(HierarchicalKMeans, X, 12, criterion="compact")
    assert adjusted_rand_score(truth, compact.labels_) < 0.9
    assert compact.taxonomy_.tree.height > fit(HierarchicalKMeans, X, 12).taxonomy_.tree.height
    flat = fit(HierarchicalKMeans, X, 12, branching=12, n_init=20)
    assert flat.taxonomy_.tree.height == 1
    assert adjusted_rand_score(truth, flat.labels_) == 1.0
    oracle = KMeans(12, n_init=20, random_state=0).fit(X).inertia_ / len(X)
    np.testing.assert_allclose(flat.taxonomy_.tree.objective[0], oracle, rtol=1e-6)


def test_more_starts_are_never_worse(data):
    fits = [fit(HierarchicalKMeans, data["cloud"], 5, branching=5, n_init=n) for n in (1, 3, 9)]
    objectives = [model.taxonomy_.tree.objective[0] for model in fits]
    assert objectives == sorted(objectives, reverse=True)


def test_predict_repeats_the_labels_of_splits_that_settled():
    """Many rows, hardly in clusters: centres that move a little move past some rows."""
    X = np.random.default_rng(0).standard_normal((20_000, 12)).astype(np.float32)
    model = fit(HierarchicalKMeans, X, 6)
    assert "settled" in {info.status for info in model.taxonomy_.tree.info if info}
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.long
def test_hkm_d_on_animals_with_attributes():
    """Within 0.3 points of what the definitions of the measures were checked by."""
    from taxarbor.metrics import tree_scores

    path = FOLDER / "awa_attr.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent; the variable TAXARBOR_DATA can name its folder")
    with np.load(path, allow_pickle=False) as file:
        X, y = file["X"].astype(np.float32), file["class_names"][file["y"]]
    truth = json.loads(path.with_name("awa_attr.hierarchy.json").read_text(encoding="utf-8"))
    measured = []
    for seed in range(3):
        model = HierarchicalKMeans(50, n_init=10, random_state=seed, n_jobs=2).fit(X)
        scores = tree_scores(model.taxonomy_, y, truth)
        measured.append([scores[name] for name in ("shortest_path", "path_sharing", "rand")])
    expected = [90.59, 90.72, 96.05]
    np.testing.assert_allclose(100.0 * np.mean(measured, axis=0), expected, rtol=0.0, atol=0.3)


# ---- the graph ----


def test_flat_is_spectral_clustering():
    """As scikit-learn's, with the same neighbours, on clouds that just touch."""
    planted = make_planted_tree(300, depth=1, branching=3, separation=4.0, random_state=0)
    model = fit(HierarchicalSpectral, planted.X, 3, branching=3, n_neighbors=10)
    oracle = SpectralClustering(
        3, affinity="nearest_neighbors", n_neighbors=11, n_init=10, random_state=0
    ).fit(planted.X)
    assert model.taxonomy_.tree.height == 1
    assert adjusted_rand_score(oracle.labels_, model.labels_) > 0.9


def test_a_tree_of_pieces_is_not_a_chain(planted):
    model = fit(HierarchicalSpectral, planted.X)
    assert adjusted_rand_score(planted.labels, model.labels_) == 1.0
    assert model.taxonomy_.tree.height == 3
    np.testing.assert_array_equal(model.predict(planted.X), model.labels_)


def test_more_neighbors_make_another_graph(data):
    X = data["cloud"]
    few, many = (fit(HierarchicalSpectral, X, 4, n_neighbors=n).labels_ for n in (3, 40))
    assert adjusted_rand_score(few, many) < 1.0
    assert fit(HierarchicalSpectral, X[:30], 3, n_neighbors=500).taxonomy_.tree.n_leaves == 3


def test_predict_is_the_nearest_mean_at_each_node(data):
    X = data["cloud"]
    for layout in ("float64 dense", "float64 csr", "float32 dense", "float32 csr"):
        model = fit(HierarchicalSpectral, as_kind(X, layout), 6)
        tree, new = model.taxonomy_.tree, X[::3] + 0.1
        for row, leaf in zip(new, model.predict(as_kind(new, layout)), strict=True):
            node = 0
            while children := tree.children(node):
                means = [X[tree.rows(child)].mean(axis=0) for child in children]
                distances = [float(np.square(row - mean).sum()) for mean in means]
                node = children[int(np.argmin(distances))]
            assert node == tree.leaves[leaf]


# ---- flat maximum margins ----


def flat(X, n_clusters=4, **parameters):
    return fit(MMC, X, n_clusters, **parameters)


def content(tree):
    """All of a tree but who made it."""
    return to_json(replace(tree, made_by=None))


def test_a_root_with_one_child_per_cluster(X):
    for n_clusters in (1, 2, 3, 5, 8):
        tree = flat(X, n_clusters).taxonomy_.tree
        assert tree.n_leaves == n_clusters
        assert tree.height == min(n_clusters - 1, 1)


def test_planted_clusters_are_found():
    planted = make_planted_tree(400, depth=1, branching=4, random_state=2)
    for penalty in ("group", "l1", "l2"):
        for solver in ("newton", "pqn"):
            for dtype in ("float32", "float64"):
                X = planted.X.astype(dtype)
                setting = {"penalty": penalty, "solver": solver}
                dense, csr = (flat(Z, **setting) for Z in (X, sparse.csr_array(X)))
                assert len(set(zip(dense.labels_, planted.labels, strict=True))) == 4
                np.testing.assert_array_equal(dense.labels_, csr.labels_)
                np.testing.assert_array_equal(dense.predict(X), dense.labels_)


def test_the_flat_form_is_one_split_of_the_other(X):
    for penalty in ("group", "l1", "l2"):
        for K in (2, 3):
            node = {"balance": 0.3, "center": "node"}
            tree = (
                HMMC(K, branching=K, penalty=penalty, random_state=0, **node).fit(X).taxonomy_
            )
            assert content(flat(X, K, penalty=penalty).taxonomy_) == content(tree)


def test_sizes_of_clusters(data):
    X = data["cloud"]
    for n_clusters in (2, 4, 7):
        for balance, pair in ((0.3, (0.3, 1.7)), (1.0, (1.0, 1.0)), ((0.9, 1.1), (0.9, 1.1))):
            for units in ({}, {"units": "raw", "alpha": 1e-2}):
                sizes = np.bincount(flat(X, n_clusters, balance=balance, **units).labels_)
                low, high = (len(X) / n_clusters * bound for bound in pair)
                assert low - 1 < sizes.min() <= sizes.max() < high + 1
    with pytest.warns(GrowthWarning, match="1 leaf where 8 .* 10 rows are too few for 8"):
        assert not flat(X[:10], 8).labels_.any()


def test_what_the_flat_form_cannot_have(X):
    for parameters, error, message in (
        ({"n_clusters": None}, TypeError, "n_clusters must be an integer, got None"),
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1, got 0"),
        ({"n_clusters": 601}, ValueError, "n_clusters is 601, .* n_samples=600 rows .*; lower"),
        ({"penalty": "exclusive"}, ValueError, "penalty must be one of .*; got 'exclusive'"),
        ({"n_init": 2.0}, TypeError, "n_init must be an integer, got 2.0"),
        ({"tol": None}, TypeError, "tol must be a number, got None"),
    ):
        with pytest.raises(error, match=message):
            MMC(**parameters).fit(X)


# ---- what holds of every estimator ----

ALL = [MMC(4), HierarchicalKMeans(6), HierarchicalSpectral(6, criterion="compact")]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
@pytest.mark.parametrize("model", ALL, ids=str)
def test_checks_of_scikit_learn(model):
    """But for two that take clusterers for classifiers, and two that shuffle rows."""
    known = {f"check_estimator_sparse_{kind}" for kind in ("array", "matrix")}
    known |= {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
    results = check_estimator(model, on_skip=None, on_fail=None)
    failed = {one["check_name"] for one in results if one["status"] == "failed"}
    assert failed <= known


@pytest.mark.parametrize("model", ALL, ids=str)
def test_frames_files_and_weights(planted, tmp_path, model):
    X, weights = planted.X, np.arange(600) % 3
    model = clone(model).set_params(random_state=0)
    fitted = model.fit(X)
    fitted.taxonomy_.save(tmp_path / "tree.taxarbor")
    loaded = type(fitted.taxonomy_).load(tmp_path / "tree.taxarbor")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert to_json(loaded) == to_json(fitted.taxonomy_)
    if isinstance(model, MMC):
        model.set_params(balance=None)  # bounds could divide copies of a row
    weighted = model.fit(X, sample_weight=weights).labels_[weights > 0]
    repeated = model.fit(np.repeat(X, weights, axis=0)).labels_
    np.testing.assert_array_equal(np.repeat(weighted, weights[weights > 0]), repeated)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_equal_rows_are_in_one_cluster(model):
    rng = np.random.default_rng(1)
    places = rng.standard_normal((20, 3))
    own = rng.choice(20, 100, p=rng.dirichlet(np.full(20, 0.7)))
    for n_clusters in (2, 5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GrowthWarning)
            model = clone(model).set_params(n_clusters=n_clusters, random_state=0)
            labels = model.fit(places[own]).labels_
        pairs = {*zip(own.tolist(), labels.tolist(), strict=True)}
        assert len(pairs) == len({*own.tolist()})
