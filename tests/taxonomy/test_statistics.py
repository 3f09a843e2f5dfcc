"""Statistics of nodes: those of all leaves add up to the columns of the rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor import HMMC, Taxarbor, make_planted_tree
from taxarbor.taxonomy import Taxonomy

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module", name="X")
def planted():
    X = make_planted_tree(240, depth=2, random_state=0).X
    X[-6:] *= 50.0  # far from all others, and from each other
    return X


def with_gaps(X):
    """Return a table of numbers with missing values, a boolean and a category."""
    table = pd.DataFrame(X).add_prefix("c").mask(np.random.default_rng(0).random(X.shape) < 0.1)
    table["flag"] = X[:, 0] > 0.0
    return table.assign(side=np.where(X[:, 1] > 0.0, "left", "right"))


def features_of(taxonomy, table):
    """Return the features of a table, NaN where they are missing, by their names."""
    columns = taxonomy.columns
    if not isinstance(table, pd.DataFrame):
        return np.asarray(table.todense() if sparse.issparse(table) else table)
    numbers = table.assign(side=table["side"] == "right").astype(float)
    return numbers[[columns[place].label for place in columns.owner]].to_numpy()


def check(taxonomy, table, weights=None):
    """Compare the statistics of each node with the rows below it that are not noise."""
    tree, statistics = taxonomy.tree, taxonomy.statistics
    values = features_of(taxonomy, table)
    weights = np.ones(len(values)) if weights is None else weights
    for node in range(tree.n_nodes):
        own = tree.rows(node)
        known, expected = ~np.isnan(values[own]), np.nan_to_num(values[own])
        assert statistics.counts[node] == pytest.approx(weights[own].sum())
        sums, close = weights[own] @ expected, 1e-5 * len(own)
        np.testing.assert_allclose(statistics.sums[node], sums, rtol=1e-5, atol=close)
        if statistics.n_missing is None:
            assert known.all()
        else:
            n_missing = statistics.n_missing[node][taxonomy.columns.owner]
            np.testing.assert_allclose(n_missing, weights[own] @ ~known, atol=1e-9)
    is_in = tree.labels >= 0
    whole = (weights * is_in) @ np.nan_to_num(values)
    leaves = statistics.sums[tree.leaves].sum(axis=0)
    np.testing.assert_allclose(leaves, whole, rtol=1e-5, atol=1e-5 * len(values))


def test_leaves_add_up_to_the_columns_of_the_rows(X, tmp_path):
    weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    for model in (Taxarbor(5), Taxarbor(5, noise=0.05), HMMC(5)):
        model.set_params(random_state=0)
        for table in (X, X.astype(np.float32), sparse.csr_array(X), with_gaps(X)):
            for given in (None, weights):
                taxonomy = model.fit(table, sample_weight=given).taxonomy_
                assert taxonomy.tree.n_noise > 0 or not getattr(model, "noise", 0.0)
                check(taxonomy, table, given)
                for n_clusters in (3, 1):
                    check(taxonomy.prune(n_clusters), table, given)
                check(taxonomy.attach(table, given), table, given)
                taxonomy.save(tmp_path / "tree")
                check(Taxonomy.load(tmp_path / "tree"), table, given)
                check(Taxonomy.load(tmp_path / "tree").prune(3), table, given)


def test_other_rows_have_statistics_of_their_own(X):
    taxonomy = Taxarbor(4, random_state=0).fit(X).taxonomy_
    half = np.arange(len(X)) % 2 == 0
    check(taxonomy.attach(X[half]), X[half])
    check(taxonomy.prune(2).attach(X[half]), X[half])


def test_clusters_of_a_cut_have_the_sums_of_their_leaves(X):
    taxonomy = Taxarbor(6, random_state=0).fit(with_gaps(X)).taxonomy_
    statistics, tree = taxonomy.statistics, taxonomy.tree
    for n_clusters in (5, 3, 2):
        cut = tree.cut(n_clusters)
        pruned = taxonomy.prune(n_clusters)
        for name in ("counts", "sums", "n_missing"):
            of_leaves = getattr(statistics, name)[tree.leaves]
            for cluster, node in enumerate(pruned.tree.leaves):
                merged = of_leaves[np.unique(tree.labels[cut == cluster])].sum(axis=0)
                np.testing.assert_allclose(getattr(pruned.statistics, name)[node], merged)
