"""For whom the rules hold, against a walk down the path of each row."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from taxarbor import HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral, Taxarbor, load_animals
from taxarbor._errors import FileFormatError
from taxarbor._run import Run
from taxarbor.exchange import from_json, from_labels, to_json
from taxarbor.hierarchy import Follows, Hierarchy, HierarchyBuilder, LinearRule
from taxarbor.hierarchy._file import _write_archive, pack, unpack
from taxarbor.hierarchy._follows import measured, measured_rows
from taxarbor.hierarchy._words import describe_doubt
from taxarbor.rows import as_rows
from taxarbor.rows._base import best_scores
from taxarbor.sweep import LocalEngine

MODELS = [
    Taxarbor(9, random_state=0),
    Taxarbor(9, rules="describe", random_state=0),
    Taxarbor(9, rules="describe", branching=3, max_features=1, random_state=0),
    HMMC(6, balance=(0.9, 1.1), random_state=0),
    MMC(4, random_state=0),
    HierarchicalKMeans(6, random_state=0),
    HierarchicalSpectral(6, random_state=0),
]


def holds(tree, X):
    """Return, row by row and node by node, whether the rule holds; True off the path."""
    found = np.ones((len(X), tree.n_nodes), dtype=bool)
    for node, rule in enumerate(tree.rules):
        if rule is not None:
            sent = ((X - rule.center) @ rule.weights.T + rule.offsets).argmax(axis=1)
            for child, target in enumerate(tree.children(node)):
                rows = tree.rows(target)
                found[rows, node] = sent[rows] == child
    return found


def test_follows_is_what_a_walk_down_each_path_finds():
    X = np.random.default_rng(0).normal(size=(300, 8))
    X[:, 0] = X[:, 0].round(1)
    n_broken = 0
    for model in MODELS:
        tree = model.fit(X).hierarchy_
        follows, kept = tree.follows, holds(tree, X)
        n_broken += (~follows.rows).sum()
        np.testing.assert_array_equal(follows.rows, kept.all(axis=1))
        first = np.where(kept.all(axis=1), -1, kept.argmin(axis=1))
        np.testing.assert_array_equal(follows.broken, first)
        for node in range(tree.n_nodes):
            above, rows = list(tree.path(node)[:-1]), tree.rows(node)
            assert follows.share[node] == kept[np.ix_(rows, above)].all(axis=1).mean()
            each = kept[np.ix_(rows, above)].mean(axis=0)
            least = each.min(initial=1.0)
            assert follows.worst_share[node] == least
            assert follows.worst[node] == (above[each.argmin()] if least < 1.0 else -1)
            if not tree.is_leaf(node):
                assert tree.fidelity[node] == pytest.approx(kept[rows, node].mean())
        np.testing.assert_array_equal(follows.is_doubtful, follows.share <= 0.8)
        whole = follows.share[tree.leaves] @ tree.sizes[tree.leaves] / tree.n_rows
        assert whole == pytest.approx(follows.rows.mean())
    assert n_broken > 100  # some of the models do have exceptions


def test_where_rules_decide_they_hold_for_every_row():
    X = np.random.default_rng(1).normal(size=(200, 5))
    tree = HierarchicalKMeans(8, random_state=0).fit(X).hierarchy_
    assert tree.follows.rows.all()
    assert set(tree.follows.share) == set(tree.follows.worst_share) == {1.0}
    assert set(tree.follows.worst) == {-1}


def test_nothing_depends_on_threads_or_kind_of_rows(same):
    X = np.random.default_rng(2).integers(0, 3, size=(3000, 9)).astype("float32")
    one, two = (Taxarbor(12, random_state=0, n_jobs=n).fit(X).hierarchy_ for n in (1, 2))
    same(one, two)
    again = measured_rows(dataclasses.replace(one, follows=None), as_rows(sparse.csr_array(X)))
    for name in ("broken", "share", "worst", "worst_share", "gap"):
        np.testing.assert_array_equal(getattr(again.follows, name), getattr(one.follows, name))


def in_blocks(values, sizes):
    """Return an array or a matrix in parts of these sizes."""
    stops = np.cumsum(sizes)
    return [values[stop - size : stop] for size, stop in zip(sizes, stops, strict=True)]


def same_findings(one, other):
    np.testing.assert_array_equal(one.two_values, other.two_values)
    np.testing.assert_array_equal(one.fidelity, other.fidelity)
    for name in ("share", "worst", "worst_share", "gap"):
        np.testing.assert_array_equal(getattr(one.follows, name), getattr(other.follows, name))


CUTS = [[300], [1, 299], [100, 150, 50], [7] * 42 + [6]]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("holds", [False, True])
def test_nothing_depends_on_how_rows_lie_in_blocks(kind, holds):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    X[:, 0] = X[:, 0].round(1)
    X[:, 1], X[:, 2], X[:, 3] = 1.0, rng.integers(0, 2, 300), np.arange(300) > 150
    X[:, 4] = np.where(np.arange(300) < 299, 0.0, rng.integers(1, 3))
    rules = "decide" if holds else "describe"
    for branching in (2, 3):
        model = Taxarbor(9, rules=rules, max_features=1, branching=branching, random_state=0)
        tree = model.fit(X).hierarchy_
        labels = tree.labels
        whole = measured_rows(dataclasses.replace(tree, follows=None), as_rows(kind(X)))
        counts = dataclasses.replace(tree, order=None, follows=None)
        same_findings(whole, tree)
        assert not np.isnan(whole.follows.gap).all()
        for sizes in CUTS:
            told = in_blocks(kind(X), sizes), in_blocks(labels, sizes), LocalEngine(Run())
            for kept in (tree, counts):
                found = measured(kept, *told, holds=holds)
                same_findings(found, whole)
                assert (whole.follows.broken < 0).all() == holds
                if kept is tree:
                    assert (found.follows.broken == whole.follows.broken).all()
                else:
                    assert found.follows.broken is None


def test_rows_that_take_no_part_have_none_in_shares_but_in_thresholds():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4)).round(1)
    X[:, 3] = rng.integers(0, 2, 300)
    tree = Taxarbor(7, rules="describe", max_features=1, random_state=0).fit(X).hierarchy_
    labels, counts = tree.labels.copy(), rng.integers(0, 3, 300)
    labels[:3] = -1
    X[counts == 0, 3] = 7.0
    repeated = np.repeat(np.arange(300), counts)
    for sizes in CUTS:
        told = in_blocks(X, sizes), in_blocks(labels, sizes), LocalEngine(Run())
        own = in_blocks(counts.astype(np.int32), sizes)
        found = measured(tree, *told, counts=own)
        again = measured(
            dataclasses.replace(tree, order=None, follows=None),
            [X[repeated]],
            [labels[repeated]],
            told[2],
        )
        every = measured(tree, *told)
        for name in ("share", "worst", "worst_share"):
            np.testing.assert_array_equal(
                getattr(found.follows, name), getattr(again.follows, name)
            )
        np.testing.assert_array_equal(found.fidelity, again.fidelity)
        np.testing.assert_array_equal(found.two_values, again.two_values)
        assert found.two_values[3].tolist() == [0.0, 1.0]
        np.testing.assert_array_equal(found.follows.gap, every.follows.gap)
        np.testing.assert_array_equal(found.follows.broken, every.follows.broken)
        assert (found.follows.broken[:3] == -1).all()
        assert (found.follows.share < 1.0).any()


@given(data=st.data())
def test_pruned_trees_are_as_if_measured_anew(ruled_trees, same, data):
    tree = data.draw(ruled_trees)
    X = np.random.default_rng(0).integers(-2, 3, size=(tree.n_rows, tree.n_features or 1))
    rows = as_rows(X.astype(tree.rules[0].dtype if tree.rules[0] else "float64"))
    tree = measured_rows(tree, rows)
    depth = data.draw(st.integers(0, tree.height))
    pruned = tree.prune(depth=depth)
    same(pruned, measured_rows(pruned, rows))


def test_without_rules_nothing_is_known():
    tree = from_labels([0, 1, 1])
    assert tree.follows is tree.two_values is tree.yes_no is None
    tree = measured_rows(tree, as_rows(np.eye(3)))
    assert tree.follows is None
    assert tree.yes_no.all()
    alone = Taxarbor(1, random_state=0).fit(np.eye(5)).hierarchy_
    assert alone.follows.rows.all()
    assert alone.follows.share.tolist() == [1.0]


def test_files_pickles_and_json_keep_it(doubted, same, tmp_path):
    same(doubted, from_json(to_json(doubted)))
    same(doubted, pickle.loads(pickle.dumps(doubted)))
    doubted.save(tmp_path / "tree")
    same(doubted, Hierarchy.load(tmp_path / "tree"))
    copied = pickle.loads(pickle.dumps(doubted.follows))
    assert not copied.share.flags.writeable
    assert repr(copied) == "Follows(rows=70.0%, n_doubtful=4)"


def test_files_of_version_1_are_read(doubted, same, tmp_path):
    old = dataclasses.replace(doubted, follows=None, two_values=None)
    arrays = pack(old)
    meta = json.loads(str(arrays["meta"])) | {"version": 1}
    arrays["meta"] = np.array(json.dumps(meta))
    with (tmp_path / "tree").open("wb") as file:
        _write_archive(file, arrays)
    same(old, Hierarchy.load(tmp_path / "tree"))
    document = json.loads(to_json(old)) | {"version": 1}
    del document["follows"], document["two_values"]
    same(old, from_json(json.dumps(document)))
    broken = pack(doubted)
    del broken["follows_gap"]
    with pytest.raises(FileFormatError, match="follows_gap is missing"):
        unpack(broken)


def test_doubtful_nodes_are_marked(doubted):
    told = [describe_doubt(doubted, node) for node in range(6)]
    assert [text[15:17] for text in told] == ["", "67", "80", "", "50", "67"]
    text = doubted.to_text()
    assert "node 4: 2 rows, a at most 2 (words hold for 50 % of rows) [c1]" in text
    assert "node 3: 2 rows, lower b, lower a [c3]" in text
    assert doubted._repr_html_().count('class="doubt"') == 4
    assert text.count("words hold") == 4


def test_what_is_no_measure_of_this_tree_is_refused(doubted, refused):
    f = doubted.follows
    cases = [
        ({"broken": [-1]}, "broken has shape"),
        ({"share": [1.0]}, "share has shape"),
        ({"gap": np.zeros(6)}, "gap has shape"),
        ({"worst": [-1, 0, 0, -1, 2, 6]}, "nodes that have rules"),
        ({"worst": [-1, 0, 0, -1, 2, 1]}, "nodes that have rules"),
        ({"broken": [-2] * 10}, "nodes that have rules"),
        ({"share": [1.5] * 6}, "from 0 to 1"),
        ({"worst_share": [np.nan] * 6}, "from 0 to 1"),
    ]
    known = {name: getattr(f, name) for name in ("broken", "share", "worst", "worst_share")}
    known["gap"] = f.gap

    def replace(change):
        dataclasses.replace(doubted, follows=Follows(**known | change))

    refused(replace, cases)
    for values in ([[0.0, 1.0]], [[0.0, 1.0, 2.0]] * 2, 1.0):
        refused(
            lambda values: dataclasses.replace(doubted, two_values=values),
            [(values, "two_values must have")],
        )
    for values in ([[1.0, 0.0]] * 2, [[0.0, np.inf]] * 2, [[0.0, np.nan]] * 2):
        with pytest.raises(ValueError, match="finite and ascend"):
            dataclasses.replace(doubted, two_values=values)


def test_thresholds_are_true_for_every_row_in_the_units_of_the_data():
    iris = load_iris().data
    rng = np.random.default_rng(3)
    tables = [
        load_animals().X,
        iris,
        iris * [1e6, 1e-4, 1.0, 40.0] + [1e7, 0.0, 1e3, -60.0],
        rng.normal(size=(400, 6)),
        np.floor(rng.gamma(1.0, 1e5, size=(400, 3))),
    ]
    n_told = 0
    for X in tables:
        scaler = StandardScaler().fit(X)
        for dtype in ("float64", "float32"):
            scaled = scaler.transform(X).astype(dtype)
            tree = Taxarbor(9, max_features=1, random_state=0).fit(scaled).hierarchy_
            other = tree.unscale(scaler.mean_, scaler.scale_)
            raw = Taxarbor(9, max_features=1, random_state=0).fit(X.astype(dtype)).hierarchy_
            told = (tree, scaled, tree, scaled), (other, X, tree, scaled)
            n_told += sum(check_thresholds(*case) for case in told)
            n_told += check_thresholds(raw, X.astype(dtype), raw, X.astype(dtype))
    assert n_told > 150


def check_thresholds(tree, X, fitted, seen):
    """Compare each threshold with where the rule sent the rows when it was fitted."""
    count = 0
    for child in range(1, tree.n_nodes):
        for reason in tree.reasons(child, None):
            if reason.threshold is None:
                continue
            node = tree.parent(child)
            rows, rule = tree.rows(node), fitted.rules[node]
            here = as_rows(seen).take(rows, center=rule.center)
            sent = best_scores(here, rule.weights, rule.offsets) + tree.children(node)[0]
            is_above = X[rows, reason.feature] > reason.threshold
            np.testing.assert_array_equal(is_above == (reason.sign > 0), sent == child)
            count += 1
    return count


def test_rows_at_the_threshold_are_said_to_be_where_they_go():
    """The first child takes the ties, whether it is that of the lower or the higher values."""
    X = np.array([[1.0], [2.0], [2.0], [3.0]])
    for W, labels, side in (
        ([[-1.0], [1.0]], [0, 0, 0, 1], 0),
        ([[1.0], [-1.0]], [1, 0, 0, 0], 1),
    ):
        builder = HierarchyBuilder(4)
        builder.add_split(0, labels, LinearRule(np.array(W), np.array([2.0])))
        tree = measured_rows(builder.freeze(feature_names=["age"]), as_rows(X))
        assert tree.follows.rows.all()
        low = tree.reasons(2 if side else 1)[0]
        assert (str(low), str(tree.reasons(1 if side else 2)[0])) == (
            f"age at most {low.threshold:g}", f"age above {low.threshold:g}",
        )  # fmt: skip
        assert low.threshold == (1.9 if side else 2.1)
        np.testing.assert_array_equal(X[:, 0] <= low.threshold, np.array(labels) == side)


def test_features_of_yes_and_no_are_known_without_the_data():
    animals = load_animals()
    scaler = StandardScaler().fit(animals.X)
    for dtype in ("float32", "float64"):
        scaled = scaler.transform(animals.X).astype(dtype)
        tree = Taxarbor(6, random_state=0).fit(scaled).hierarchy_
        assert not tree.yes_no.any()
        other = tree.unscale(scaler.mean_, scaler.scale_)
        np.testing.assert_array_equal(other.yes_no, animals.X.max(axis=0) == 1)
        for node in range(1, other.n_nodes):
            for reason in other.reasons(node):
                assert (reason.have is not None) == other.yes_no[reason.feature]
                if reason.have is not None:
                    rows = animals.X[other.rows(node), reason.feature]
                    assert reason.have == pytest.approx(rows.mean(), abs=1e-5)
