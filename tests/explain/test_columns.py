"""Explanations of tables with missing values and categories, against the tables themselves."""

import warnings

import numpy as np
import pandas as pd
import pytest

from taxarbor import HMMC, TableWarning, Taxarbor
from taxarbor.explain import explain
from taxarbor.taxonomy._reasons import category_of
from tests.explain.conftest import steps_of_row

MODELS = (Taxarbor(6, random_state=0), Taxarbor(5, random_state=0), HMMC(6, random_state=0))


@pytest.fixture(scope="module")
def explained(make_cars):
    """Return explanations and their tables, the last with its features kept sparse."""
    explained = []
    tables = [make_cars(seed) for seed in range(len(MODELS))]
    wide = make_cars(9, 300)
    wide["make"] = wide["make"] + " " + (wide["id"] % 3).astype(str)
    tables += [wide[["weight", "mpg", "make", "origin"]]]
    for model, table in zip((*MODELS, MODELS[0]), tables, strict=True):
        with warnings.catch_warnings(action="ignore"):
            taxonomy = model.fit(table).taxonomy_
        explained.append((explain(taxonomy, table), table))
    return explained


def values_of(why, table, feature, rows=slice(None)):
    """Return what the table has in a feature, NaN for what is not known."""
    taxonomy = why.taxonomy
    column = taxonomy.columns[taxonomy.columns.owner[feature]]
    cells, category = table[column.name].iloc[rows], category_of(taxonomy, feature)
    if category is None:
        return cells.astype(float).to_numpy()
    value = category.values[feature - category.first + (len(category.values) == 2)]
    return np.where(cells.isna(), np.nan, cells == value).astype(float)


def test_distinctive_features_count_known_values_only(explained):
    for why, table in explained:
        taxonomy = why.taxonomy
        for node in range(1, taxonomy.tree.n_nodes):
            rows, columns = taxonomy.tree.rows(node), []
            for feature in why.distinctive_features(node, 100):
                here = values_of(why, table, feature["column"], rows)
                every = values_of(why, table, feature["column"])
                rest = np.delete(every, rows)
                assert feature["missing"] == pytest.approx(np.isnan(here).mean())
                here, rest = here[~np.isnan(here)], rest[~np.isnan(rest)]
                difference = here.mean() - rest.mean()
                mixed = np.sqrt((here.var() + rest.var()) / 2 + difference**2 / 4)
                effect = difference / 2 / mixed
                assert abs(feature["effect"]) == pytest.approx(abs(effect), abs=1e-6)
                means = here.mean(), np.nanmean(every)
                if feature["effect"] * effect < 0:  # of two values, the other is named
                    means = 1 - means[0], 1 - means[1]
                assert (feature["mean"], feature["all_mean"]) == pytest.approx(means)
                if feature["share"] is not None:
                    assert (feature["share"], feature["all_share"]) == pytest.approx(means)
                assert sum(feature["counts"]) == len(here)
                assert sum(feature["all_counts"]) == len(here) + len(rest)
                columns.append(taxonomy.columns.owner[feature["column"]])
            assert len(columns) == len(set(columns))


def test_deciding_features_have_the_means_and_missing_shares_of_the_table(explained):
    for why, table in explained:
        tree = why.taxonomy.tree
        for node in range(1, tree.n_nodes):
            rows = tree.rows(node)
            shares = table.iloc[rows].isna().mean()
            assert why.node(node)["missing"] == pytest.approx(shares[shares > 0].to_dict())
            rest = np.setdiff1d(tree.rows(tree.parent(node)), rows)
            for feature in why.deciding_features(node):
                here, beside = (table[feature["feature"]].iloc[some] for some in (rows, rest))
                assert feature["missing"] == pytest.approx(here.isna().mean())
                if category_of(why.taxonomy, feature["column"]) is None:
                    means = here.astype(float).mean(), beside.astype(float).mean()
                    assert (feature["mean"], feature["rest_mean"]) == pytest.approx(means)
        assert why.nodes()["missing"][0].count(" %") == len(why.node(0)["missing"])
        features = [one for node in range(tree.n_nodes) for one in why.deciding_features(node)]
        assert max(feature["missing"] for feature in features) > 0.1


def test_words_agree_with_the_means_beside_them_where_values_are_missing():
    # The first group lacks most values of x. With the mean of all in place of these, it has
    # more of x than the second group; where values are known, it has less.
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 200)
    x = np.array([0.0, 1.0, 10.0])[groups] + 0.2 * rng.normal(size=600)
    x[(groups == 0) & (rng.random(600) < 0.7)] = np.nan
    z = np.array([1.0, -1.0, 0.0])[groups] + rng.normal(size=600)
    far = np.array([0.0, 0.0, 20.0])[groups] + rng.normal(size=600)
    table = pd.DataFrame({"x": x, "z": z, "far": far, "w": rng.choice(list("ab"), 600)})
    # Groups that are known: the rule needs both x and z to tell the first two apart.
    known = np.array([[0.0], [1.0], [10.0]])[groups]
    with warnings.catch_warnings(action="ignore"):
        model = Taxarbor(3, random_state=0).fit(table, embedding=known)
    why = explain(model, table)
    lines = [line for node in range(1, 5) for line in why.deciding_features(node, 5)]
    for line in lines:
        if line["direction"] in ("higher", "lower") and line["feature"] != "w":
            assert (line["mean"] > line["rest_mean"]) == (line["direction"] == "higher")
        if line["direction"] == "unknown":
            assert line["mean"] == line["missing"] > line["rest_mean"]
    for word in ("known", "unknown"):
        words = [line["words"] for line in lines if line["direction"] == word]
        assert any(text.endswith(f"x {word}") for text in words)


def test_steps_say_what_the_table_says(explained):
    n_unknown = 0
    for why, table in explained:
        taxonomy = why.taxonomy
        for row in range(0, len(table), 5):
            for step in steps_of_row(why, row):
                for part in step["why"].replace(" (against)", "").split("; "):
                    name, equals, value = part.partition(" = ")
                    cell = table[name if equals else part.removesuffix(" unknown")].iloc[row]
                    assert pd.isna(cell) == (not equals)
                    n_unknown += not equals
                    if value in ("yes", "no"):
                        assert cell == (value == "yes")
                    elif isinstance(cell, str):
                        assert value in (cell, "")
                    elif equals:
                        assert float(value.replace(",", "")) == pytest.approx(cell, rel=1e-3)
        placed = why.place(table.iloc[:7])
        if (taxonomy.predict(table.iloc[:7]) == taxonomy.tree.labels[:7]).all():
            assert placed["why"].tolist() == why.rows(range(7))["why"].tolist()
        cells = why.format_cells(np.arange(20), taxonomy.feature_names.index("mpg"))
        assert [cell == "unknown" for cell in cells] == table["mpg"].iloc[:20].isna().tolist()
        origin = taxonomy.feature_names.index("origin = usa")
        expected = table["origin"].iloc[:20].fillna("unknown").tolist()
        assert why.format_cells(np.arange(20), origin) == expected
    assert n_unknown > 5


def test_names_are_those_of_the_table(explained):
    why, table = explained[0]
    others = [f"f{n}" for n in range(len(why.taxonomy.columns))]
    renamed = why.taxonomy.rename_features(why.taxonomy.feature_names)
    assert explain(renamed, table).names == why.names
    with pytest.raises(ValueError, match="names of the features"):
        why.taxonomy.rename_features(others)
    with pytest.warns(TableWarning, match="X lacks 'mpg'"):
        explain(why.taxonomy, table.drop(columns="mpg"))
    with pytest.raises(ValueError, match="X does not hold the rows"):
        explain(why.taxonomy, table.assign(weight=table["weight"] + 1000))
