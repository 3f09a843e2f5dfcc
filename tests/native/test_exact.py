"""Sums without rounding, against Python's whole numbers and fractions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from taxarbor import native
from taxarbor.rows import as_rows

UNITS = {np.dtype("f4"): Fraction(1, 2**149), np.dtype("f8"): Fraction(1, 2**1074)}
LIMBS = {np.dtype("f4"): 10, np.dtype("f8"): 67}
MOST = 2**31 - 1


def dense(X):
    return native.Data.dense(X, np.zeros(X.shape[1]), 1)


def csr(X):
    """Return rows that store all but zeros; NaN too."""
    S = sparse.csr_array(X)
    columns, starts = S.indices.astype("i4"), S.indptr.astype("i8")
    return native.Data.csr(S.data, columns, starts, X.shape[1], np.zeros(X.shape[1]), 1)


def whole(limbs):
    """Return limbs as whole numbers of units."""
    return [
        sum(int(limb) << (32 * k) for k, limb in enumerate(row))
        for row in limbs.reshape(-1, limbs.shape[-1])
    ]


def expected(X, labels, counts, n_labels):
    """Return the sums as whole numbers of units, by Python's fractions."""
    n, p = X.shape
    sums = [Fraction(0)] * (n_labels * p)
    for i in range(n):
        label = 0 if labels is None else int(labels[i])
        if label < 0:
            continue
        for j in range(p):
            if not np.isnan(X[i, j]):
                times = 1 if counts is None else int(counts[i])
                sums[label * p + j] += times * Fraction(float(X[i, j]))
    units = [s / UNITS[X.dtype] for s in sums]
    assert all(u.denominator == 1 for u in units)
    return [int(u) for u in units]


def strange(rng, shape, dtype):
    """Return values of all sizes: subnormal, huge, negative, zero and missing ones."""
    bits = rng.integers(0, 2**32 if dtype == "f4" else 2**64, shape, dtype="u8")
    X = bits.astype("u4").view("f4") if dtype == "f4" else bits.view("f8")
    X = np.where(np.isinf(X), np.nan, X)
    tiny, info = np.nextafter(np.zeros((), dtype), np.ones((), dtype)), np.finfo(dtype)
    special = [0.0, -0.0, tiny, -tiny, info.tiny, info.max, -info.max, np.nan, 1.0, -1.0]
    is_special = rng.random(shape) < 0.3
    X = np.where(is_special, rng.choice(np.array(special, dtype=dtype), shape), X)
    return np.ascontiguousarray(X, dtype=dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("make", [dense, csr])
@pytest.mark.parametrize("seed", range(6))
def test_exact_sums_are_those_of_fractions(dtype, make, seed):
    rng = np.random.default_rng(seed)
    n, p, K = rng.integers(1, [60, 6, 5])
    X = strange(rng, (n, p), dtype)
    labels = None if seed % 3 == 0 else rng.integers(-1, K, n).astype("i4")
    counts = None
    if seed % 2:
        counts = rng.choice([0, 1, 2, 65535, 65536, 70001, MOST], n).astype("i4")
    sums = native.exact_sums(make(X), labels, counts, K)
    assert sums.shape == (K, p, LIMBS[X.dtype])
    assert ((sums[..., :-1] >= 0) & (sums[..., :-1] < 2**32)).all()
    assert whole(sums) == expected(X, labels, counts, K)


def in_units(X):
    """Return finite values as whole numbers of units, NaN as none."""
    shift = {"f4": 149, "f8": 1074}[X.dtype.str[1:]]
    mantissas, exponents = np.frexp(np.nan_to_num(X, nan=0.0).astype("f8"))
    digits = (mantissas * 2.0**53).astype("i8")
    bits = exponents.astype("i8") - 53 + shift
    values = [
        d << b if b >= 0 else d >> -b
        for d, b in zip(digits.ravel().tolist(), bits.ravel().tolist(), strict=True)
    ]
    return np.array(values, dtype=object).reshape(X.shape)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", ["normal", "heavy", "rising", "missing", "far", "small"])
@pytest.mark.parametrize(("n_labels", "most"), [(1, 1), (3, 300), (200, 1)])
def test_ordinary_rows_are_added_up_exactly(dtype, kind, n_labels, most):
    """Of most of these values the sums are short ones in double, handed on now and then."""
    rng = np.random.default_rng(n_labels)
    shape = n, p = 1500, 70
    X = rng.normal(size=shape)
    if kind == "heavy":
        X = np.exp(6.0 * X) * rng.choice([-1, 1], shape)
    if kind == "rising":
        X *= 1.02 ** np.arange(n)[:, None]
    if kind == "missing":
        X[rng.random(shape) < 0.3] = np.nan
    if kind == "far":
        X = np.ldexp(X, rng.integers(-100, 100, p) * (1 if dtype == "f4" else 10))
        X[rng.random(shape) < 0.5] = 0.0
    if kind == "small":
        X = np.ldexp(X, -130 if dtype == "f4" else -1060)
    X = X.astype(dtype)
    labels = rng.integers(-1, n_labels, n).astype("i4")
    counts = rng.integers(0, most + 1, n).astype("i4") if most > 1 else None
    units = in_units(X) * (1 if counts is None else counts.astype(object)[:, None])
    sums = np.zeros((n_labels + 1, p), dtype=object)
    np.add.at(sums, labels, units)
    found = native.exact_sums(dense(X), labels, counts, n_labels)
    assert whole(found) == sums[:-1].ravel().tolist()
    np.testing.assert_array_equal(native.exact_sums(csr(X), labels, counts, n_labels), found)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_limbs_hold_the_greatest_values_and_counts(dtype):
    greatest = np.finfo(dtype).max
    X = np.array([[greatest, -greatest, greatest, np.nan]] * 50, dtype=dtype)
    X[25:, 2] *= -1
    counts = np.full(50, MOST, dtype="i4")
    sums = native.exact_sums(dense(X), None, counts, 1)
    assert whole(sums) == expected(X, None, counts, 1)
    # As of 2^40 such blocks.
    total = sum(sums << k for k in (0, 20)) if dtype == "f4" else sums + sums
    values = native.exact_values(total, dtype == "f4")
    if dtype == "f8":
        assert values.tolist() == [[np.inf, -np.inf, 0.0, 0.0]]
    else:
        assert values[0, 0] == 50 * MOST * float(greatest) * (1 + 2**20)
        assert values[0, 1:].tolist() == [-values[0, 0], 0.0, 0.0]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_do_not_depend_on_blocks_or_alignment(dtype):
    rng = np.random.default_rng(3)
    X = strange(rng, (200, 7), dtype)
    labels, counts = rng.integers(-1, 3, 200).astype("i4"), rng.integers(0, 9, 200).astype("i4")
    whole_sums = native.exact_sums(dense(X), labels, counts, 3)
    for cuts in ([1], [13, 14, 150], range(1, 200)):
        total = np.zeros_like(whole_sums)
        for a, b in pairwise([0, *cuts, 200]):
            total += native.exact_sums(dense(X[a:b]), labels[a:b], counts[a:b], 3)
        # Limbs of a sum of blocks need not be below 2^32, but mean the same.
        assert whole(total) == whole(whole_sums)
        np.testing.assert_array_equal(
            native.exact_values(total, dtype == "f4"),
            native.exact_values(whole_sums, dtype == "f4"),
        )
    order = rng.permutation(200)
    again = native.exact_sums(
        dense(X).take(order, np.zeros(7)), labels[order], counts[order], 3
    )
    np.testing.assert_array_equal(again, whole_sums)


def test_many_rows_of_many_copies_carry_in_between():
    """More copies than one limb may take: 20,000 rows of 65,535 each."""
    X = np.full((20000, 1), np.nextafter(np.float32(2.0), np.float32(0.0)))
    counts = np.full(len(X), 65535, dtype="i4")
    expected = 20000 * 65535 * int(Fraction(float(X[0, 0])) / UNITS[X.dtype])
    assert whole(native.exact_sums(dense(X), None, counts, 1)) == [expected]
    assert whole(native.exact_sums(dense(-X), None, counts, 1)) == [-expected]


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.floats(allow_infinity=False, width=32), min_size=1, max_size=30),
    st.integers(0, MOST),
)
def test_values_of_float32_are_the_nearest_doubles(values, count):
    X = np.array(values, dtype="f4")[:, None]
    sums = native.exact_sums(dense(X), None, np.full(len(X), count, dtype="i4"), 1)
    exact = sum((Fraction(float(x)) for x in X[:, 0] if not np.isnan(x)), Fraction(0)) * count
    assert native.exact_values(sums, True)[0, 0] == float(exact)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.floats(allow_infinity=False), min_size=1, max_size=30))
def test_values_of_float64_are_the_nearest_doubles(values):
    X = np.array(values)[:, None]
    exact = sum((Fraction(x) for x in values if not np.isnan(x)), Fraction(0))
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = np.inf if exact > 0 else -np.inf
    assert native.exact_values(native.exact_sums(dense(X), None, None, 1), False) == nearest


@settings(deadline=None, max_examples=300)
@given(st.integers(-(2**340), 2**340), st.integers(0, 3))
def test_limbs_of_any_kind_are_rounded_to_the_nearest(number, shape):
    """Ties too: a number of few bits, shifted, and what is next to it."""
    for value in (number, (number >> 286 << 286) + shape - 1):
        limbs, rest = [], value
        for _ in range(9):
            limbs.append(rest & 0xFFFFFFFF)
            rest >>= 32
        loose = np.array([*limbs, rest], dtype="i8")
        loose[2] += 5 << 32
        loose[3] -= 5
        assert native.exact_values(loose, True) == float(Fraction(value, 2**149))


def test_rows_have_exact_sums_about_any_centre():
    X = np.array([[0.1, 2.0], [0.2, np.nan], [0.3, 5.0]], dtype="f4")
    labels, counts = np.array([1, 1, -1], dtype="i4"), np.array([3, 1, 1], dtype="i4")
    rows = as_rows(X, center=np.array([7.0, -3.0]))
    sums = rows.exact_sums(labels, counts, 2)
    np.testing.assert_array_equal(
        sums, as_rows(sparse.csr_array(X)).exact_sums(labels, counts, 2)
    )
    three, two = Fraction(float(X[0, 0])) * 3, Fraction(float(X[1, 0]))
    assert native.exact_values(sums, True).tolist() == [[0.0, 0.0], [float(three + two), 6.0]]
    taken = rows.take(np.array([2, 2]), np.zeros(2)).exact_sums(None, None, 1)
    assert native.exact_values(taken, True).tolist() == [[2 * float(X[2, 0]), 10.0]]


LABELS = np.zeros(3, dtype="i4")
DATA = dense(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: native.exact_sums(DATA, LABELS, None, 0), "n_labels must be at least 1"),
        (lambda: native.exact_sums(DATA, LABELS[:2], None, 1), r"labels .*shape \(3,\)"),
        (lambda: native.exact_sums(DATA, LABELS.astype("i8"), None, 1), "labels .*int32"),
        (lambda: native.exact_sums(DATA, LABELS + 1, None, 1), "labels must lie .*got 1 at 0"),
        (lambda: native.exact_sums(DATA, None, LABELS - 1, 1), "counts must lie .*got -1"),
        (
            lambda: native.exact_sums(dense(np.array([[1.0], [-np.inf]])), None, None, 1),
            "infinite one in row 1",
        ),
        (
            lambda: native.exact_sums(csr(np.array([[0.0], [np.inf]], "f4")), None, None, 1),
            "infinite one in row 1",
        ),
        (lambda: native.exact_values(np.zeros((2, 9), "i8"), True), "last axis has 10"),
        (lambda: native.exact_values(np.zeros((2, 10), "i8"), False), "last axis has 67"),
        (lambda: native.exact_values(np.zeros((2, 10)), True), "limbs .*got float64"),
        (lambda: native.exact_values(np.zeros((10, 10), "i8").T, True), "C-contiguous"),
    ],
)
def test_wrong_arguments_of_exact_sums_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- products --------------------------------------------------------------------------------


def on_grid(rng, n, q, unit, most=2**22):
    return (rng.integers(-most, most + 1, (n, q)) * unit).astype("f4")


def exact_products(Z, unit):
    numbers = (Z.astype("f8") / unit).astype(object)
    numbers = np.vectorize(int, otypes=[object])(numbers)
    return numbers.T @ numbers


@pytest.mark.parametrize(("n", "q"), [(1, 1), (3, 5), (255, 8), (256, 7), (700, 19), (0, 2)])
@pytest.mark.parametrize("unit", [1.0, 2.0**-20, 2.0**60])
def test_exact_gram_is_that_of_whole_numbers(n, q, unit):
    rng = np.random.default_rng(n)
    Z = on_grid(rng, n, q, unit)
    hi, lo = native.exact_gram(Z, unit)
    assert hi.shape == lo.shape == (q, q)
    assert ((lo >= 0) & (lo < 2**40)).all()
    found = hi.astype(object) * 2**40 + lo.astype(object)
    assert (found == exact_products(Z, unit)).all()


def test_exact_gram_holds_the_greatest_values():
    n, most = 2**18 + 300, 2.0**22
    Z = np.full((n, 2), most, dtype="f4")
    Z[:, 1] *= -1
    hi, lo = native.exact_gram(Z, 1.0)
    found = hi.astype(object) * 2**40 + lo.astype(object)
    assert found.tolist() == [[n * 2**44, -n * 2**44], [-n * 2**44, n * 2**44]]


def test_exact_gram_does_not_depend_on_blocks():
    Z = on_grid(np.random.default_rng(0), 1000, 11, 0.25)
    hi, lo = native.exact_gram(Z, 0.25)
    for cuts in ([1], [255, 257, 800], [500]):
        parts = [native.exact_gram(np.ascontiguousarray(z), 0.25) for z in np.split(Z, cuts)]
        total = sum(parts[1:], parts[0])
        carried = total[1] >> 40
        np.testing.assert_array_equal(total[0] + carried, hi)
        np.testing.assert_array_equal(total[1] - (carried << 40), lo)


@pytest.mark.parametrize(
    ("Z", "unit", "message"),
    [
        ([[1.0, 0.25]], 0.5, "multiples of the unit"),
        ([[2.0**22 + 1]], 1.0, "at most 4194304"),
        ([[np.nan]], 1.0, "multiples of the unit"),
        ([[np.inf]], 1.0, "multiples of the unit"),
        ([[1.0]], 3.0, "unit must be a power of two.*got 3"),
        ([[1.0]], 0.0, "unit must be"),
        ([[1.0]], -1.0, "unit must be"),
        ([[1.0]], np.inf, "unit must be"),
        ([[1.0]], np.nan, "unit must be"),
        ([[1.0]], 5e-324, "unit must be"),
        ([1.0], 1.0, r"shape \(any, any\)"),
    ],
)
def test_wrong_arguments_of_exact_gram_are_refused(Z, unit, message):
    with pytest.raises(ValueError, match=message):
        native.exact_gram(np.array(Z, dtype="f4"), unit)
