"""Explanations of tables with gaps and categories, against the tables themselves."""

import warnings

import numpy as np
import pandas as pd
import pytest

from taxarbor import HMMC, Taxarbor
from taxarbor.explain import explain
from taxarbor.taxonomy._reasons import category_of

MODELS = (
    Taxarbor(6, random_state=0),
    Taxarbor(5, random_state=0),
    HMMC(6, random_state=0),
)


@pytest.fixture(scope="module")
def explained(make_cars):
    """Return explanations and their tables, the last with its features kept sparse."""
    found = []
    tables = [make_cars(seed) for seed in range(len(MODELS))]
    wide = make_cars(9, 300)
    wide["make"] = wide["make"] + " " + (wide["id"] % 3).astype(str)
    tables += [wide[["weight", "mpg", "make", "origin"]]]
    for model, table in zip((*MODELS, MODELS[0]), tables, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            taxonomy = model.fit(table).taxonomy_
        found.append((explain(taxonomy, table), table))
    return found


def values_of(why, table, feature, rows=slice(None)):
    """Return what the table has in a feature, NaN for what is not known."""
    taxonomy = why.taxonomy
    column = taxonomy.encoding.columns[taxonomy.encoding.owner[feature]]
    cells, category = table[column.name].iloc[rows], category_of(taxonomy, feature)
    if category is None:
        return cells.astype(float).to_numpy()
    value = category.values[feature - category.first + (len(category.values) == 2)]
    return np.where(cells.isna(), np.nan, cells == value).astype(float)


def test_what_stands_out_counts_rows_with_a_value_only(explained):
    for why, table in explained:
        taxonomy = why.taxonomy
        for node in range(1, taxonomy.tree.n_nodes):
            rows, seen = taxonomy.tree.rows(node), []
            for one in why.standout(node, 100):
                here = values_of(why, table, one["column"], rows)
                every = values_of(why, table, one["column"])
                rest = np.delete(every, rows)
                assert one["missing"] == pytest.approx(np.isnan(here).mean())
                here, rest = here[~np.isnan(here)], rest[~np.isnan(rest)]
                gap = here.mean() - rest.mean()
                effect = gap / 2 / np.sqrt((here.var() + rest.var()) / 2 + gap**2 / 4)
                is_other = one["effect"] * effect < 0  # of two values, the other is named
                assert abs(one["effect"]) == pytest.approx(abs(effect), abs=1e-6)
                mean, every = here.mean(), np.nanmean(every)
                mean, every = (1 - mean, 1 - every) if is_other else (mean, every)
                assert (one["mean"], one["all_mean"]) == pytest.approx((mean, every))
                if one["share"] is not None:
                    assert (one["share"], one["all_share"]) == pytest.approx((mean, every))
                assert sum(one["counts"]) == len(here)
                assert sum(one["all_counts"]) == len(here) + len(rest)
                seen.append(taxonomy.encoding.owner[one["column"]])
            assert len(seen) == len(set(seen))


def test_features_have_the_means_and_gaps_of_the_table(explained):
    for why, table in explained:
        taxonomy = why.taxonomy
        for node in range(1, taxonomy.tree.n_nodes):
            assert why.node(node)["missing"] == pytest.approx({
                name: share
                for name, share in table.iloc[taxonomy.tree.rows(node)].isna().mean().items() if share
            })  # fmt: skip
            beside = np.setdiff1d(
                taxonomy.tree.rows(taxonomy.tree.parent(node)), taxonomy.tree.rows(node)
            )
            for one in why.leading(node):
                cells = [
                    table[one["feature"]].iloc[rows]
                    for rows in (taxonomy.tree.rows(node), beside)
                ]
                assert one["missing"] == pytest.approx(cells[0].isna().mean())
                if category_of(taxonomy, one["column"]) is None:
                    means = [part.astype(float).mean() for part in cells]
                    assert (one["mean"], one["rest_mean"]) == pytest.approx(tuple(means))
        assert why.nodes()["missing"][0].count(" %") == len(why.node(0)["missing"])
        assert why.features()["missing"].max() > 0.1


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Groups that are known: the rule needs both x and z to tell the first two apart.
        known = np.array([[0.0], [1.0], [10.0]])[groups]
        model = Taxarbor(3, random_state=0).fit(table, embedding=known)
    why = explain(model, table)
    lines = [one for node in range(1, 5) for one in why.leading(node, 5)]
    for one in lines:
        if one["direction"] in ("higher", "lower") and one["feature"] != "w":
            assert (one["mean"] > one["rest_mean"]) == (one["direction"] == "higher")
    words = [one["words"] for one in lines if one["direction"] in ("known", "unknown")]
    assert any(word.endswith("x unknown") for word in words)
    assert any(word.endswith("x known") for word in words)
    for one in lines:
        if one["direction"] == "unknown":
            assert one["mean"] == one["missing"] > one["rest_mean"]


def test_steps_say_what_the_table_says(explained):
    n_unknown = 0
    for why, table in explained:
        for row in range(0, len(table), 5):
            steps = why.row(row)["steps"]
            for step in steps:
                assert len({pull["name"] for pull in step["pulls"]}) >= len(step["pulls"]) - 1
                for pull in step["pulls"]:
                    cell, value = table[pull["name"]].iloc[row], pull["value"]
                    is_gap = pd.isna(cell)
                    if value in ("known", "unknown"):
                        assert is_gap == (value == "unknown")
                    elif is_gap:
                        n_unknown += 1
                        assert value is None
                        assert f"{pull['name']} unknown" in step["why"]
                    else:
                        assert value == cell
                        assert f"{pull['name']} = " in step["why"]
                total = sum(abs(pull["strength"]) for pull in step["pulls"])
                assert total <= 1 + 1e-9
        placed, taxonomy = why.place(table.iloc[:7]), why.taxonomy
        if (taxonomy.predict(table.iloc[:7]) == taxonomy.tree.labels[:7]).all():
            known = why.rows(range(7))
            assert placed["why"].tolist() == known["why"].tolist()
        cells = why.cells(np.arange(20), why.taxonomy.feature_names.index("mpg"))
        assert [cell == "unknown" for cell in cells] == table["mpg"].iloc[:20].isna().tolist()
        origin = why.taxonomy.feature_names.index("origin = usa")
        expected = table["origin"].iloc[:20].fillna("unknown").tolist()
        assert why.cells(np.arange(20), origin) == expected
    assert n_unknown > 5


def test_names_are_those_of_the_table(explained):
    why, table = explained[0]
    with pytest.raises(ValueError, match="rename the columns of the table, and fit again"):
        explain(why.taxonomy, table, feature_names=[f"f{n}" for n in range(why.data.shape[1])])
    again = explain(why.taxonomy, table, feature_names=why.taxonomy.feature_names)
    assert again.names == why.names
    with pytest.raises(ValueError, match="lacks columns that the tree was grown on: 'mpg'"):
        explain(why.taxonomy, table.drop(columns="mpg"))
    with pytest.raises(ValueError, match="X does not hold the rows"):
        explain(why.taxonomy, table.assign(weight=table["weight"] + 1000))
