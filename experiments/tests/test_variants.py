import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from experiments.data import load_dataset
from experiments.defaults import GROUPS
from experiments.variants import CONSTANTS, WORTHS, RankedSplitter, changed, fit_variant, usual
from taxarbor import Taxarbor, make_planted_tree
from taxarbor._run import Run
from taxarbor.refine import Coordinates
from taxarbor.refine._field import Field

VARIANTS = [row.settings for group in GROUPS for row in group.rows if row.method == "variant"]
TELLING = (
    {"more": 0},
    {"power": 0.5},
    {"cut_of": 3},
    {"rounds": 1},
    {"shrinkage": 1e6},
    {"starts": ["ward"]},
    *({"grow_by": worth} for worth in WORTHS[1:]),
    {"ridge": 1.0},
    {"n_init": 4},
    {"balance": None},
    {"coordinates": 2},
)


@pytest.fixture(scope="module")
def rows():
    return load_dataset("animals", None).X


@pytest.fixture(autouse=True)
def nothing_stays_changed():
    before = {name: usual(name) for name in CONSTANTS}
    yield
    assert before == {name: usual(name) for name in CONSTANTS}


def test_without_settings_it_has_the_clusters_of_the_estimator():
    planted = make_planted_tree(400, random_state=0)
    model = Taxarbor(8, random_state=0).fit(planted.X)
    tree = fit_variant(planted.X, 8, 2, 0, {})
    assert adjusted_rand_score(tree.labels, model.labels_) > 0.99


def test_every_variant_of_the_page_makes_a_tree(rows):
    for one in VARIANTS:
        settings = json.loads(json.dumps(one))  # as a job holds it
        tree = fit_variant(rows, 8, 2, 0, settings)
        assert tree.n_leaves == 8
        assert sorted(tree.order) == list(range(len(rows)))
        assert np.array_equal(tree.labels, fit_variant(rows, 8, 2, 0, settings).labels)


@pytest.mark.parametrize("settings", TELLING, ids=json.dumps)
def test_each_setting_changes_something(rows, settings):
    """The tree of some seed; one alone may not tell the difference."""
    is_same = []
    for seed in range(5):
        plain, tree = (fit_variant(rows, 20, 2, seed, one) for one in ({}, settings))
        is_same.append(np.array_equal(tree.labels, plain.labels))
    assert not all(is_same)


def test_leaves_are_ranked_as_told(rows):
    """Scores are those of the gap, but for the share that they are made of."""
    values = np.concatenate(Coordinates.in_memory(rows, 0).values)
    splits = {}
    for worth in WORTHS:
        field = Field(values, len(values), RankedSplitter(worth), Run())
        (splits[worth],) = field.seek([()])
    score = {worth: split.score / len(rows) for worth, split in splits.items()}
    objective = splits["gap"].objective
    assert score["size"] == 1.0
    assert score["objective"] == pytest.approx(1.0 / objective)
    assert score["scatter"] == pytest.approx(score["gap"] * np.sqrt(objective))
    assert score["scatter"] < score["variance"]
    assert len({split.plane.weights.tobytes() for split in splits.values()}) == 1
    assert len({(split.sides, split.sizes) for split in splits.values()}) == 1


def test_an_exception_leaves_nothing_changed(rows, monkeypatch):
    settings = {"rounds": 3, "power": 0.5, "starts": ["ward"]}
    before = {name: usual(name) for name in settings}

    def stop():
        with changed(settings):
            assert all(usual(name) != before[name] for name in settings)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert before == {name: usual(name) for name in settings}

    def fail(*_):
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patch:
        patch.setattr(RankedSplitter, "find", fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            fit_variant(rows, 4, 2, 0, {"ridge": 1.0})
    assert usual("ridge") != 1.0


def test_wrong_settings_are_refused(rows):
    for name in ("gamma", "alpha", "n_clusters"):
        with pytest.raises(ValueError, match=f"no setting '{name}'; there are .*'ridge'"):
            fit_variant(rows, 4, 2, 0, {name: 1, "more": 1})
    for starts in ([], ["random"], ["ward", "ward_start"]):
        with pytest.raises(ValueError, match=r"must be some of .*'ward'"):
            fit_variant(rows, 4, 2, 0, {"starts": starts})


def test_equal_rows_are_one_leaf():
    assert fit_variant(np.ones((9, 3), dtype=np.float32), 3, 2, 0, {}).n_leaves == 1
    assert RankedSplitter() == RankedSplitter("gap")
