"""Trees that hold counts, not rows: all that needs no rows works, and rows can be given."""

import dataclasses
import json
import pickle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy import sparse

from taxarbor import TableWarning, Taxarbor, load_animals
from taxarbor._errors import InputError, InputTypeError
from taxarbor.exchange import to_dot, to_frame, to_json, to_linkage, to_newick
from taxarbor.metrics import tree_scores
from taxarbor.plot import plot_dendrogram, plot_tree
from taxarbor.taxonomy import Taxonomy
from taxarbor.tree import TreeBuilder
from tests.taxonomy.conftest import drop_rows, taxonomies
from tests.tree.conftest import assert_same

COUNTS = r"taxonomy\.attach\(X\)"


@pytest.fixture(scope="module")
def animals():
    """The rows of the animals, and the tree of them."""
    X = load_animals().X
    return X, Taxarbor(8, random_state=0).fit(X).taxonomy_


@pytest.fixture
def weighted(known):
    """The known tree as one of counts, from a fit with weights and noise."""
    totals = [12.5, 3.0, 6.5, 3.0, 2.5, 4.0]
    tree = dataclasses.replace(known.tree, order=None, totals=totals, n_noise=7)
    return dataclasses.replace(known, tree=tree)


def test_what_needs_no_rows_is_the_same(animals):
    X, taxonomy = animals
    counts = drop_rows(taxonomy)
    assert not counts.tree.has_rows
    assert counts.tree.n_rows == taxonomy.tree.n_rows == len(X)
    assert str(counts) == str(taxonomy)
    assert repr(counts) == repr(taxonomy)
    assert counts._repr_html_() == taxonomy._repr_html_()
    for ask in (Taxonomy.predict, Taxonomy.predict_proba):
        np.testing.assert_array_equal(ask(counts, X), ask(taxonomy, X))
    np.testing.assert_array_equal(counts.n_features_used, taxonomy.n_features_used)
    for name in ("sizes", "node_weights", "leaves"):
        np.testing.assert_array_equal(getattr(counts.tree, name), getattr(taxonomy.tree, name))
    for node in range(taxonomy.tree.n_nodes):
        assert counts.reasons(node) == taxonomy.reasons(node)
    for write in (to_dot, to_newick):
        assert write(counts) == write(taxonomy)
    np.testing.assert_array_equal(to_linkage(counts), to_linkage(taxonomy))
    pd.testing.assert_frame_equal(to_frame(counts), to_frame(taxonomy))
    small = counts.prune(4)
    assert str(small) == str(taxonomy.prune(4))
    assert not small.tree.has_rows
    np.testing.assert_array_equal(small.predict(X), taxonomy.prune(4).predict(X))
    for plot in (plot_tree, plot_dendrogram):
        plot(counts)
    plt.close("all")


def test_what_needs_rows_says_what_to_do(animals):
    counts = drop_rows(animals[1])
    classes = np.arange(counts.tree.n_rows) % 3
    for ask in (
        *(lambda: counts.tree.labels, lambda: counts.tree.rows(0), lambda: counts.cut(3)),
        lambda: tree_scores(counts, classes),
        lambda: plot_tree(counts, classes=classes),
    ):
        with pytest.raises(InputError, match=COUNTS):
            ask()


def test_node_weights_are_kept(weighted, tmp_path):
    assert weighted.tree.n_rows == 17
    assert weighted.tree.node_weights.tolist() == [12.5, 3.0, 6.5, 3.0, 2.5, 4.0]
    assert weighted.prune(3).tree.node_weights.tolist() == [12.5, 3.0, 6.5, 3.0]
    assert "7 rows set apart as noise" in str(weighted)
    path = tmp_path / "tree.taxarbor"
    weighted.save(path)
    for again in (Taxonomy.load(path), pickle.loads(pickle.dumps(weighted))):
        assert_same(again, weighted)
        assert again.tree.n_noise == 7


@given(taxonomy=taxonomies())
@settings(max_examples=40, deadline=None)
def test_any_tree_of_counts_is_written_and_read(taxonomy):
    taxonomy = drop_rows(taxonomy)
    assert_same(pickle.loads(pickle.dumps(taxonomy)), taxonomy)
    assert json.loads(to_json(taxonomy))["order"] is None


def test_rows_are_attached(animals):
    X, taxonomy = animals
    counts = drop_rows(taxonomy)
    assert (taxonomy.predict(X) == taxonomy.tree.labels).all()
    for given_rows in (X, sparse.csr_array(X)):
        again = counts.attach(given_rows)
        assert again.tree.has_rows
        for name in ("order", "labels", "sizes", "start", "parents"):
            one, other = getattr(again.tree, name), getattr(taxonomy.tree, name)
            np.testing.assert_array_equal(one, other)
        assert again.columns is taxonomy.columns
        np.testing.assert_allclose(again.means, taxonomy.means, rtol=1e-12, atol=1e-12)
        assert str(again) == str(taxonomy)
    half = counts.attach(X[::2], np.full(103, 2.0))
    assert half.tree.n_rows == 103
    np.testing.assert_array_equal(half.tree.labels, taxonomy.tree.labels[::2])
    np.testing.assert_array_equal(half.tree.node_weights, 2.0 * half.tree.sizes)
    np.testing.assert_allclose(half.means[0], X[::2].mean(axis=0))


def test_rows_of_a_table_are_attached():
    age = np.random.default_rng(0).normal(size=90).round(3)
    frame = pd.DataFrame({"age": age, "town": ["a", "b", None] * 30})
    with pytest.warns(TableWarning):
        taxonomy = Taxarbor(3, random_state=0).fit(frame).taxonomy_
    again = drop_rows(taxonomy).attach(frame)
    np.testing.assert_array_equal(again.tree.labels, taxonomy.predict(frame))
    assert (taxonomy.predict(frame) == taxonomy.tree.labels).all()
    np.testing.assert_allclose(again.missing, taxonomy.missing)
    with pytest.warns(TableWarning, match="lacks 'town'"):
        again = drop_rows(taxonomy).attach(frame[["age"]])
    assert (again.missing[:, 1] == 1.0).all()


def test_noise_is_attached_as_noise():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(200, 2)) + 20.0 * k for k in range(3)])
    X[:4] = [[500.0, -500.0], [-500.0, 500.0], [900.0, 0.0], [0.0, 900.0]]
    taxonomy = Taxarbor(3, noise=0.01, random_state=0).fit(X).taxonomy_
    assert taxonomy.tree.n_noise > 0
    counts = drop_rows(taxonomy)
    assert counts.tree.n_rows == taxonomy.tree.n_rows
    assert counts.tree.n_noise == taxonomy.tree.n_noise
    again = counts.attach(X)
    np.testing.assert_array_equal(again.tree.labels, taxonomy.predict(X))
    assert again.tree.n_noise == (again.tree.labels < 0).sum()


def test_rows_that_cannot_be_attached(animals, tmp_path):
    X, taxonomy = animals
    counts = drop_rows(taxonomy)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    for on_disk in (path, str(path), np.load(path, mmap_mode="r")):
        assert (counts.attach(on_disk).tree.labels == taxonomy.tree.labels).all()
    dask_array = pytest.importorskip("dask.array")
    with pytest.raises(InputTypeError, match="in memory"):
        counts.attach(dask_array.from_array(X))
    for few, words in ((X[:1], "7 clusters"), (X[:0], "no rows")):
        with pytest.raises(InputError, match=words):
            counts.attach(few)
    for weights in (np.ones(3), np.zeros(len(X)), np.full(len(X), np.nan), -np.ones(len(X))):
        with pytest.raises(InputError, match="sample_weight"):
            counts.attach(X, weights)
    with pytest.raises(InputError, match="1 cluster of the tree, c0"):
        counts.attach(X, taxonomy.tree.labels != 0)
    builder = TreeBuilder(10)
    builder.divide(0, [5, 5])
    with pytest.raises(InputError, match="no rules"):
        Taxonomy(builder.freeze(with_rows=False)).attach(X)
