"""What can be explained, what cannot, and what rows, columns and nodes are called."""

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import HMMC, Taxarbor, make_planted_tree
from taxarbor.exchange import from_labels, from_sklearn
from taxarbor.explain import Explanation, explain
from taxarbor.explain._names import LONGEST, name_nodes
from taxarbor.tree import LinearRule, TreeBuilder


@pytest.fixture(scope="module")
def frame(X, animals):
    return pd.DataFrame(X, columns=list(animals.feature_names), index=animals.names)


def assert_same(one, other):
    """Compare what is said, to the bit."""
    assert one.to_dict() == other.to_dict()
    assert one.row_names == other.row_names
    assert one.names == other.names
    pd.testing.assert_frame_equal(one.rows(), other.rows())


def test_a_model_its_tree_and_one_without_means_are_the_same(model, X):
    expected, bare = explain(model, X), dataclasses.replace(model.taxonomy_, means=None)
    assert isinstance(expected, Explanation)
    for taxonomy in (model, model.taxonomy_, bare):
        assert_same(explain(taxonomy, X), expected)
    assert bare.means is None
    np.testing.assert_array_equal(explain(bare, X).taxonomy.means, expected.taxonomy.means)


def test_the_number_of_threads_does_not_matter(X):
    for make in (HMMC, Taxarbor):
        one, two = (make(6, random_state=0, n_jobs=n).fit(X) for n in (1, 2))
        assert_same(explain(one, X), explain(two, X))


def test_data_of_every_kind_say_the_same(model, X):
    numbered = [str(j) for j in range(X.shape[1])]
    for convert in (
        np.asfortranarray,
        np.ndarray.tolist,
        pd.DataFrame,  # whose columns are called 0, 1, ...
        sparse.csr_array,
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.coo_array,
    ):
        one, other = explain(model, X), explain(model.taxonomy_, convert(X))
        if convert is pd.DataFrame:
            assert other.taxonomy.feature_names == list(numbered)
            one = explain(model, X, feature_names=numbered)
        np.testing.assert_array_equal(one.taxonomy.is_boolean, other.taxonomy.is_boolean)
        assert one.names == other.names
        for a, b in zip(one.margins, other.margins, strict=True):
            if a is not None:
                np.testing.assert_allclose(a, b, atol=1e-9)
    taxonomy = from_labels(np.arange(len(X)) % 5)
    one, other = explain(taxonomy, X), explain(taxonomy, sparse.csr_array(X))
    np.testing.assert_allclose(one.taxonomy.means, other.taxonomy.means, atol=1e-12)
    assert one.names == other.names


def test_numbers_of_every_kind_say_the_same(X):
    bits = X > 0.5
    model = Taxarbor(4, random_state=0).fit(bits.astype(float))
    expected = explain(model, bits.astype(float))
    for data in (bits, bits.astype(int), bits.astype("uint8"), bits.astype(object)):
        assert_same(explain(model, data), expected)
    single = X.astype("float32")
    model = Taxarbor(5, random_state=0).fit(single)
    why = explain(model, single)
    assert why.taxonomy.means.dtype == why.taxonomy.rules[0].dtype == np.float32
    assert_same(why, explain(model, single.astype(float)))
    taxonomy = Taxarbor(3, random_state=0).fit(whole := np.round(4 * single)).taxonomy_
    why = explain(dataclasses.replace(taxonomy, means=None), whole.astype(int))
    assert why.taxonomy.means.dtype == np.float32


def test_frames_name_rows_and_columns(model, X, frame, animals):
    named = explain(model, X, row_names=animals.names, feature_names=animals.feature_names)
    assert_same(explain(model, frame), named)
    fitted = Taxarbor(6, random_state=0).fit(frame)
    assert_same(explain(fitted, frame), named)
    assert_same(explain(fitted, X, row_names=animals.names), named)
    polars = pl.DataFrame(X, schema=list(animals.feature_names))
    assert explain(fitted, polars).row_names is None
    assert_same(explain(fitted, polars, row_names=animals.names), named)
    assert_same(explain(model, polars, row_names=np.array(animals.names)), named)
    for index in (range(1000, 1206), pd.date_range("2020", periods=206)):  # no names
        assert explain(model, frame.set_axis(index)).row_names is None
    text = frame.set_axis([str(n) for n in range(len(frame))])
    assert explain(model, text).row("17")["row"] == 17
    kinds = frame.set_axis(pd.Categorical(frame.index))
    assert explain(model, kinds).row_names == tuple(frame.index)
    # Names given come first.
    rows, columns = [f"r{n}" for n in range(206)], [f"c{n}" for n in range(85)]
    for data in (X, frame):
        why = explain(fitted, data, row_names=rows, feature_names=columns)
        assert why.row_names == tuple(rows)
        assert why.taxonomy.feature_names == list(columns)
        assert set(why.features()["feature"]) <= set(columns)
    assert fitted.taxonomy_.feature_names == list(frame.columns)
    assert explain(fitted, X, row_names=range(206)).row("12")["row"] == 12


def test_data_that_are_not_the_rows_of_the_tree(model, named, X):
    holes = [np.where(X == 0.5, bad, X) for bad in (np.nan, np.inf)]
    for data, message in [
        (X[:-1], "X has 205 rows, but the tree was grown on 206: pass the same rows"),
        (np.vstack([X, X]), "X has 412 rows"),
        (X[:0], "X has 0 rows"),
        (sparse.csr_array(X[:5]), "X has 5 rows"),
        (X[:, 1:], "X has 84 features, but the taxonomy was grown on 85"),
        (X[:, 0], "two dimensions"),
        (X[None], "two dimensions"),
        (holes[0], "X (holds|contains)"),
        (holes[1], "X (holds|contains)"),
        (sparse.csr_array(holes[0]), "X (holds|contains)"),
        (X.astype(str), "X must hold numbers"),
        (np.full(X.shape, "a", dtype=object), "X must hold numbers"),
        (X.astype(complex), "X must hold numbers"),
        (None, "two dimensions|must be a table"),
    ]:
        with pytest.raises(ValueError, match=message):
            explain(model, data)
    for data in (X[:-1], holes[0]):
        with pytest.raises(ValueError, match=r"X has 205 rows|X (holds|contains)"):
            explain(from_labels(np.arange(206) % 3), data)
    with pytest.raises(ValueError, match="X has 3 features, but the taxonomy was grown on 85"):
        explain(Taxarbor(1).fit(X), X[:, :3])
    for wrong in (85, -1, 2 * 10**9):
        damaged = sparse.csr_array(X)
        damaged.indices[5] = wrong
        for ask in (lambda X: explain(model, X), named.place):
            with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
                ask(damaged)


def test_columns_of_another_frame(frame, X):
    fitted, column = Taxarbor(4, random_state=0).fit(frame), frame.columns[3]
    for other, told in (
        (frame[frame.columns[::-1]], "in another order"),
        (pl.DataFrame(X, schema=list(frame.columns[::-1])), "in another order"),
        (frame.rename(columns=str.upper), "missing: "),
        (frame.assign(**{column: 17590.0}), f"mean of {column} was 0.*, and is 17,590 now"),
    ):
        with pytest.raises(ValueError, match=told):
            explain(fitted, other)


def test_there_must_be_a_name_for_each(model, X):
    for kind, n_expected in (("row", 206), ("feature", 85)):
        for n_names in (0, n_expected - 1, n_expected + 1):
            told = f"got {n_names} {kind} names for {n_expected} {kind}s"
            with pytest.raises(ValueError, match=told):
                explain(model, X, **{f"{kind}_names": ["a"] * n_names})
        with pytest.raises(TypeError, match=f"{kind}_names must be a list of names"):
            explain(model, X, **{f"{kind}_names": "a" * 85})
    with pytest.raises(ValueError, match=r"one class for each of the 206 rows.*got shape \(2,"):
        explain(model, X, classes=["a", "b"])
    with pytest.raises(ValueError, match="none of the 206 rows has a label"):
        explain(model, X, classes=[None] * 206)


def test_what_has_no_tree(X):
    things = [HMMC, KMeans(3), make_pipeline(KMeans(3)), None, 7, "tree", {"taxonomy_": 1}]
    for thing in (*things, np.eye(3)):
        with pytest.raises(TypeError, match="expected a fitted model of taxarbor or a Hier"):
            explain(thing, X)
    for model in (Taxarbor(3), HMMC(3)):
        with pytest.raises(NotFittedError, match=rf"this {type(model).__name__} is not fitted"):
            explain(model, X)
    pipeline = make_pipeline(StandardScaler(), Taxarbor(4, random_state=0))
    with pytest.raises(NotFittedError, match="this Taxarbor is not fitted yet: call fit first"):
        explain(pipeline, X)
    pipeline.fit(X)
    told = r"pass pipeline\[-1\], .* and for X pipeline\[:-1\]\.transform\(X\)"
    with pytest.raises(TypeError, match=told):
        explain(pipeline, X)
    assert explain(pipeline[-1], pipeline[:-1].transform(X)).taxonomy.n_leaves == 4


def test_trees_of_others_get_rules_of_the_nearest_means(X):
    kmeans = KMeans(4, n_init=1, random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"got KMeans; .*from_sklearn"):
        explain(kmeans, X)
    why = explain(from_sklearn(kmeans), X)
    assert (why.margins[0] >= -1e-9).all()
    bare = from_labels(np.arange(206) % 4)
    why = explain(bare, X)
    assert bare.rules == (None,) * 5
    means = np.array([X[bare.rows(leaf)].mean(axis=0) for leaf in bare.leaves])
    distances = np.square(X[:, None] - means).sum(axis=2)
    np.testing.assert_array_equal(why.taxonomy.predict(X), distances.argmin(axis=1))
    np.testing.assert_array_equal(why.taxonomy.labels, bare.labels)


def test_columns_that_do_not_vary_are_no_reason(X):
    wide = np.column_stack([X, np.zeros(206), np.ones(206), np.full(206, 1e9)])
    for taxonomy in (Taxarbor(4, random_state=0).fit(wide), from_labels(np.arange(206) % 3)):
        why = explain(taxonomy, wide)
        assert not why.taxonomy.is_boolean[-3:].any()
        for node in range(1, why.taxonomy.n_nodes):
            found = {reason.feature for reason in why.taxonomy.reasons(node)}
            assert not found & {85, 86, 87}


def test_rows_that_are_equal(X, strict):
    why = explain(from_labels([0, 1, 0, 1, 2]), np.ones((5, 3)))
    strict(why.to_dict())
    assert why.names == ("all rows", "node 1", "node 2", "node 3")
    assert (why.margins[0] == 0.0).all()
    assert why.units[0] == 1.0
    strict(why.row(4))
    assert why.row(4)["steps"][0]["pulls"] == []
    assert why.rows()["why"].tolist() == [""] * 5
    assert len(why.features()) == 0
    doubled = np.vstack([X, X])
    model = Taxarbor(5, random_state=0).fit(doubled)
    why = explain(model, doubled)
    for row in range(0, 206, 10):
        one, other = why.row(row), why.row(row + 206)
        assert one["leaf"] == other["leaf"]
        assert one["steps"] == other["steps"]


def test_one_row_and_one_column(strict):
    why = explain(from_labels(["a"]), [[2.0]])
    strict(why.to_dict())
    assert why.row(0)["steps"] == []
    assert why.typical(0) == [{"row": 0, "name": "row 0", "distance": 0.0}]
    assert why.extreme(0) == why.borderline(0) == why.standout(0) == []
    two = explain(from_labels(["a", "b"]), [[2.0], [5.0]])
    assert two.names == ("all rows", "x0 at most 3.5", "x0 above 3.5")
    assert two.margins[0].tolist() == [1.0, 1.0]


def test_hostile_names_are_kept_and_told_on_one_line(X, strict):
    hostile = [f"<b>{j}</b>\n\x00\u202e" for j in range(85)]
    model = Taxarbor(4, random_state=0).fit(X)
    why = explain(model, X, row_names=["\n"] * 206, feature_names=hostile)
    strict(why.to_dict())
    assert all(name.isprintable() for name in why.names)
    assert all(text.isprintable() for text in why.rows()["why"])
    assert set(why.features()["feature"]) <= set(hostile)


# Other rows than the tree's


def test_rows_in_other_units_are_refused(X):
    told = r"the mean of x\d+ was .*pipeline\[:-1\]\.transform\(X\).*taxonomy\.unscale"
    for dtype in ("float32", "float64"):
        scaled = StandardScaler(with_mean=False).fit_transform(X).astype(dtype)
        for kind in (np.asarray, sparse.csr_array):
            model = Taxarbor(4, random_state=0).fit(kind(scaled))
            for other in (X, X[:, ::-1], scaled + 0.1, 2.0 * scaled):
                with pytest.raises(ValueError, match=told):
                    explain(model, kind(other.astype(dtype)))
            assert explain(model, kind(scaled.astype("float32"))).row_names is None
            assert explain(model, kind(scaled.astype("float64"))).row_names is None


def test_rows_far_from_zero_are_the_tree_s_own():
    rng = np.random.default_rng(0)
    far = np.array([1e5, 3e6, 0.0, 7.0]) + rng.normal(size=(500, 4)) * [1.0, 3.0, 1e-9, 0.0]
    for X in (far.astype("float32"), far):
        scaler = StandardScaler().fit(X)
        model = Taxarbor(4, random_state=0).fit(scaler.transform(X))
        own = model.taxonomy_.unscale(scaler.mean_, scaler.scale_)
        for taxonomy in (own, Taxarbor(4, random_state=0).fit(X)):
            assert explain(taxonomy, X).taxonomy.n_leaves == 4
        with pytest.raises(ValueError, match="X does not hold the rows"):
            explain(model, X)


# Names of nodes


def made(gaps, names=None):
    """Return a tree of one split into halves whose means differ by such gaps."""
    gaps = np.array(gaps, dtype=float)
    builder = TreeBuilder(4)
    W = np.ones_like(gaps)
    builder.add_split(0, [0, 0, 1, 1], LinearRule(np.stack([W, -W]), np.zeros(len(gaps))))
    return builder.freeze(feature_names=names, means=np.stack([0 * gaps, gaps, -gaps]))


def test_names_say_what_leads_there():
    for gaps, expected in [
        ([1.0, 0.0], ("higher x0", "lower x0")),
        ([1.0, 0.5], ("higher x0, higher x1", "lower x0, lower x1")),
        ([0.5, 1.0], ("higher x1, higher x0", "lower x1, lower x0")),
        ([1.0, 0.29], ("higher x0", "lower x0")),
        ([1.0, 0.31], ("higher x0, higher x1", "lower x0, lower x1")),
        ([1.0, 1.0, 1.0], ("higher x0, higher x1", "lower x0, lower x1")),
        ([1.0, -1.0], ("higher x0", "lower x0")),
        ([-1.0, -1.0], ("node 1", "node 2")),
    ]:
        assert name_nodes(made(gaps)) == ("all rows", *expected)
    taxonomy = made([1.0, 0.9, 0.8], ["fur", "s" * 60, "other"])
    taxonomy = dataclasses.replace(taxonomy, two_values=[[0.0, 1.0], [np.nan] * 2, [0.0, 1.0]])
    long = "s" * (LONGEST - len("higher …")) + "…"
    expected = ("all rows", f"has fur, higher {long}", f"no fur, lower s{long}")
    assert name_nodes(taxonomy) == expected


def test_names_of_every_tree(named, animals, whys):
    for node, name in enumerate(named.names[1:], start=1):
        reasons = [str(reason) for reason in named.taxonomy.reasons(node, 2)]
        assert name in (reasons[0], ", ".join(reasons))
    for why in whys:
        assert len(why.names) == why.taxonomy.n_nodes
        assert all(isinstance(name, str) and name.strip() for name in why.names)
        assert why.names[0] == "all rows"


def test_noise_has_no_path_and_weights_no_say_in_which_rows_these_are():
    planted = make_planted_tree(190, depth=2)
    far = 30.0 * np.random.default_rng(0).normal(size=(10, planted.X.shape[1]))
    X = np.concatenate([np.asarray(planted.X), far])
    model = Taxarbor(4, noise=0.05, random_state=0).fit(X)
    why, noise = explain(model, X), model.taxonomy_.tree.noise.tolist()
    told = why.row(noise[0])
    assert (told["leaf"], told["cluster"], told["steps"]) == (None, -1, [])
    assert set(why.rows()["row"]) == set(range(200)) - set(noise)
    predicted = model.predict(X)
    assert set(why.place(X)["row"]) == set(np.flatnonzero(predicted >= 0).tolist())
    weights = np.random.default_rng(1).uniform(0.0, 5.0, 200)
    heavy = Taxarbor(4, random_state=0).fit(X, sample_weight=weights)
    assert explain(heavy, X).row(3)["cluster"] == heavy.labels_[3]
    with pytest.raises(ValueError, match="does not hold the rows"):
        explain(heavy, X + X.std(axis=0))


def test_rows_beyond_the_sample_are_explained(monkeypatch):
    monkeypatch.setattr("taxarbor.estimators._taxarbor.SAMPLE_ROWS", 2000)
    monkeypatch.setattr("taxarbor.explain._names.MIN_SAMPLE", 2000)
    X = np.random.default_rng(0).normal(size=(9000, 5)) + 4.0 * np.eye(5)[np.arange(9000) % 5]
    model = Taxarbor(5, random_state=0).fit(X)
    why = explain(model, X)
    assert why.taxonomy.sizes[0] == 9000
    with pytest.raises(ValueError, match=r"^X "):
        explain(model, X + 0.5)
