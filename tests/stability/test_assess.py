"""What is planted comes back, noise does not, and both are told."""

import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from sklearn.base import clone

from taxarbor import (
    HMMC,
    GrowthWarning,
    TableWarning,
    Taxarbor,
    make_planted_tree,
)
from taxarbor.exchange import from_labels
from taxarbor.stability import _assess, assess
from taxarbor.taxonomy._stability import Curve


@pytest.fixture(scope="module")
def planted():
    return make_planted_tree(160, depth=2, n_noise_features=2, random_state=1)


@pytest.fixture(scope="module")
def model(planted):
    return Taxarbor(6, random_state=0).fit(planted.X)


@pytest.fixture(scope="module")
def taxonomy(model, planted):
    return assess(model, planted.X, n_refits=6)


def same(trust, other):
    for name in (
        "n_refits",
        "n_recovered",
        "apart",
        "n_rule_recovered",
        "left_out",
        "rows",
        "curve",
    ):
        np.testing.assert_array_equal(getattr(trust, name), getattr(other, name), name)
    for one, two in zip(trust.n_feature_recovered, other.n_feature_recovered, strict=True):
        np.testing.assert_array_equal(one, two)


def test_planted_clusters_come_back(taxonomy, model, planted):
    trust = taxonomy.stability
    assert model.taxonomy_.stability is None
    assert (taxonomy.tree.labels == model.labels_).all()
    whole = [
        node
        for node in range(taxonomy.tree.n_nodes)
        for leaf in range(4)
        if set(taxonomy.tree.rows(node)) == set(np.flatnonzero(planted.labels == leaf))
    ]
    assert len(whole) == 4
    assert trust.n_refits == 6
    assert (trust.n_separated[whole] == 6).all()
    assert trust.is_stable[whole].all()
    assert trust.describe(whole[0]) == "came back in 6 of 6 refits"
    assert trust.suggested == 4
    assert (trust.n_separated <= trust.n_recovered).all()
    assert (trust.n_rule_recovered <= trust.n_recovered).all()
    assert trust.n_rule_recovered[0] > 0  # any of four features tells as much
    assert trust.curve.n_clusters.tolist() == [1, 2, 3, 4, 5, 6]
    assert not trust.curve.reference[1:].any()
    pieces = [leaf for leaf in taxonomy.tree.leaves if leaf not in whole]
    assert not trust.is_stable[pieces].any()
    assert "without a gap" in trust.describe(pieces[0]) or trust.n_recovered[pieces[0]] == 0
    deciding = Taxarbor(6, random_state=0).fit(planted.X)
    assert assess(deciding, planted.X, n_refits=6).stability.suggested == 4
    lost = np.isin(taxonomy.tree.leaves[taxonomy.tree.labels], pieces)
    assert trust.rows[~lost].min() > 0.9 > trust.rows[lost].mean()
    for counts, rule in zip(trust.n_feature_recovered, taxonomy.tree.rules, strict=True):
        assert len(counts) == (0 if rule is None else rule.n_features_used)
    with pytest.raises(ValueError, match="read-only"):
        trust.rows[0] = 1.0


def test_the_number_of_threads_does_not_matter(taxonomy, model, planted):
    same(assess(model, planted.X, n_refits=6, n_jobs=2).stability, taxonomy.stability)


class Recorded(Taxarbor):
    """Remembers every fit, and the rows that it was of."""

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
    taxonomy, trust = model.taxonomy_, assess(model, X, n_refits=4).stability
    w = np.ones(60) if weights is None else weights

    def weigh(rows):
        return w[sorted(rows)].sum()

    nodes = [set(taxonomy.tree.rows(node).tolist()) for node in range(taxonomy.tree.n_nodes)]
    sent, total = np.zeros((2, taxonomy.tree.n_nodes))
    for seen, refit in Recorded.fits[1:5]:
        used = {row for row in range(60) if (seen == X[row]).all(axis=1).any()}
        assert len(used) == len(seen) == 30
        other, labels = refit.taxonomy_, refit.predict(X)
        below = [
            {label for label, leaf in enumerate(other.leaves) if node in other.path(leaf)}
            for node in range(other.n_nodes)
        ]
        others = [{row for row in range(60) if labels[row] in own} for own in below]
        alike = np.array([[weigh(a & b) / weigh(a | b) for b in others] for a in nodes])
        match = [None, *(1 + alike[1:, 1:].argmax(axis=1))]
        pairs = linear_sum_assignment(-alike[taxonomy.tree.leaves][:, other.leaves])
        match = dict(enumerate(match)) | dict(
            zip(
                taxonomy.tree.leaves[pairs[0]].tolist(),
                other.leaves[pairs[1]].tolist(),
                strict=True,
            )
        )
        for node in range(1, taxonomy.tree.n_nodes):
            left_out = nodes[node] - used
            total[node] += weigh(left_out)
            sent[node] += weigh(left_out & others[match[node]])
    np.testing.assert_allclose(trust.left_out[1:], sent[1:] / total[1:])
    of_leaves = sent[taxonomy.tree.leaves].sum() / total[taxonomy.tree.leaves].sum()
    assert trust.left_out[0] == pytest.approx(of_leaves)


def test_rows_left_out_of_clusters_and_of_noise():
    planted = make_planted_tree(240, depth=2, n_noise_features=2, random_state=1).X
    clear = assess(Taxarbor(4, random_state=0).fit(planted), planted, n_refits=5).stability
    assert clear.left_out.min() > 0.95
    assert (
        "of the rows left out go where the tree fitted with them" in clear.describe_left_out()
    )
    # Of noise each refit has clusters of its own: about half of the rows stay together.
    noise = np.random.default_rng(0).normal(size=(240, 6))
    unclear = assess(Taxarbor(8, random_state=0).fit(noise), noise, n_refits=5).stability
    assert unclear.left_out[0] < 0.65
    one = assess(Taxarbor(1).fit(noise), noise, n_refits=2).stability
    assert one.left_out.tolist() == [1.0]


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
    trust = assess(model, csr_matrix(planted.X), n_refits=3).stability
    assert trust.n_refits == 3
    assert trust.suggested == 4


def test_what_cannot_be_assessed_is_told(taxonomy, model, planted):
    for given, X, error, told in [
        (taxonomy, planted.X, TypeError, "a tree alone cannot be fitted again"),
        (Taxarbor(), planted.X, ValueError, "not fitted yet"),
        (model, planted.X[:-1], ValueError, "159 rows, and the model was fitted to 160"),
        (model, planted.X[:, 1:], ValueError, "features"),
        (Taxarbor(1).fit(planted.X[:3]), planted.X[:3], ValueError, "too few to be halved"),
    ]:
        with pytest.raises(error, match=told):
            assess(given, X)
    with pytest.raises(ValueError, match="n_refits must be at least 1"):
        assess(model, planted.X, n_refits=0)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_propagates(n_jobs, model, planted, monkeypatch):
    calls = []

    def interrupted(self, X, y=None):
        calls.append(X)
        if len(calls) > 1:
            time.sleep(0.2)
        raise KeyboardInterrupt

    monkeypatch.setattr(Taxarbor, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        assess(model, planted.X, n_refits=6, n_jobs=n_jobs)
    assert len(calls) <= n_jobs + 1  # those that wait are not begun


def test_a_mixed_table_of_many_features():
    # Rules of 64 and more features are found in groups by column: those of the reference
    # rows, which are coordinates, have no columns.
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    table = pd.DataFrame(
        rng.normal(size=(120, 60)) + 3.0 * np.eye(3)[labels][:, [0, 1, 2] * 20]
    )
    table.columns = [f"x{n}" for n in range(60)]
    table["kind"] = np.array(list("abc"))[labels]
    table["other"] = rng.choice(list("uvwxyz"), 120)
    with pytest.warns(TableWarning):
        model = Taxarbor(3, random_state=0).fit(table)
    assert model.taxonomy_.n_features >= 64
    assert assess(model, table, n_refits=4).stability.suggested == 3


def test_large_data_is_refitted_to_some_rows(planted, model, monkeypatch):
    monkeypatch.setattr(_assess, "MAX_ROWS", 120)
    trust = assess(model, planted.X, n_refits=3).stability
    assert trust.rows.shape == (160,)
    assert trust.suggested == 4


def test_pruned_trees_keep_their_part(taxonomy):
    small = taxonomy.prune(3)
    assert small.stability.n_recovered.tolist() == taxonomy.stability.n_recovered[:5].tolist()
    assert small.stability.curve.n_clusters.tolist() == [1, 2, 3]
    assert small.stability.suggested <= 3
    assert not small.stability.n_rule_recovered[small.leaves].any()
    left_out = small.stability.left_out
    np.testing.assert_array_equal(left_out[1:], taxonomy.stability.left_out[1:5])
    sizes = small.sizes[small.leaves]
    assert left_out[0] == pytest.approx(np.average(left_out[small.leaves], weights=sizes))
    assert taxonomy.prune(1).stability.left_out.tolist() == [1.0]
    assert taxonomy.prune(6).stability.left_out[0] == taxonomy.stability.left_out[0]
    assert taxonomy.prune(1).stability.suggested == 1
    assert (
        taxonomy.rename_features([f"f{j}" for j in range(10)]).stability is taxonomy.stability
    )


def test_trust_is_saved(taxonomy, tmp_path):
    taxonomy.save(tmp_path / "tree")
    again = type(taxonomy).load(tmp_path / "tree")
    same(again.stability, taxonomy.stability)
    assert again.made_by == taxonomy.made_by
    assert again.made_by["estimator"] == "Taxarbor"
    for change in (
        {"n_refits": 0},
        {"rows": taxonomy.stability.rows[1:]},
        {"n_recovered": taxonomy.stability.n_recovered[1:]},
        {"apart": taxonomy.stability.n_separated + 9},
        {"n_feature_recovered": ()},
        {"left_out": taxonomy.stability.left_out[1:]},
        {"left_out": taxonomy.stability.left_out + 1.0},
        {"left_out": np.full(taxonomy.tree.n_nodes, np.nan)},
    ):
        with pytest.raises(ValueError, match="invalid taxonomy: "):
            replace(taxonomy, stability=replace(taxonomy.stability, **change))


def test_the_suggestion_is_the_last_stable_number():
    numbers, high = np.arange(1, 6), np.array([1.0, 0.4, 0.8, 0.6, 0.4])
    for reference, suggested in [(0.0, 4), (0.6, 3), (0.9, 1), (np.nan, 4)]:
        curve = Curve(numbers, high, np.full(5, reference))
        assert curve.suggested == suggested
    assert curve.verdict() == "the finest stable cut has 4 clusters"
    ended = Curve(numbers[:4], high[:4], np.zeros(4))
    assert ended.verdict().endswith("there may be more, as the tree ends there")


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


def test_auto_calls_noise_noise():
    for draw in ("standard_normal", "random"):
        X = getattr(np.random.default_rng(0), draw)((90, 3))
        with pytest.warns(GrowthWarning, match="no clusters found: .* too few rows"):
            model = Taxarbor("auto", random_state=0).fit(X)
        assert model.taxonomy_.tree.n_leaves == 1
        assert model.taxonomy_.stability.suggested == 1


def test_other_words_than_auto_are_refused():
    with pytest.raises(TypeError, match="n_clusters must be an integer"):
        Taxarbor("many").fit(np.eye(4))
    assert from_labels([0, 1]).stability is None
