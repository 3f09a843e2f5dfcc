"""Planted clusters are recovered in refits, and noise is not."""

import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from taxarbor import HMMC, GrowthWarning, TableWarning, Taxarbor, make_planted_tree
from taxarbor.stability import assess
from taxarbor.taxonomy import Taxonomy

ARRAYS = "n_recovered", "n_separated", "left_out", "curve"


@pytest.fixture(scope="module")
def planted():
    return make_planted_tree(160, depth=2, n_noise_features=2, random_state=1)


@pytest.fixture(scope="module")
def model(planted):
    return Taxarbor(6, random_state=0).fit(planted.X)


@pytest.fixture(scope="module")
def taxonomy(model, planted):
    return assess(model, planted.X, n_refits=6)


def assert_equal(stability, other):
    assert stability.n_refits == other.n_refits
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(stability, name), getattr(other, name), name)


def test_planted_clusters_are_recovered(taxonomy, model, planted):
    tree, stability = taxonomy.tree, taxonomy.stability
    assert model.taxonomy_.stability is None
    assert (tree.labels == model.labels_).all()
    planted_rows = [set(np.flatnonzero(planted.labels == leaf)) for leaf in range(4)]
    whole = [node for node in range(tree.n_nodes) if set(tree.rows(node)) in planted_rows]
    pieces = np.setdiff1d(tree.leaves, whole)
    assert len(whole) == 4
    assert stability.n_refits == 6
    assert (stability.n_separated[whole] == 6).all()
    assert stability.is_stable[whole].all()
    assert not stability.is_stable[pieces].any()
    assert stability.describe(whole[0]) == "recovered in 6 of 6 refits"
    assert stability.suggested == 4
    assert (stability.n_separated <= stability.n_recovered).all()
    assert stability.curve.n_clusters.tolist() == [1, 2, 3, 4, 5, 6]
    assert not stability.curve.reference[1:].any()
    with pytest.raises(ValueError, match="read-only"):
        stability.left_out[0] = 1.0


def test_the_number_of_threads_does_not_matter(taxonomy, model, planted):
    assert_equal(assess(model, planted.X, n_refits=6, n_jobs=2).stability, taxonomy.stability)


class Recorded(Taxarbor):
    """Keeps every fit, and the rows that it was of."""

    fits: ClassVar = []

    def fit(self, X, y=None, sample_weight=None):
        self.fits.append((np.asarray(X), self))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_rows_left_out_by_brute_force(is_weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[:30] += [3.0, 0.0, 1.0, 0.0]
    weights = rng.integers(1, 4, 60).astype(float) if is_weighted else None
    Recorded.fits.clear()
    model = Recorded(5, random_state=0).fit(X, sample_weight=weights)
    tree, stability = model.taxonomy_.tree, assess(model, X, n_refits=4).stability
    w = np.ones(60) if weights is None else weights

    def weigh(rows):
        return w[sorted(rows)].sum()

    nodes = [set(tree.rows(node).tolist()) for node in range(tree.n_nodes)]
    sent, total = np.zeros((2, tree.n_nodes))
    for seen, refit in Recorded.fits[1:5]:
        used = {row for row in range(60) if (seen == X[row]).all(axis=1).any()}
        assert len(used) == len(seen) == 30
        other, labels = refit.taxonomy_.tree, refit.predict(X)
        below = [
            {label for label, leaf in enumerate(other.leaves) if node in other.path(leaf)}
            for node in range(other.n_nodes)
        ]
        others = [{row for row in range(60) if labels[row] in leaves} for leaves in below]
        index = np.array([[weigh(a & b) / weigh(a | b) for b in others] for a in nodes])
        match = np.append(0, 1 + index[1:, 1:].argmax(axis=1))
        of, to = linear_sum_assignment(-index[tree.leaves][:, other.leaves])
        match[tree.leaves[of]] = other.leaves[to]
        for node in range(1, tree.n_nodes):
            left_out = nodes[node] - used
            total[node] += weigh(left_out)
            sent[node] += weigh(left_out & others[match[node]])
    np.testing.assert_allclose(stability.left_out[1:], sent[1:] / total[1:])
    of_leaves = sent[tree.leaves].sum() / total[tree.leaves].sum()
    assert stability.left_out[0] == pytest.approx(of_leaves)


def test_rows_left_out_of_clusters_and_of_noise():
    planted = make_planted_tree(240, depth=2, n_noise_features=2, random_state=1).X
    clear = assess(Taxarbor(4, random_state=0).fit(planted), planted, n_refits=5).stability
    assert clear.left_out.min() > 0.95
    assert f"{100 * clear.left_out[0]:.0f} % of the rows left out" in clear.describe_left_out()
    # Of noise each refit has clusters of its own: about half of the rows stay together.
    noise = np.random.default_rng(0).normal(size=(240, 6))
    unclear = assess(Taxarbor(8, random_state=0).fit(noise), noise, n_refits=5).stability
    assert unclear.left_out[0] < 0.65
    root = assess(Taxarbor(1).fit(noise), noise, n_refits=2).stability
    assert root.left_out.tolist() == [1.0]


@pytest.mark.parametrize(
    "kind",
    [
        Taxarbor(4, branching=4),
        Taxarbor(None, max_leaf_size=60, min_leaf_size=30),
        HMMC(4, n_init=1),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_every_model_can_be_assessed(kind, planted):
    model = clone(kind).set_params(random_state=0).fit(csr_matrix(planted.X))
    stability = assess(model, csr_matrix(planted.X), n_refits=3).stability
    assert stability.n_refits == 3
    assert stability.suggested == 4


def test_invalid_models_and_rows(taxonomy, model, planted):
    X = planted.X
    for given, rows, options, error, parameter in [
        (taxonomy, X, {}, TypeError, "taxonomy_"),
        (Taxarbor(), X, {}, NotFittedError, "Taxarbor"),
        (model, X[:-1], {}, ValueError, "X has 159 rows"),
        (model, X[:, 1:], {}, ValueError, "X has"),
        (Taxarbor(1).fit(X[:3]), X[:3], {}, ValueError, "X has 3 rows"),
        (model, X, {"n_refits": 0}, ValueError, "n_refits"),
        (model, X, {"embedding": X}, ValueError, "embedding"),
        (model, X, {"random_state": -1}, ValueError, "random_state"),
    ]:
        with pytest.raises(error, match=parameter):
            assess(given, rows, **options)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_propagates(n_jobs, model, planted, monkeypatch):
    calls = []

    def interrupt(self, X, y=None):
        calls.append(X)
        if len(calls) > 1:
            time.sleep(0.5)
        raise KeyboardInterrupt

    monkeypatch.setattr(Taxarbor, "fit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        assess(model, planted.X, n_refits=6, n_jobs=n_jobs)
    assert len(calls) < 6  # those that wait are not begun


def test_a_mixed_table_of_many_features():
    # Rules of 64 and more features are found in groups by column: those of the reference
    # rows, which are coordinates, have no columns.
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    X = rng.normal(size=(120, 60)) + 3.0 * np.eye(3)[labels][:, [0, 1, 2] * 20]
    table = pd.DataFrame(X, columns=[f"x{n}" for n in range(60)])
    table["kind"] = np.array(list("abc"))[labels]
    table["other"] = rng.choice(list("uvwxyz"), 120)
    with pytest.warns(TableWarning):
        model = Taxarbor(3, random_state=0).fit(table)
    assert model.taxonomy_.n_features >= 64
    assert assess(model, table, n_refits=4).stability.suggested == 3


def test_of_many_rows_some_are_refitted():
    X = make_planted_tree(12_000, depth=1, branching=3, n_noise_features=0).X
    Recorded.fits.clear()
    stability = assess(Recorded(3, random_state=0).fit(X), X, n_refits=2).stability
    assert [len(rows) for rows, _ in Recorded.fits] == [12_000, 5000, 5000, 5000, 10_000]
    assert stability.suggested == 3


def test_pruned_trees_keep_their_part(taxonomy):
    stability, small = taxonomy.stability, taxonomy.prune(3)
    tree, left_out = small.tree, small.stability.left_out
    assert small.stability.n_recovered.tolist() == stability.n_recovered[:5].tolist()
    assert small.stability.curve.n_clusters.tolist() == [1, 2, 3]
    assert small.stability.suggested <= 3
    np.testing.assert_array_equal(left_out[1:], stability.left_out[1:5])
    mean = np.average(left_out[tree.leaves], weights=tree.sizes[tree.leaves])
    assert left_out[0] == pytest.approx(mean)
    assert taxonomy.prune(1).stability.left_out.tolist() == [1.0]
    assert taxonomy.prune(1).stability.suggested == 1
    assert taxonomy.prune(6).stability.left_out[0] == stability.left_out[0]


def test_stability_is_saved(taxonomy, tmp_path):
    taxonomy.save(tmp_path / "tree")
    again = Taxonomy.load(tmp_path / "tree")
    assert_equal(again.stability, taxonomy.stability)
    assert again.temperature == taxonomy.temperature


def test_the_suggestion_is_the_last_stable_number(taxonomy):
    stability, shares = taxonomy.stability, np.array([1.0, 0.4, 0.8, 0.6, 0.4, 0.4])
    for reference, suggested in [(0.0, 4), (0.6, 3), (0.9, 1), (np.nan, 4)]:
        curve = stability.curve._replace(stability=shares, reference=np.full(6, reference))
        assert replace(stability, curve=curve).suggested == suggested


def test_auto_finds_planted_clusters():
    X = make_planted_tree(90, depth=1, branching=3, n_noise_features=2).X
    model = Taxarbor("auto", random_state=0).fit(X)
    taxonomy = model.taxonomy_
    assert model.n_clusters == "auto"
    assert taxonomy.tree.n_leaves == 3
    assert taxonomy.stability.suggested == 3
    assert taxonomy.stability.curve.n_clusters[-1] == 9
    assert taxonomy.stability.is_stable.all()
    assert (model.predict(X) == model.labels_).all()


@pytest.mark.parametrize("n_rows", [2, 3, 4, 90])
def test_auto_finds_one_cluster_in_noise_or_in_few_rows(n_rows):
    for draw in ("standard_normal", "random"):
        X = getattr(np.random.default_rng(0), draw)((n_rows, 3))
        with pytest.warns(GrowthWarning, match="no clusters"):
            model = Taxarbor("auto", random_state=0).fit(X)
        assert model.labels_.tolist() == [0] * n_rows
        stability = model.taxonomy_.stability
        assert stability is None if n_rows < 4 else stability.suggested == 1
    with pytest.raises(TypeError, match="n_clusters"):
        Taxarbor("many").fit(X)
