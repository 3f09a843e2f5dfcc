import itertools

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import BisectingKMeans, KMeans
from sklearn.exceptions import ConvergenceWarning

from taxarbor import HMMC
from taxarbor.bench import METHODS
from taxarbor.bench._methods import OTHERS, find_method

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
BASELINES = {"KM", "SC", "MMC", "SL", "AL", "CL", "HKM", "HSC", "HKM-D", "HSC-D"}
OURS = {"HMMC", "HMMC-G", "HMMC-E", "HMMC-1", "HMMC-2"}


def same_partition(one, other):
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


def test_all_methods_of_the_paper_and_two_more():
    assert set(METHODS) == BASELINES | OURS | {"Ward", "BKM"}
    assert {name for name, method in METHODS.items() if method.family == "ours"} == OURS
    assert all(name == method.name for name, method in METHODS.items())


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("MMC", ("alpha",)),
        ("HMMC", ("alpha", "beta")),
        ("HMMC-G", ("alpha",)),
        ("HMMC-E", ("beta",)),
        ("HMMC-1", ("alpha",)),
        ("HMMC-2", ("alpha",)),
    ],
)
def test_a_grid_is_the_papers(name, keys):
    found = [tuple(settings[key] for key in keys) for settings in METHODS[name].grid]
    assert sorted(found) == sorted(itertools.product(STRENGTHS, repeat=len(keys)))
    for settings in METHODS[name].grid:
        rest = {key: value for key, value in settings.items() if key not in keys}
        flat = {"units": "raw", "balance": [0.9, 1.1]}
        greedy = {"refine": False, "n_init": 1, "center": "data"}
        assert rest == (flat if name == "MMC" else {**flat, **greedy})


def test_a_strength_that_is_not_given_has_no_effect(made):
    """As long as a default stood for it, the grid meant the same whatever it was."""
    X, _ = made.blobs(60)
    kinds = {"HMMC-G": "group", "HMMC-E": "exclusive", "HMMC-1": "l1", "HMMC-2": "l2"}
    for name, penalty in kinds.items():
        settings = METHODS[name].grid[2]
        given = {"alpha": 0.003, "beta": 0.003, **settings}
        given["balance"] = tuple(given["balance"])
        expected = HMMC(5, penalty=penalty, random_state=0, **given).fit(X).hierarchy_
        found = METHODS[name].fit(X, 5, 2, 0, settings)
        assert np.array_equal(found.labels, expected.labels)
        for mine, other in zip(found.rules, expected.rules, strict=True):
            assert (mine is None) == (other is None)
            assert mine is None or np.array_equal(mine.weights, other.weights)


def test_other_methods_have_one_setting():
    for method in METHODS.values():
        if method.family != "ours" and method.name != "MMC":
            assert len(method.grid) == 1


@pytest.mark.parametrize("name", METHODS)
def test_every_method_makes_a_tree(name, made):
    X, _ = made.blobs()
    method = METHODS[name]
    for settings in ({}, method.grid[-1]):
        tree = method.fit(X, 4, 2, 0, settings)
        assert tree.n_leaves == 4
        assert sorted(tree.order) == list(range(len(X)))
        again = method.fit(X, 4, 2, 0, settings)
        assert np.array_equal(tree.cut(4), again.cut(4))
    if method.family == "flat":
        assert tree.height == 1
    if not method.is_random:
        other = method.fit(X, 4, 2, 1, settings)
        assert np.array_equal(other.cut(4), again.cut(4))


@pytest.mark.parametrize("name", [name for name, one in METHODS.items() if one.branches])
def test_methods_that_branch_do(name, made):
    X, _ = made.blobs()
    tree = METHODS[name].fit(X, 5, 3, 0, METHODS[name].grid[-1])
    assert {len(tree.children(node)) for node in range(tree.n_nodes)} == {0, 3}


@pytest.mark.parametrize(
    ("name", "how"), [("SL", "single"), ("AL", "average"), ("CL", "complete"), ("Ward", "ward")]
)
def test_bottom_up_is_scipys(name, how, made):
    X, _ = made.blobs(60)
    tree = METHODS[name].fit(X, 7, 2, 0, {})
    expected = fcluster(linkage(X, how), 7, criterion="maxclust")
    assert same_partition(tree.cut(7), expected)


@pytest.mark.parametrize(
    ("name", "make"), [("KM", KMeans(7, n_init=10)), ("BKM", BisectingKMeans(7))]
)
def test_k_means_is_scikit_learns(name, make, made):
    X, _ = made.blobs(60)
    tree = METHODS[name].fit(X, 7, 2, 3, METHODS[name].grid[0])
    expected = make.set_params(random_state=3).fit(X).labels_
    assert same_partition(tree.cut(7), expected)


def test_other_methods_are_found_and_are_no_rows_of_the_table():
    assert set(OTHERS) == {"KM+Ward", "variant"}
    assert not set(OTHERS) & set(METHODS)
    assert find_method("KM+Ward").name == "KM+Ward"
    assert find_method("HMMC") is METHODS["HMMC"]
    with pytest.raises(KeyError):
        find_method("none")


@pytest.mark.parametrize(("n_rows", "n_centres"), [(60, 20), (240, 40)])
def test_centres_then_ward(n_rows, n_centres, made):
    """Ten centres per cluster or a third of the rows, Ward on them, rows with their centre."""
    X, _ = made.blobs(n_rows)
    tree = find_method("KM+Ward").fit(X, 4, 2, 3, {})
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
        tree = find_method("KM+Ward").fit(X, 4, 2, 0, {})
    assert tree.n_leaves == 4
    for first in range(0, len(X), 5):
        assert len(set(tree.labels[first : first + 5])) == 1
