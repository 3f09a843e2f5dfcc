"""The taxonomy: what stands beside the tree, and copies, prunings and names of it all."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import Taxarbor, Taxonomy
from taxarbor.plot import plot_tree
from taxarbor.tables.columns import Columns
from taxarbor.taxonomy import NodeStatistics
from taxarbor.taxonomy.taxonomy import taxonomy_of
from tests.taxonomy.conftest import taxonomies
from tests.tree.conftest import assert_refused, assert_same
from tests.tree.test_tree import limits_of


def test_parts_of_the_known_tree(known, bare):
    assert repr(known) == "Taxonomy(n_rows=10, n_leaves=4, height=2)"
    assert known.n_features_used.tolist() == [2, 0, 1, 0, 0, 0]
    assert bare.n_features_used.tolist() == [0] * 6
    with pytest.raises(ValueError, match="read-only"):
        known.n_features_used[0] = 1
    with pytest.raises(AttributeError):
        known.tree = bare.tree
    sums = np.ones((6, 2))
    statistics = NodeStatistics(np.ones(6), sums)
    sums[:] = 7  # the statistics have their own
    assert (dataclasses.replace(known, statistics=statistics).means == 1).all()


def test_the_number_of_features_is_known_where_anything_tells(bare, with_means):
    assert (bare.n_features, Taxonomy(bare.tree).n_features) == (2, None)
    assert Taxonomy(bare.tree).feature_names is None
    assert Taxonomy(with_means.tree).feature_names == ("x0", "x1")
    assert with_means.prune(1).n_features == 2


def test_other_names_change_nothing_else(with_means):
    unnamed = dataclasses.replace(with_means, columns=Columns.plain(2, imputes=False))
    assert unnamed.rename_features(["x", 7]).feature_names == ("x", "7")
    assert unnamed.feature_names == ("x0", "x1")
    assert_same(with_means, unnamed.rename_features(np.array(["a", "b"])))
    for taxonomy in (unnamed, with_means):
        assert_refused(taxonomy.rename_features, [list("abc"[:n]) for n in (0, 1, 3)])
    with pytest.raises(ValueError, match="rename the columns of the table"):
        with_means.rename_features(["x", "y"])
    with pytest.raises(TypeError, match="names"):
        with_means.rename_features("ab")


@given(taxonomy=taxonomies())
def test_copies_are_the_same(taxonomy):
    for again in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        assert_same(taxonomy, again(taxonomy))


def test_parts_that_do_not_fit_are_refused(known, with_means, assessed):
    ones, sums, stability = np.ones(6), np.zeros((6, 2)), assessed.stability
    statistics = [(ones[:5], sums[:5]), (ones, np.zeros((6, 3))), (ones, sums + np.nan)]
    statistics += [(ones, sums - np.inf), (ones, sums, sums + 2), (ones, sums, np.ones((6, 3)))]
    parts = [(ones, sums[:5]), (ones, ones), (0 * ones, sums), (ones, sums, sums - 1)]
    assert_refused(lambda given: NodeStatistics(*given), [*parts, (ones, sums, ones[:5])])
    faults = {
        "statistics": [NodeStatistics(*given) for given in statistics],
        "columns": [Columns.plain(3), Columns.plain(1)],
        "temperature": [0.0, -1.0, np.inf, np.nan, 1],
        "made_by": ["Taxarbor"],
        "stability": [
            dataclasses.replace(stability, **change)
            for change in (
                *({"n_refits": n} for n in (0, 2.0, 3)),
                *({"n_recovered": counts} for counts in (np.arange(5), np.full(6, 21))),
                {"n_separated": stability.n_separated + 9},
                *({"left_out": shares} for shares in (np.ones(5), np.full(6, 1.5))),
            )
        ],
    }
    cases = [{name: bad} for name, values in faults.items() for bad in values]
    for taxonomy in (known, with_means):
        assert_refused(lambda change, t=taxonomy: dataclasses.replace(t, **change), cases)


def test_the_taxonomy_of_a_model():
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = Taxarbor(3, random_state=0)
    for unfitted in (model, make_pipeline(StandardScaler(), model)):
        with pytest.raises(NotFittedError):
            plot_tree(unfitted)
    pipeline = make_pipeline(StandardScaler(), model).fit(X)
    assert taxonomy_of(model) is taxonomy_of(model.taxonomy_) is model.taxonomy_
    with pytest.raises(TypeError, match="pipeline"):
        plot_tree(pipeline)
    with pytest.raises(TypeError, match="fitted model"):
        plot_tree(X)


def test_pruned_nodes_keep_their_statistics(with_means, known):
    pruned = dataclasses.replace(with_means, temperature=1.25).prune(3)
    assert pruned.temperature == 1.25
    np.testing.assert_array_equal(pruned.means, with_means.means[:4])
    text = known.to_text(max_depth=1).replace("[2 clusters]", "[c1]").replace("c3", "c2")
    assert known.prune(3).to_text() == text
    for pruned in (with_means.prune(1), with_means.prune(depth=0)):
        assert pruned.predict(np.ones((2, 2))).tolist() == [0, 0]


@given(taxonomy=taxonomies(st.just(True)))
def test_pruned_trees_predict_the_cut_of_what_is_predicted(taxonomy):
    tree = taxonomy.tree
    X = np.random.default_rng(1).normal(scale=1e8, size=(30, taxonomy.n_features or 1))
    # Of each leaf, the first of its rows: where the cut puts that, it puts the leaf.
    first = tree.order[tree.start[tree.leaves]]
    for limit in limits_of(tree):
        expected = taxonomy.cut(**limit)[first][taxonomy.predict(X)]
        np.testing.assert_array_equal(taxonomy.prune(**limit).predict(X), expected)
