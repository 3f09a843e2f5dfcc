import json

import numpy as np
import pytest

from taxarbor import HMMC
from taxarbor.bench import load_dataset
from taxarbor.bench._ablation import GROUPS
from taxarbor.bench._variants import fit_variant

VARIANTS = [row.settings for group in GROUPS for row in group.rows if row.method == "variant"]


@pytest.fixture(scope="module")
def rows():
    return load_dataset("animals", None).X


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("branching", [2, 3])
def test_without_settings_it_is_the_estimator(rows, seed, branching):
    model = HMMC(9, branching=branching, random_state=seed).fit(rows)
    tree = fit_variant(rows, 9, branching, seed, {})
    assert np.array_equal(tree.labels, model.labels_)
    assert np.array_equal(tree.parents, model.hierarchy_.parents)
    assert np.array_equal(tree.birth, model.hierarchy_.birth)


@pytest.mark.parametrize("parameter", [{"n_init": 1}, {"n_init": 3}, {"balance": 0.9}])
def test_what_the_estimator_has_a_parameter_for(rows, parameter):
    model = HMMC(9, random_state=1, **parameter).fit(rows)
    assert np.array_equal(fit_variant(rows, 9, 2, 1, parameter).labels, model.labels_)


def test_many_rows_and_features():
    """Beyond the sizes at which rows are sampled and directions iterated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5200, 520)).astype(np.float32)
    X[:, :3] += 6.0 * rng.integers(0, 2, size=(5200, 3))
    model = HMMC(4, random_state=2).fit(X)
    assert np.array_equal(fit_variant(X, 4, 2, 2, {}).labels, model.labels_)


@pytest.mark.parametrize("settings", VARIANTS, ids=json.dumps)
def test_every_variant_makes_a_tree(rows, settings):
    settings = json.loads(json.dumps(settings))
    tree = fit_variant(rows, 8, 2, 0, settings)
    assert tree.n_leaves == 8
    assert sorted(tree.order) == list(range(len(rows)))
    assert np.array_equal(tree.labels, fit_variant(rows, 8, 2, 0, settings).labels)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_steps": 0},
        {"shrinkage": 1e6},
        {"starts": ["principal"]},
        {"choose_by": "scatter"},
        {"grow_by": "size"},
        {"balance": 0.9},
        {"has_intercept": False},
        {"ridge": 1.0},
        {"n_coordinates": 2},
    ],
    ids=json.dumps,
)
def test_settings_arrive(rows, settings):
    """Each changes the tree of some seed; one alone may not tell the difference."""
    is_same = []
    for seed in range(5):
        usual, tree = (fit_variant(rows, 20, 2, seed, one) for one in ({}, settings))
        is_same.append(np.array_equal(tree.labels, usual.labels))
    assert not all(is_same)


def test_without_moves_sizes_keep_the_balance(rows):
    tree = fit_variant(rows, 2, 2, 0, {"n_steps": 0, "balance": 0.9})
    assert min(tree.n_rows[1:]) >= int(0.9 * len(rows) / 2)


@pytest.mark.parametrize("name", ["gamma", "alpha", "n_clusters"])
def test_an_unknown_setting_is_refused(rows, name):
    with pytest.raises(ValueError, match=f"no setting '{name}'; those are .*'balance'"):
        fit_variant(rows, 4, 2, 0, {name: 1, "n_init": 1})


@pytest.mark.parametrize("starts", [[], ["random"], ["ward", "ward_start"]])
def test_an_unknown_start_is_refused(rows, starts):
    with pytest.raises(ValueError, match=r"must be some of .*'ward_start'"):
        fit_variant(rows, 4, 2, 0, {"starts": starts})


def test_bounds_are_checked(rows):
    with pytest.raises(ValueError, match="balance must be"):
        fit_variant(rows, 4, 2, 0, {"balance": 3.0})


def test_equal_rows_are_one_leaf():
    assert fit_variant(np.ones((9, 3), dtype=np.float32), 3, 2, 0, {}).n_leaves == 1
