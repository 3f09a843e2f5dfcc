"""What users pass to estimators: errors name the parameter and what is wrong."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from taxarbor import HMMC, TableWarning, Taxarbor
from taxarbor._errors import FileFormatError, InputError, InputTypeError, TaxarborError
from taxarbor.tables.checks import EXACT_REPEATS, MAX_REPEATS, count_repeats

LAYOUTS = (np.asarray, sparse.csr_array)
MODELS = (Taxarbor, HMMC)


@pytest.fixture(scope="module", name="X")
def cloud():
    X = np.random.default_rng(0).standard_normal((60, 4))
    X.flags.writeable = False
    return X


def refuse(X, kind=InputError, method=None):
    """Check that a fit to plain numbers refuses a table; return the message."""
    with pytest.raises(kind) as caught:
        (method or Taxarbor(2, encoder=None).fit)(X)
    assert isinstance(caught.value, InputError)
    return str(caught.value)


def test_an_error_names_the_parameter_as_the_caller_knows_it():
    error = InputError("must be at least 1, got 0", "n_clusters")
    assert str(error) == error.message() == "n_clusters must be at least 1, got 0"
    assert error.message({"n_clusters": "-k"}.get) == "-k must be at least 1, got 0"
    assert error.message({}.get) == str(error)
    for kind in (InputError, InputTypeError, FileFormatError):
        assert issubclass(kind, TaxarborError)
        assert issubclass(kind, ValueError)
    assert issubclass(InputTypeError, TypeError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# Rows


def test_not_finite(X):
    values = (math.nan, math.inf, -math.inf)
    for layout, dtype, value in itertools.product(LAYOUTS, ("float64", "float32"), values):
        bad = X.astype(dtype)
        bad[3, 2] = value
        assert ("NaN" if math.isnan(value) else "infinity") in refuse(layout(bad))
    for missing in (None, math.nan):
        bad = X.astype(object)
        bad[3, 2] = missing
        assert "NaN" in refuse(bad)


def test_no_rows_of_numbers():
    for bad in (
        *(np.empty((0, 3)), np.ones((1, 3)), np.empty((5, 0)), [], np.arange(5.0)),
        *(pd.Series([1.0, 2.0]), np.ones((2, 2, 2)), [[[1.0], [2.0]]], 3.0, None),
        *(sparse.coo_array(np.ones(5)), sparse.csr_array(np.ones(5))),
        *(sparse.coo_array(np.ones((2, 2, 2))), sparse.csr_array((1, 3))),
        *([["a", "b"], ["c", "d"]], np.array([["a", 1], ["b", 2]], dtype=object)),
        *(np.ones((3, 2)) * 1j, sparse.csr_array((0, 3)), [[10**400, 1], [2, 3]]),
        np.array([[{}], [{}]]),
    ):
        refuse(bad)


def test_duplicate_names(X):
    expected = Taxarbor(3, random_state=0, encoder=None).fit(X).labels_
    for names, last in (("abba", "a_2"), ((1, 2, 1, 2), "2_2"), (("a", "b", "c", "a"), "a_2")):
        frame = pd.DataFrame(X, columns=[*names])
        with pytest.warns(TableWarning, match=f"names of columns are repeated: now .*{last}"):
            model = Taxarbor(3, random_state=0, encoder=None).fit(frame)
        with pytest.warns(TableWarning, match=last):
            np.testing.assert_array_equal(model.predict(frame), expected)
        assert model.taxonomy_.feature_names[-1] == last


def test_sparse_indices_that_point_outside(X):
    """Each of these ended the process."""
    fitted = Taxarbor(3, random_state=0).fit(X)
    changes = (("indices", 5, 2 * 10**9), ("indices", 5, -1), ("indptr", 2, 10**6))
    layouts = sparse.csr_array, sparse.csc_array
    for layout, (part, place, value) in itertools.product(layouts, changes):
        bad = layout(X)
        getattr(bad, part)[place] = value
        for method in (None, fitted.predict):
            assert "damaged sparse matrix" in refuse(bad, method=method)
    for axis in (0, 1):
        bad = sparse.coo_array(X)
        bad.coords[axis][5] = 2 * 10**9
        assert "damaged sparse matrix" in refuse(bad)


# scikit-learn warns on its way: it sums the values to see whether they are finite.
@pytest.mark.filterwarnings("ignore:invalid value|overflow:RuntimeWarning")
def test_numbers_whose_powers_do_not_fit(X, tmp_path):
    scales = {"float64": (1e300, 1e75, 1e-300, 1e-75, 1e-312), "float32": (1e30, 1e-30)}
    for layout, dtype in itertools.product(LAYOUTS, scales):
        for scale in scales[dtype]:
            word = "divide" if scale > 1 else "multiply"
            message = refuse(layout((X * scale).astype(dtype)))
            assert dtype in message
            assert word in message
        largest = (np.sign(X) * float(np.finfo(dtype).max)).astype(dtype)
        assert "divide" in refuse(layout(largest))
    for dtype, far in (("float64", 1e300), ("float64", -1e200), ("float32", 1e30)):
        far_column = np.append(X, np.full((len(X), 1), far), axis=1).astype(dtype)
        for layout in LAYOUTS:
            assert "subtract" in refuse(layout(far_column))
    np.save(tmp_path / "far.npy", far_column)
    assert "subtract" in refuse(tmp_path / "far.npy")


def test_wide_range_is_fine(X):
    wide = (("float64", 220), ("float64", -220), ("float32", 43), ("float32", -43))
    for (dtype, power), layout, method in itertools.product(wide, LAYOUTS, MODELS):
        scaled = layout((X * 2.0**power).astype(dtype))
        setting = {"random_state": 0} | ({"balance": None} if method is HMMC else {})
        model = method(5, **setting).fit(scaled)
        plain = method(5, **setting).fit(layout(X.astype(dtype)))
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_array_equal(model.predict(scaled), model.labels_)


def test_types_of_numbers(X):
    def rule(table):
        return Taxarbor(3, encoder=None, random_state=0).fit(table).taxonomy_.tree.rules[0]

    for dtype, layout in itertools.product(("float64", "float32"), LAYOUTS):
        assert rule(layout(X.astype(dtype))).dtype == dtype
    whole = np.abs(np.rint(X * 3))
    for dtype in (int, np.int8, np.uint16, np.longdouble, object):
        assert rule(whole.astype(dtype)).dtype == np.float64
        np.testing.assert_array_equal(rule(whole.astype(dtype)).weights, rule(whole).weights)
    np.testing.assert_array_equal(rule(X.tolist()).weights, rule(X).weights)


def test_new_rows(X):
    fitted = Taxarbor(2, encoder=None, random_state=0).fit(X)
    for bad in (
        *(np.ones((2, 3)), sparse.csr_array((2, 5)), np.ones(4)),
        *([["a"] * 4], [[10**400] * 4]),
    ):
        refuse(bad, method=fitted.predict)
    assert fitted.predict(np.ones((0, 4))).tolist() == []
    with pytest.raises(NotFittedError):
        Taxarbor().predict(X)
    single = Taxarbor(2, random_state=0).fit(X.astype(np.float32))
    with pytest.raises(ValueError, match="float32"):
        single.predict(X * 1e300)
    for model in (Taxarbor(4, random_state=0).fit(X), HMMC(4, random_state=0).fit(X)):
        for scale, layout in itertools.product((1e300, 1e-320), LAYOUTS):
            assert set(model.predict(layout(X * scale))) <= set(range(4))


# Parameters

BAD_TYPES = {
    "n_init": (2.0, "2", None, True, np.True_, np.float64(2), [2], 2j),
    "alpha": ("0.5", None, True, 1j, [0.5], np.array([0.5])),
    **{"n_clusters": (2.5, "a", True), "branching": (None,), "max_depth": (1.0,)},
    **{"n_jobs": ("2", 1.5, True, [2]), "beta": (None,)},
    **{"max_features": (2.0,), "min_leaf_size": (1.5,), "column_weights": ([1],)},
}
BAD_VALUES = {
    **{"n_clusters": (0, -1, 61), "branching": (1,), "max_leaf_size": (0,)},
    **{"n_init": (0, -1, np.int64(-5)), "n_jobs": (0,), "beta": (math.inf,), "tol": (-0.1,)},
    "alpha": (
        *(-1, -1e-300, math.nan, math.inf, -math.inf, np.float32("nan")),
        *(10**400, 10**5000, Fraction(10**400)),
    ),
    **{"penalty": ("l3",), "solver": ("sgd",), "center": ("origin",)},
    **{"max_features": (0,), "min_leaf_size": (0,)},
    "column_weights": ({"x0": 0}, {"x0": "1"}, {"x0": math.nan}, {"x9": 1}, {"x0": True}),
    "units": ("cm", "RAW", "", None, 3, ["raw"], ("raw",)),
    "balance": (
        *((1.2, 1.5), (0.5, 0.8), -0.1, 1.5, math.nan, math.inf, (0.5, math.nan), (-1, 1)),
        *((1, 0), "x", (0.9,), (0.9, 1.0, 1.1), ("a", "b"), True, {}, 1j, 10**400),
    ),
}


@pytest.mark.parametrize("model", MODELS)
def test_parameters_that_are_refused(X, model):
    for kind, cases in ((InputTypeError, BAD_TYPES), (InputError, BAD_VALUES)):
        for name in cases.keys() & model().get_params():
            for value in cases[name]:
                refused = model(**{name: value})
                with pytest.raises(kind) as caught:
                    refused.fit(X)
                assert caught.value.parameter == name
                with pytest.raises(NotFittedError):
                    refused.predict(X)
    with pytest.raises(InputError, match="n_clusters"):
        model(None).fit(X)


def test_parameters_that_are_accepted(X):
    accepted = {
        "n_init": (1, np.int64(1), np.uint8(1)),
        "alpha": (0, 0.003, np.float32(0.003), Fraction(3, 1000)),
        "n_jobs": (None, 1, np.int64(1), -1),
        "balance": (None, 0, 0.25, 1, (0.9, 1.1), [0.5, 2], (0, 1), np.float32(0.5)),
    }
    for name, values in accepted.items():
        for value in values:
            assert HMMC(2, random_state=0, **{name: value}).fit(X).labels_.max() == 1


# Weights


@given(st.lists(st.just(0.0) | st.floats(1e-6, 1e6), min_size=2, max_size=50).filter(any))
def test_each_row_is_within_one_copy_of_its_share(values):
    weights = np.array(values)
    repeats = count_repeats(weights)
    assert (repeats[weights == 0] == 0).all()
    due = weights * (repeats.sum() / weights.sum())
    assert np.abs(repeats - due).max() < 1 + 1e-6


def test_integer_weights_are_exact_until_they_are_large():
    few = np.array([3.0, 0.0, EXACT_REPEATS[1] - 4, 1.0])
    np.testing.assert_array_equal(count_repeats(few), few)
    assert count_repeats(few + few[::-1]).sum() == 4 * MAX_REPEATS[0]
    large = np.random.default_rng(0).uniform(size=20_000)
    assert count_repeats(large).sum() == 20_000
    in_turns = np.tile([0.5, 0.5, 1.9], 8000)
    repeats = count_repeats(in_turns).reshape(-1, 3).mean(axis=0)
    np.testing.assert_allclose(repeats, in_turns[:3] / in_turns.mean(), rtol=0.05)
