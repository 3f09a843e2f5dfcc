"""Thresholds in words: exactly where the rules divide rows, in few digits."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from taxarbor import HMMC, Taxarbor
from taxarbor.tables.columns import Columns
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy.edit_taxonomy import round_thresholds
from taxarbor.tree import LinearRule, TreeBuilder

DTYPES = ("float32", "float64")


def is_true(reason, values):
    """Return for which values the words of a reason are true."""
    threshold = values.dtype.type(reason.threshold)
    words = str(reason)
    sides = {
        "at most": values <= threshold,
        "at least": values >= threshold,
        "above": values > threshold,
        "below": values < threshold,
    }
    (said,) = (side for side in sides if f" {side} " in words)
    return sides[said]


def count_words(taxonomy, X):
    """Check every threshold on the paths of rows; return how many there are."""
    labels, count = taxonomy.predict(X), 0
    for at, leaf in enumerate(taxonomy.tree.leaves.tolist()):
        for node in taxonomy.tree.path(leaf)[1:]:
            for reason in taxonomy.reasons(node, None):
                if reason.threshold is not None:
                    assert is_true(reason, X[labels == at, reason.feature]).all()
                    count += 1
    return count


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(5))
def test_words_are_true_of_new_rows(dtype, seed):
    rng = np.random.default_rng(seed)
    # Of columns as wide as each other one alone may not divide the clusters.
    scale, shift = 10.0 ** rng.permutation(np.arange(-3.0, 4.0))[:5], rng.normal(size=5) * 50
    rows = (rng.normal(size=(4400, 5)) * scale + shift).round(3).astype(dtype)
    X, new = rows[:400], rows[400:]
    for model in (Taxarbor(9, max_features=1), HMMC(4, alpha=0.3)):
        fitted = model.set_params(random_state=0).fit(X).taxonomy_
        taxonomy = round_thresholds(fitted, X)
        np.testing.assert_array_equal(taxonomy.predict(X), fitted.predict(X))
        n_words = count_words(taxonomy, np.concatenate([new, at_thresholds(taxonomy, new)]))
        assert n_words >= 8 or isinstance(model, HMMC)
        by_csr = taxonomy.predict(sparse.csr_array(X))
        np.testing.assert_array_equal(by_csr, taxonomy.predict(X))


def at_thresholds(taxonomy, X):
    """Return rows with values at thresholds, and next to them."""
    rows = []
    for node in range(1, taxonomy.tree.n_nodes):
        for reason in taxonomy.reasons(node, None):
            if reason.threshold is not None:
                at, end = X.dtype.type(reason.threshold), X.dtype.type(np.inf)
                for value in (at, np.nextafter(at, -end), np.nextafter(at, end)):
                    row = X[node].copy()
                    row[reason.feature] = value
                    rows.append(row)
    return np.array(rows, dtype=X.dtype).reshape(-1, X.shape[1])


def test_few_digits_in_the_units_of_the_data():
    iris = load_iris()
    taxonomy = Taxarbor(6, max_features=1, random_state=0).fit(iris.data).taxonomy_
    rounded = round_thresholds(taxonomy, sparse.csr_array(iris.data))
    np.testing.assert_array_equal(rounded.predict(iris.data), taxonomy.tree.labels)
    found = [r.threshold for node in range(1, 11) for r in rounded.reasons(node)]
    assert len(found) == 10
    assert all(float(f"{one:.3g}") == one for one in found)


def divide(weight, center, labels):
    """Return a tree of one split, by one feature and its threshold."""
    center = np.atleast_1d(center)
    rule = LinearRule(np.array([[weight], [-weight]], center.dtype), center)
    builder = TreeBuilder(len(labels))
    builder.add_split(0, labels, rule)
    return Taxonomy(builder.freeze(), Columns.plain(1, ["age"]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_child_takes_the_ties(dtype):
    X = np.array([[1.0], [2.0], [2.0], [3.0]], dtype=dtype)
    for weight, labels, first, second, rounded in (
        (-1.0, [0, 0, 0, 1], "age at most 2", "age above 2", 2.1),
        (1.0, [1, 0, 0, 0], "age at least 2", "age below 2", 1.9),
    ):
        taxonomy = divide(weight, X[1], labels)
        assert [str(taxonomy.reasons(node)[0]) for node in (1, 2)] == [first, second]
        np.testing.assert_array_equal(taxonomy.predict(X), labels)
        taxonomy = round_thresholds(taxonomy, X)
        np.testing.assert_array_equal(taxonomy.predict(X), labels)
        (reason,) = taxonomy.reasons(1)
        assert (reason.takes_threshold, reason.threshold) == (True, rounded)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_next_to_each_other(dtype):
    low = np.dtype(dtype).type(1.0)
    high = np.nextafter(low, np.dtype(dtype).type(2.0))
    X = np.array([[low], [high]])
    for weight, center, labels in ((-1.0, low, [0, 1]), (1.0, high, [1, 0])):
        taxonomy = round_thresholds(divide(weight, center, labels), X)
        np.testing.assert_array_equal(taxonomy.predict(X), labels)
        count_words(taxonomy, X)


def test_labels_that_the_rule_does_not_give():
    """Bounds on sizes may put rows elsewhere: the rule still divides them as before."""
    X = np.arange(10.0)[:, None]
    taxonomy = divide(-1.0, 3.3, [0, 1, 0, 0, 1, 1, 1, 0, 1, 1])
    rounded = round_thresholds(taxonomy, X)
    np.testing.assert_array_equal(rounded.predict(X), taxonomy.predict(X))
    assert rounded.reasons(1)[0].threshold == 3.3


def test_booleans_are_divided_in_the_middle():
    X = np.random.default_rng(0).integers(0, 2, size=(60, 3)).astype(float)
    taxonomy = Taxarbor(4, max_features=1, random_state=0).fit(X).taxonomy_
    rounded = round_thresholds(taxonomy, X)
    np.testing.assert_array_equal(rounded.predict(X), taxonomy.predict(X))
    assert {rounded.reasons(node)[0].threshold for node in range(1, 7)} == {0.5}
