"""What is said of the columns of a table, against the table itself."""

import pickle
import warnings

import numpy as np
import pytest

from taxarbor import HMMC, Taxarbor
from taxarbor.taxonomy import Reason, Taxonomy
from taxarbor.taxonomy._phrases import phrase
from tests.tree.conftest import assert_same, bits

MODELS = Taxarbor(7), HMMC(7), Taxarbor(6), HMMC(6, branching=3)
PAIRS = (["origin", "mpg", "fuel"], ["make", "fuel"], ["origin", "make"], ["mpg", "fuel"])


def fitted(model, table):
    with warnings.catch_warnings(action="ignore"):
        return model.set_params(random_state=0).fit(table).taxonomy_


def counted(taxonomy, node, beside=False):
    """Return the rows of a node, or of its siblings, with outliers."""
    tree = taxonomy.tree
    rows = tree.rows(node)
    return np.setdiff1d(tree.rows(tree.parent(node)), rows) if beside else rows


@pytest.fixture(scope="module")
def grown(make_cars):
    """Return trees and their tables: of all columns, and of few, which then divide alone."""
    found = []
    for seed, model in enumerate(MODELS):
        table = make_cars(seed)
        found += [(fitted(model, table), table)]
        found += [(fitted(MODELS[0], table[names]), table[names]) for names in PAIRS]
    wide = make_cars(9, 300)  # with so many values that features are kept sparse
    wide["make"] = wide["make"] + " " + (wide["id"] % 3).astype(str)
    wide = wide[["mpg", "make", "origin"]]
    return [*found, (fitted(Taxarbor(7), wide), wide)]


def test_words_are_true_of_the_rows_that_follow_them(grown):
    n_alone = n_unknown = 0
    for taxonomy, table in grown:
        for node in range(1, taxonomy.tree.n_nodes):
            rows = taxonomy.tree.rows(node)
            for reason in taxonomy.reasons(node, None):
                cells = table[reason.name].iloc[rows]
                known = cells[cells.notna()]
                if reason.threshold is None:
                    assert not reason.takes_unknown
                    continue
                n_alone += 1
                if reason.categories:
                    is_so = known.isin(reason.categories)
                elif reason.have is not None:
                    is_so = known.astype(bool)
                else:
                    values, is_first = known.astype(float), reason.takes_threshold
                    is_so = values > reason.threshold
                    if is_first == (reason.sign > 0):
                        is_so |= values == reason.threshold
                assert (is_so == (reason.sign > 0)).all()
                if len(known) < len(cells):
                    n_unknown += 1
                    assert reason.takes_unknown
                    assert "unknown" in str(reason)
    assert n_alone > 40
    assert n_unknown > 10


def test_shares_are_of_rows_with_a_value_and_of_whole_columns(grown):
    for taxonomy, table in grown:
        gaps = table.isna()
        for node in range(1, taxonomy.tree.n_nodes):
            rows, reasons = counted(taxonomy, node), taxonomy.reasons(node, None)
            assert len({(reason.name, reason.categories) for reason in reasons}) == len(reasons)
            shares = np.array([reason.share for reason in reasons])
            assert shares[shares > 0].sum() == pytest.approx(1.0)
            for reason in reasons:
                assert reason.unknown == pytest.approx(gaps[reason.name].iloc[rows].mean())
                cells = table[reason.name].iloc[rows].dropna()
                if reason.categories in (("known",), ("unknown",)):
                    is_so = np.full(len(rows), reason.categories == ("known",))
                    is_so[gaps[reason.name].iloc[rows]] ^= True
                    assert reason.have == pytest.approx(is_so.mean())
                elif reason.categories and len(cells):
                    share = cells.isin(reason.categories).mean()
                    assert reason.have == pytest.approx(share, abs=1e-6)
                    assert reason.sign == (1 if reason.weight > 0 else -1)


def test_what_is_said_to_be_more_frequent_is(grown):
    for taxonomy, table in grown:
        for node in range(1, taxonomy.tree.n_nodes):
            beside = counted(taxonomy, node, beside=True)
            for reason in taxonomy.reasons(node):
                if not reason.categories or reason.threshold is not None:
                    continue
                if reason.categories in (("known",), ("unknown",)):
                    missing = table[reason.name].iloc[beside].isna().mean()
                    assert reason.have != (
                        1.0 - missing if "known" in reason.categories else missing
                    )
                    continue
                known = table[reason.name].iloc[beside].dropna()
                if len(known) and reason.have is not None:
                    there = known.isin(reason.categories).mean()
                    assert reason.sign * (reason.have - there) > 0


def test_phrases_of_categories_and_gaps():
    two, many = {"categories": ("usa", "japan")}, {"categories": tuple("abcdef")}
    alone = {"unknown": 0.1, "takes_unknown": True}
    for weight, fields, words in (
        (1.0, two | {"threshold": 0.5}, "origin = usa or japan"),
        (-1.0, two | {"threshold": 0.5}, "origin not usa or japan"),
        (1.0, two | alone | {"threshold": 0.5}, "origin = usa or japan or unknown"),
        (-1.0, two | alone | {"threshold": 0.5}, "origin unknown or not usa or japan"),
        (1.0, two | {"have": 0.5}, "more often origin = usa or japan"),
        (-1.0, two | {"have": 0.5}, "less often origin = usa or japan"),
        (1.0, {"categories": ("a",), "unknown": 1.0}, "origin unknown"),
        (1.0, many | {"have": 1.0}, "origin = a or b or 4 other values"),
        (1.0, {"categories": ("unknown",), "have": 0.5}, "more often origin unknown"),
        (1.0, {"categories": ("known",), "have": 1.0}, "origin known"),
        (1.0, {"categories": ("a\nb", " "), "have": 1.0}, "origin = a b or blank"),
        (-1.0, alone | {"threshold": 3000.0}, "origin below 3000 or unknown"),
        (-1.0, alone | {"threshold": 3000.0, "have": 0.0}, "unknown or no origin"),
    ):
        assert str(Reason(3, "origin", weight, 1.0, **fields)) == words
    reason = Reason(3, "origin", 1.0, 1.0, have=1.0, **many)
    assert phrase(reason, 18) == "origin = a or 5 o…"
    assert phrase(reason, 28) == "origin = a or 5 other values"


def test_files_and_pickles_keep_the_table(grown, tmp_path):
    for taxonomy, table in grown[::4]:
        taxonomy.save(tmp_path / "tree")
        for copy in (Taxonomy.load(tmp_path / "tree"), pickle.loads(pickle.dumps(taxonomy))):
            assert_same(taxonomy, copy)
            np.testing.assert_array_equal(copy.missing, taxonomy.missing)
            assert bits(copy.columns) == bits(taxonomy.columns)
            assert str(copy) == str(taxonomy)
            assert (copy.predict(table) == taxonomy.predict(table)).all()
        pruned = taxonomy.prune(3)
        np.testing.assert_array_equal(pruned.missing, taxonomy.missing[: pruned.tree.n_nodes])


def test_names_and_units_are_those_of_the_table(grown):
    taxonomy, _ = grown[0]
    names = taxonomy.feature_names
    assert taxonomy.rename_features(names).feature_names == names
    with pytest.raises(ValueError, match="columns"):
        taxonomy.rename_features([*names[1:], "another"])
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[0, 0] = np.nan
    assert fitted(Taxarbor(2), X).rename_features(["a", "b"]).feature_names == ("a", "b")
