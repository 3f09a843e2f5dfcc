import itertools
import json
import warnings
from unittest import mock

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import BisectingKMeans, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from experiments.data import load_dataset
from experiments.methods import (
    METHODS,
    OTHERS,
    Method,
    draw_sample,
    find_method,
    fit,
    place,
    run_job,
    summarise_tree,
    write_settings,
)
from taxarbor import HMMC, Taxarbor, Taxonomy
from taxarbor.estimators import _taxarbor
from taxarbor.metrics import tree_scores
from taxarbor.tree import LinearRule, TreeBuilder

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
BASELINES = {"KM", "SC", "MMC", "SL", "AL", "CL", "HKM", "HSC", "HKM-D", "HSC-D"}
KINDS = {
    "HMMC": "group+exclusive",
    "HMMC-G": "group",
    "HMMC-E": "exclusive",
    "HMMC-1": "l1",
    "HMMC-2": "l2",
}
GRIDS = {"MMC": ("alpha",), "HMMC": ("alpha", "beta"), "HMMC-E": ("beta",)}


def same_partition(one, other):
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


def grow(made, name, X, n_clusters, settings, **changes):
    job = made.job(name, n_clusters=n_clusters, **changes)
    return find_method(name).fit(X, job, settings).tree


def test_all_methods_of_the_paper_and_three_more():
    assert set(METHODS) == BASELINES | set(KINDS) | {"Ward", "BKM", "Taxarbor"}
    ours = {name for name, method in METHODS.items() if method.family == "ours"}
    assert ours == {*KINDS, "Taxarbor"}
    assert all(name == method.name for name, method in METHODS.items())
    assert {name for name, one in METHODS.items() if not one.has_default} == set(KINDS)
    assert METHODS["Taxarbor"].grid == ()
    assert set(OTHERS) == {"KM+Ward", "variant"}
    assert not set(OTHERS) & set(METHODS)
    assert find_method("HMMC") is METHODS["HMMC"]
    with pytest.raises(KeyError):
        find_method("none")


def test_a_grid_is_the_papers():
    for name in ("MMC", *KINDS):
        keys = GRIDS.get(name, ("alpha",))
        grid = [tuple(settings[key] for key in keys) for settings in METHODS[name].grid]
        assert sorted(grid) == sorted(itertools.product(STRENGTHS, repeat=len(keys)))
        for settings in METHODS[name].grid:
            rest = {key: value for key, value in settings.items() if key not in keys}
            flat = {"units": "raw", "balance": [0.9, 1.1]}
            one = {"n_init": 1, "center": "data"}
            assert rest == (flat if name == "MMC" else {**flat, **one})
    for name, method in METHODS.items():
        assert name in ("MMC", "Taxarbor", *KINDS) or len(method.grid) == 1


def test_ours_are_the_estimators(made):
    """A strength that a variant is not given has no effect."""
    X, _ = made.blobs(60)
    for name, penalty in KINDS.items():
        settings = METHODS[name].grid[2]
        given = {"alpha": 0.003, "beta": 0.003, **settings}
        expected = HMMC(5, penalty=penalty, random_state=0, **given).fit(X).taxonomy_.tree
        tree = grow(made, name, X, 5, settings)
        assert np.array_equal(tree.labels, expected.labels)
        for rule, other in zip(tree.rules, expected.rules, strict=True):
            assert (rule is None) == (other is None)
            assert rule is None or np.array_equal(rule.weights, other.weights)
    expected = Taxarbor(5, random_state=2).fit(X)
    assert np.array_equal(grow(made, "Taxarbor", X, 5, {}, seed=2).labels, expected.labels_)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_makes_a_tree(name, made):
    X, _ = made.blobs()
    method = METHODS[name]
    for settings in [{}] * method.has_default + [*method.grid[-1:]]:
        tree = grow(made, name, X, 4, settings)
        assert tree.n_leaves == 4
        assert sorted(tree.order) == list(range(len(X)))
        again = grow(made, name, X, 4, settings)
        assert np.array_equal(tree.cut(4), again.cut(4))
    if method.family == "flat":
        assert tree.height == 1
    if not method.is_random:
        assert np.array_equal(grow(made, name, X, 4, {}, seed=1).cut(4), again.cut(4))
    if method.branches:
        tree = grow(made, name, X, 5, settings, branching=3)
        widths = {len(tree.children(node)) for node in range(tree.n_nodes)}
        assert widths in ({0, 3}, {0, 2, 3}) if name == "Taxarbor" else widths == {0, 3}


def test_bottom_up_is_scipys_and_k_means_scikit_learns(made):
    X, _ = made.blobs(60)
    linkages = {"SL": "single", "AL": "average", "CL": "complete", "Ward": "ward"}
    for name, method in linkages.items():
        expected = fcluster(linkage(X, method), 7, criterion="maxclust")
        assert same_partition(grow(made, name, X, 7, {}).cut(7), expected)
    for name, model in (("KM", KMeans(7, n_init=10)), ("BKM", BisectingKMeans(7))):
        tree = grow(made, name, X, 7, METHODS[name].grid[0], seed=3)
        expected = model.set_params(random_state=3).fit(X).labels_
        assert same_partition(tree.cut(7), expected)


def test_centres_then_ward(made):
    """Ten centres per cluster or a third of the rows, Ward on them, rows with their centre."""
    for n_rows, n_centres in ((60, 20), (240, 40)):
        X, _ = made.blobs(n_rows)
        tree = grow(made, "KM+Ward", X, 4, {}, seed=3)
        model = KMeans(n_centres, n_init=1, random_state=3).fit(X)
        merged = linkage(model.cluster_centers_, "ward")
        for size in (2, 3, 4):
            expected = fcluster(merged, size, criterion="maxclust")[model.labels_]
            assert same_partition(tree.cut(size), expected)
        assert tree.n_leaves == 4
        for node in range(tree.n_nodes):
            below = [tree.rows(child) for child in tree.children(node)]
            assert not below or sorted(np.concatenate(below)) == sorted(tree.rows(node))


def test_centres_without_rows_are_left_out(made):
    X = np.repeat(made.blobs(8)[0], 5, axis=0)  # 13 centres would be wanted, of 8 points
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        tree = grow(made, "KM+Ward", X, 4, {})
    assert tree.n_leaves == 4
    for first in range(0, len(X), 5):
        assert len(set(tree.labels[first : first + 5])) == 1


def test_equal_settings_are_equal_text():
    one = write_settings({"b": 1.0, "a": [0.9, 1.1]})
    assert one == write_settings({"a": [0.9, 1.1], "b": 1.0})
    assert write_settings({}) == "{}"


def test_a_job_is_fitted_and_measured(made):
    data = load_dataset("animals", None)
    settings = {"alpha": 0.5, "beta": 0.1}
    job = made.job(settings=json.dumps(settings), n_clusters=6)
    outcome = run_job(job, None)
    assert outcome.status == "done"
    assert 0.0 < outcome.seconds < 60.0
    assert outcome.peak_mb >= 0.0
    taxonomy = fit(job, data)
    tree = taxonomy.tree
    expected = HMMC(6, random_state=0, **settings).fit(data.X)
    assert np.array_equal(tree.labels, expected.labels_)
    weights = np.concatenate([rule.weights.ravel() for rule in tree.rules if rule is not None])
    assert outcome.measures["zero_weights"] == pytest.approx(np.mean(weights == 0.0))
    assert 0.0 < outcome.measures["zero_weights"] < 1.0
    scores = tree_scores(taxonomy, data.y, data.truth)
    assert scores.items() <= outcome.measures.items()
    assert outcome.measures["height"] == tree.height
    assert outcome.measures["n_leaves"] == 6.0
    assert run_job(job, None).measures == outcome.measures


def test_what_goes_wrong_is_an_outcome_but_a_bug_is_not(tmp_path, made, monkeypatch):
    made.data(tmp_path, "some")
    outcome = run_job(made.job("KM", dataset="some", n_clusters=25), tmp_path)
    assert outcome.status.startswith("failed: ")
    assert "25" in outcome.status
    assert not outcome.measures

    def fail(*_):
        raise TypeError("a bug")

    def warn(X, *rest):
        warnings.warn("look", UserWarning, stacklevel=1)
        return METHODS["BKM"].fit(X, *rest)

    monkeypatch.setitem(METHODS, "bad", Method("bad", "ours", fail))
    monkeypatch.setitem(METHODS, "loud", Method("loud", "ours", warn))
    with pytest.raises(TypeError, match="a bug"):
        run_job(made.job("bad"), None)
    assert run_job(made.job("loud"), None).status == "done"


def test_how_a_tree_reads(made):
    data = load_dataset("animals", None)
    taxonomy = fit(made.job("Taxarbor", n_clusters=6), data)
    measures, tree = summarise_tree(taxonomy), taxonomy.tree
    inner = [node for node in range(tree.n_nodes) if tree.rules[node] is not None]
    used = {node: set(np.flatnonzero(tree.rules[node].weights.any(axis=0))) for node in inner}
    sizes = [len(used[node]) for node in inner]
    assert measures["median_features"] == np.median(sizes)
    assert measures["most_features"] == max(sizes)
    shares = [len(used[n] & used[tree.parent(n)]) / len(used[n]) for n in inner[1:]]
    assert measures["parent_overlap"] == pytest.approx(np.mean(shares))
    assert measures["n_rules"] == len(inner)
    assert measures["short_rules"] == sum(size <= 2 for size in sizes)
    paths = [[node for node in tree.path(leaf) if node in used] for leaf in tree.leaves]
    met = [sum(len(used[node]) for node in path) for path in paths]
    assert measures["path_features"] == pytest.approx(np.mean(met))


def test_inner_nodes_without_a_rule_add_no_features():
    """A rule above them chooses among their leaves."""
    builder = TreeBuilder(4)
    builder.add_split(0, [0, 0, 1, 1])
    builder.add_split(1, [0, 1])
    builder.set_rule(0, LinearRule.nearest(np.eye(3)))
    measures = summarise_tree(Taxonomy(builder.freeze()))
    assert measures["n_rules"] == 1.0
    assert measures["path_features"] == measures["mean_features"] == 3.0
    assert "parent_overlap" not in measures


def test_what_is_not_known_of_rules_is_no_measure(made):
    data = load_dataset("animals", None)
    greedy = summarise_tree(fit(made.job(), data))
    assert greedy["most_features"] >= greedy["median_features"] >= 1.0
    without = summarise_tree(fit(made.job("AL"), data))
    assert "median_features" not in without
    assert without["zero_weights"] == 0.0
    assert "parent_overlap" not in summarise_tree(fit(made.job(n_clusters=2), data))


@pytest.mark.parametrize("name", ["Taxarbor", "Ward", "BKM", "KM", "HMMC", "variant"])
def test_rows_beyond_the_sample_are_placed_as_new_ones(made, name):
    data = load_dataset("animals", None)
    job = made.job(name, '{"sample": "half"}', n_clusters=6)
    rows = draw_sample(job, len(data.X))
    assert len(rows) == len(data.X) // 2
    tree, outcome = place(fit(job, data), job, data).tree, run_job(job, None)
    assert tree.n_leaves == 6
    alone = find_method(name).fit(data.X[rows], job, {})
    assert np.array_equal(tree.labels[rows], alone.tree.labels)
    new = np.setdiff1d(np.arange(len(data.X)), rows)
    if name in ("BKM", "KM"):  # by their own predict
        model = (BisectingKMeans if name == "BKM" else KMeans)(6, random_state=0)
        theirs = model.fit(data.X[rows]).predict(data.X)
        assert same_partition(tree.labels, theirs)
    if name in ("Taxarbor", "BKM", "HMMC"):
        assert np.array_equal(tree.labels[new], alone.predict(data.X[new]))
        assert outcome.measures["path_features"] >= outcome.measures["most_features"]
    is_new = np.isin(np.arange(len(data.X)), rows, invert=True)
    for prefix, kept in (("", ~is_new), ("new_", is_new)):
        expected = adjusted_rand_score(data.y[kept], tree.labels[kept])
        assert outcome.measures[f"{prefix}adjusted_rand"] == pytest.approx(expected)
        assert -1.0 < outcome.measures[f"{prefix}adjusted_shortest_path"] < 1.0


def test_a_sample_has_rows_for_each_cluster(made):
    data = load_dataset("animals", None)
    job = made.job("Taxarbor", '{"sample": 10}', n_clusters=6)
    assert len(draw_sample(job, len(data.X))) == 60
    model = Taxarbor(6, random_state=0).fit(data.X[draw_sample(job, len(data.X))])
    labels = place(fit(job, data), job, data).tree.labels
    assert np.array_equal(labels, model.predict(data.X))
    with mock.patch.multiple(_taxarbor, SAMPLE_ROWS=0, ROWS_PER_CLUSTER=10):
        assert np.array_equal(Taxarbor(6, random_state=0).fit(data.X).labels_, labels)
    half = job._replace(settings='{"sample": "half"}')
    many = job._replace(settings='{"sample": 1000}')
    rows = draw_sample(half, len(data.X))
    assert np.isin(draw_sample(job, len(data.X)), rows).all()  # the same rows are new
    assert np.array_equal(draw_sample(many, len(data.X)), rows)
    assert run_job(many, None).measures == run_job(half, None).measures
    is_new = ~np.isin(np.arange(len(data.X)), rows)
    expected = adjusted_rand_score(data.y[is_new], labels[is_new])
    assert run_job(job, None).measures["new_adjusted_rand"] == pytest.approx(expected)
