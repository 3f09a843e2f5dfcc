"""What can be explained, what is refused, and the names of rows, columns and nodes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import TableEncoder, Taxarbor, make_planted_tree
from taxarbor.exchange import from_labels
from taxarbor.explain import Explanation, explain
from tests.explain.conftest import check_json, describe, steps_of_row
from tests.taxonomy.conftest import drop_rows
from tests.tree.conftest import bits


@pytest.fixture(scope="module")
def frame(X, animals):
    return pd.DataFrame(X, columns=list(animals.feature_names), index=animals.names)


def assert_same(one, other):
    """Compare explanations, to the bit."""
    assert describe(one) == describe(other)
    assert one.row_names == other.row_names
    assert one.names == other.names
    pd.testing.assert_frame_equal(one.rows(), other.rows())


def test_a_model_its_taxonomy_and_one_without_means_are_the_same(model, X):
    expected, bare = explain(model, X), replace(model.taxonomy_, statistics=None)
    assert isinstance(expected, Explanation)
    for given in (model, model.taxonomy_, bare):
        assert_same(explain(given, X), expected)
    np.testing.assert_array_equal(explain(bare, X).taxonomy.means, expected.taxonomy.means)


def test_arrays_of_every_kind(model, X):
    labels = from_labels(np.arange(len(X)) % 5)
    for convert in (
        *(np.asfortranarray, np.ndarray.tolist, pd.DataFrame, sparse.csr_array),
        *(sparse.csr_matrix, sparse.csc_array, sparse.coo_array),
    ):
        for given in (model.taxonomy_, labels):
            one, other = explain(given, X), explain(given, convert(X))
            assert bits(other.taxonomy.columns) == bits(one.taxonomy.columns)
            assert one.names == other.names
            np.testing.assert_allclose(one.least_margins, other.least_margins, atol=1e-9)
            np.testing.assert_allclose(one.taxonomy.means, other.taxonomy.means, atol=1e-12)


def test_numbers_of_every_kind(X):
    whole = X > 0.5
    model = Taxarbor(4, random_state=0).fit(whole.astype(float))
    expected = explain(model, whole.astype(float))
    for data in (whole, whole.astype(int), whole.astype("uint8"), whole.astype(object)):
        assert_same(explain(model, data), expected)
    single = X.astype("float32")
    model = Taxarbor(5, random_state=0).fit(single)
    why = explain(model, single)
    assert why.data.dtype == why.taxonomy.tree.rules[0].dtype == np.float32
    assert_same(why, explain(model, single.astype(float)))
    taxonomy = Taxarbor(3, random_state=0).fit(whole := np.round(4 * single)).taxonomy_
    why = explain(replace(taxonomy, statistics=None), whole.astype(int))
    np.testing.assert_array_equal(why.taxonomy.means, taxonomy.means)


def test_frames_name_rows_and_columns(model, X, frame, animals):
    taxonomy = model.taxonomy_.rename_features(animals.feature_names)
    named = explain(taxonomy, X, row_names=animals.names)
    fitted = Taxarbor(6, random_state=0).fit(frame)
    polars = pl.DataFrame(X, schema=list(animals.feature_names))
    for why in (
        explain(model, frame),
        explain(fitted, frame),
        explain(fitted, X, row_names=animals.names),
        explain(fitted, polars, row_names=animals.names),
        explain(model, polars, row_names=np.array(animals.names)),
    ):
        assert_same(why, named)
    assert explain(fitted, polars).row_names is None
    for index in (range(1000, 1206), pd.date_range("2020", periods=206)):  # no names
        assert explain(model, frame.set_axis(index)).row_names is None
    text = frame.set_axis([str(n) for n in range(len(frame))])
    assert explain(model, text).find_row("17") == 17
    categories = frame.set_axis(pd.Categorical(frame.index))
    assert explain(model, categories).row_names == tuple(frame.index)
    rows = [f"r{n}" for n in range(206)]
    assert explain(fitted, frame, row_names=rows).row_names == tuple(rows)
    assert explain(fitted, X, row_names=range(206)).find_row("12") == 12


def test_data_that_are_not_the_rows_of_the_tree(model, named, X):
    holes = [np.where(X == 0.5, bad, X) for bad in (np.nan, np.inf)]
    refused = [X[:-1], np.vstack([X, X]), X[:0], sparse.csr_array(X[:5]), X[:, 1:], X[:, 0]]
    refused += [X[None], *holes, sparse.csr_array(holes[0]), X.astype(complex)]
    for data in (*refused, np.full(X.shape, "a", dtype=object), None):
        with pytest.raises(ValueError, match=r"\bX\b"):
            explain(model, data)
    for data in (X[:-1], holes[0]):
        with pytest.raises(ValueError, match=r"\bX\b"):
            explain(from_labels(np.arange(206) % 3), data)
    with pytest.raises(ValueError, match="X has 3 features"):
        explain(Taxarbor(1).fit(X), X[:, :3])
    for wrong in (85, -1, 2 * 10**9):
        damaged = sparse.csr_array(X)
        damaged.indices[5] = wrong
        for ask in (lambda X: explain(model, X), named.place):
            with pytest.raises(ValueError, match=r"\bX\b"):
                ask(damaged)


def test_columns_of_another_frame(frame, X):
    fitted, column = Taxarbor(4, random_state=0).fit(frame), frame.columns[3]
    assert_same(explain(fitted, frame[frame.columns[::-1]]), explain(fitted, frame))
    backwards = pl.DataFrame(X, schema=list(frame.columns[::-1]))
    for other in (backwards, frame.rename(columns=str.upper)):
        with pytest.raises(ValueError, match=r"the mean of|X lacks columns"):
            explain(fitted, other)
    with pytest.raises(ValueError, match=f"mean of {column} was 0.*, and is 17,590 now"):
        explain(fitted, frame.assign(**{column: 17590.0}))


def test_there_must_be_a_name_for_each(model, X):
    for n_names in (0, 205, 207):
        with pytest.raises(ValueError, match=f"{n_names} row names for 206"):
            explain(model, X, row_names=["a"] * n_names)
    with pytest.raises(TypeError, match="row_names"):
        explain(model, X, row_names="a" * 206)
    for classes in (["a", "b"], [None] * 206):
        with pytest.raises(ValueError, match="206 rows"):
            explain(model, X, classes=classes)


def test_a_pipeline_is_explained_by_its_last_step(X):
    pipeline = make_pipeline(StandardScaler(), Taxarbor(4, random_state=0)).fit(X)
    with pytest.raises(TypeError, match="pipeline"):
        explain(pipeline, X)
    assert explain(pipeline[-1], pipeline[:-1].transform(X)).taxonomy.tree.n_leaves == 4


def test_columns_that_do_not_vary_are_no_reason(X):
    wide = np.column_stack([X, np.zeros(206), np.ones(206), np.full(206, 1e9)])
    for given in (Taxarbor(4, random_state=0).fit(wide), from_labels(np.arange(206) % 3)):
        why = explain(given, wide)
        assert not why.taxonomy.columns.is_boolean[-3:].any()
        for features in (why.deciding_features(1), why.distinctive_features(1, 88)):
            columns = {feature["column"] for feature in features}
            assert columns
            assert not columns & {85, 86, 87}


def test_rows_that_are_equal(X):
    why = explain(from_labels([0, 1, 0, 1, 2]), np.ones((5, 3)))
    check_json(describe(why))
    assert why.names == ("all rows", "node 1", "node 2", "node 3")
    assert (why.margins.values[0] == 0.0).all()
    assert why.margins.units[0] == 1.0
    assert why.rows()["why"].tolist() == [""] * 5
    assert why.deciding_features(1) == []
    doubled = np.vstack([X, X])
    why = explain(Taxarbor(5, random_state=0).fit(doubled), doubled)
    for row in range(0, 206, 10):
        one, other = (steps_of_row(why, n) for n in (row, row + 206))
        assert [step["why"] for step in one] == [step["why"] for step in other]


def test_one_row_and_one_column():
    why = explain(from_labels(["a"]), [[2.0]])
    check_json(describe(why))
    assert steps_of_row(why, 0) == []
    typical = [{"row": 0, "name": "row 0", "distance": 0.0}]
    assert why.examples(0) == {"typical": typical, "extreme": [], "borderline": []}
    assert why.distinctive_features(0) == why.deciding_features(0) == []
    two = explain(from_labels(["a", "b"]), [[2.0], [5.0]])
    assert two.names == ("all rows", "x0 at most 3.5", "x0 above 3.5")
    assert two.margins.values[0].tolist() == [1.0, 1.0]


def test_hostile_names_are_kept_and_shown_on_one_line(X, model):
    hostile = [f"<b>{j}</b>\n\x00\u202e" for j in range(85)]
    why = explain(model.taxonomy_.rename_features(hostile), X, row_names=["\n"] * 206)
    check_json(describe(why))
    assert all(name.isprintable() for name in why.names)
    assert all(text.isprintable() for text in why.rows()["why"])
    assert why.deciding_features(1)[0]["feature"] in hostile


# Rows elsewhere, and other rows than the tree's


def test_a_tree_of_counts_gets_its_rows(model, X):
    counts = drop_rows(model.taxonomy_)
    assert_same(explain(counts, X), explain(model, X))
    with pytest.raises(ValueError, match="X has 10 rows"):
        explain(counts, X[:10])
    sample = X[::2]
    assert explain(counts.attach(sample), sample).taxonomy.tree.sizes[0] == len(sample)


def test_files_are_read_and_dask_is_refused(model, X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    array = pytest.importorskip("dask.array")
    for taxonomy in (model, drop_rows(model.taxonomy_)):
        with pytest.raises(TypeError, match=r"^X must be rows in memory.*a sample, and attach"):
            explain(taxonomy, array.from_array(X))
    with pytest.raises(FileNotFoundError):
        explain(model, "nowhere.npy")
    for on_disk in (tmp_path / "x.npy", np.load(tmp_path / "x.npy", mmap_mode="r")):
        assert_same(explain(model, on_disk), explain(model, X))


def test_rows_in_other_units_are_refused(X):
    for dtype in ("float32", "float64"):
        scaled = StandardScaler(with_mean=False).fit_transform(X).astype(dtype)
        for kind in (np.asarray, sparse.csr_array):
            model = Taxarbor(4, random_state=0).fit(kind(scaled))
            for other in (X, X[:, ::-1], scaled + 0.1, 2.0 * scaled):
                with pytest.raises(ValueError, match=r"the mean of x\d+ was "):
                    explain(model, kind(other.astype(dtype)))
            for same in ("float32", "float64"):
                assert explain(model, kind(scaled.astype(same))).row_names is None


def test_rows_far_from_zero_are_the_tree_s_own():
    rng = np.random.default_rng(0)
    far = np.array([1e5, 3e6, 0.0, 7.0]) + rng.normal(size=(500, 4)) * [1.0, 3.0, 1e-9, 0.0]
    for X in (far.astype("float32"), far):
        model = Taxarbor(4, random_state=0).fit(StandardScaler().fit(X).transform(X))
        for encoder in (None, TableEncoder(scale="standard")):
            same = Taxarbor(4, encoder=encoder, random_state=0).fit(X)
            assert explain(same, X).taxonomy.tree.n_leaves == 4
        with pytest.raises(ValueError, match="X does not hold the rows"):
            explain(model, X)


def test_rows_in_another_order_are_warned_of(X, model):
    order = np.random.default_rng(0).permutation(len(X))
    with pytest.warns(UserWarning, match="in the same order"):
        explain(model, X[order])


def test_noise_has_no_path_and_weights_may_shift_means():
    planted = make_planted_tree(190, depth=2)
    far = 30.0 * np.random.default_rng(0).normal(size=(10, planted.X.shape[1]))
    X = np.concatenate([np.asarray(planted.X), far])
    model = Taxarbor(4, noise=0.05, random_state=0).fit(X)
    why, noise = explain(model, X), model.taxonomy_.tree.noise.tolist()
    assert steps_of_row(why, noise[0]) == []
    assert set(why.rows()["row"]) == set(range(200)) - set(noise)
    assert set(why.place(X)["row"]) == set(np.flatnonzero(model.predict(X) >= 0).tolist())
    weights = np.random.default_rng(1).uniform(0.0, 5.0, 200)
    heavy = Taxarbor(4, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(explain(heavy, X).taxonomy.tree.labels, heavy.labels_)
    with pytest.raises(ValueError, match="X does not hold the rows"):
        explain(heavy, X + X.std(axis=0))


def test_rows_beyond_the_sample_of_the_fit_are_explained():
    n_rows = 160_000  # a taxonomy of five clusters is fitted to fewer rows
    X = np.random.default_rng(0).normal(size=(n_rows, 5)).astype("f4")
    X += 4.0 * np.eye(5, dtype="f4")[np.arange(n_rows) % 5]
    model = Taxarbor(5, random_state=0).fit(X)
    assert explain(model, X).taxonomy.tree.sizes[0] == n_rows
    with pytest.raises(ValueError, match=r"^X "):
        explain(model, X + 0.5)


# Names of nodes


def test_names_of_every_tree(named, cases):
    for node, name in enumerate(named.names[1:], start=1):
        reasons = [str(reason) for reason in named.taxonomy.reasons(node, 2)]
        assert name in (reasons[0], ", ".join(reasons))
    for case in cases.values():
        names = case.why.names
        assert len(names) == case.tree.n_nodes
        assert all(isinstance(name, str) and name.strip() for name in names)
        assert names[0] == "all rows"
