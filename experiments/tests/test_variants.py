import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from experiments.data import load_dataset
from experiments.defaults import GROUPS
from experiments.variants import (
    CONSTANTS,
    CRITERIA,
    RankedSplitter,
    default_of,
    fit_variant,
    override,
)
from taxarbor import Taxarbor, make_planted_tree

VARIANTS = [
    {name: value for name, value in row.settings.items() if name != "sample"}  # of the run
    for group in GROUPS
    for row in group.rows
    if row.method == "variant"
]
TELLING = (
    {"more": 0},
    {"power": 0.5},
    {"cut_of": 3},
    {"rounds": 1},
    {"shrinkage": 1e6},
    {"shrinkage": 0.1, "max_shrinkage": 0.1},
    {"starts": ["ward"]},
    *({"grow_by": criterion} for criterion in CRITERIA[1:]),
    {"ridge": 1.0},
    {"n_init": 1},
    {"balance": 1.0},
    {"coordinates": 2},
)


def grow(*arguments):
    return fit_variant(*arguments).tree


@pytest.fixture(scope="module")
def rows():
    return load_dataset("animals", None).X


@pytest.fixture(autouse=True)
def nothing_stays_changed():
    before = {name: default_of(name) for name in CONSTANTS}
    yield
    assert before == {name: default_of(name) for name in CONSTANTS}


def test_without_settings_it_has_the_clusters_of_the_estimator():
    planted = make_planted_tree(400, random_state=0)
    model = Taxarbor(8, random_state=0).fit(planted.X)
    tree = grow(planted.X, 8, 0, {})
    assert adjusted_rand_score(tree.labels, model.labels_) > 0.99


def test_every_variant_of_the_page_makes_a_tree(rows):
    for one in VARIANTS:
        settings = json.loads(json.dumps(one))  # as a job holds it
        tree = grow(rows, 8, 0, settings)
        assert tree.n_leaves == 8
        assert sorted(tree.order) == list(range(len(rows)))
        assert np.array_equal(tree.labels, grow(rows, 8, 0, settings).labels)


@pytest.mark.parametrize("settings", TELLING, ids=str)
def test_each_setting_changes_something(settings):
    """The tree of some seed; one alone may not tell the difference."""
    rows = np.random.default_rng(0).standard_normal((600, 12), dtype=np.float32)
    is_same = []
    for seed in range(5):
        plain, tree = (grow(rows, 20, seed, one) for one in ({}, settings))
        is_same.append(np.array_equal(tree.labels, plain.labels))
    assert not all(is_same)


def test_leaves_are_ranked_by_the_criterion(rows):
    """The plane stays the same; its gap is what the criterion says."""
    lifted = np.column_stack([rows, np.ones(len(rows), dtype=np.float32)])
    planes = {one: RankedSplitter(one).find(lifted, len(rows), 0) for one in CRITERIA}
    gap = {one: plane.gap for one, plane in planes.items()}
    objective = planes["gap"].info.trace[-1]
    assert gap["size"] == 1.0
    assert gap["objective"] == pytest.approx(1.0 / objective)
    assert gap["scatter"] == pytest.approx(gap["gap"] * np.sqrt(objective))
    assert gap["variance"] == pytest.approx(rows.var(axis=0).sum(), rel=1e-4)
    assert len({plane.weights.tobytes() for plane in planes.values()}) == 1


def test_rows_that_were_not_fitted_go_to_the_best_leaf():
    planted = make_planted_tree(800, random_state=0)
    half = np.arange(0, 800, 2)
    tree = grow(planted.X, 8, 0, {}, half)
    alone = grow(planted.X[half], 8, 0, {})
    assert np.array_equal(tree.labels[half], alone.labels)
    assert adjusted_rand_score(planted.labels[1::2], tree.labels[1::2]) > 0.95


def test_an_exception_leaves_nothing_changed(rows, monkeypatch):
    settings = {"rounds": 3, "power": 0.5, "more": 0}
    before = {name: default_of(name) for name in settings}

    def stop():
        with override(settings):
            assert all(default_of(name) != before[name] for name in settings)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert before == {name: default_of(name) for name in settings}

    def fail(*_):
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patch:
        patch.setattr(RankedSplitter, "find", fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            grow(rows, 4, 0, {"ridge": 1.0})
    assert default_of("ridge") != 1.0


def test_wrong_settings_are_refused(rows):
    for name in ("gamma", "alpha", "n_clusters"):
        with pytest.raises(ValueError, match=f"no setting '{name}'; there are .*'ridge'"):
            grow(rows, 4, 0, {name: 1, "more": 1})
    for starts in ([], ["random"], ["ward", "ward_start"]):
        with pytest.raises(ValueError, match="starts"):
            grow(rows, 4, 0, {"starts": starts})


def test_equal_rows_are_one_leaf():
    assert grow(np.ones((9, 3), dtype=np.float32), 3, 0, {}).n_leaves == 1
    assert RankedSplitter() == RankedSplitter("gap")
