"""What numbers may be other than measurements."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import datasets

from taxarbor.tables._column_checks import (
    find_copies,
    find_sentinels,
    is_identifier,
    is_named_like_identifier,
    look_like_counts,
    looks_like_bits,
    looks_like_codes,
)

TABLES = ("iris", "wine", "breast_cancer", "diabetes", "linnerud", "digits")
RNG = np.random.default_rng(0)
REPEATED = "customer_id unitid subjid personid custno idnum bookpageID"


@pytest.mark.parametrize("table", TABLES)
def test_no_false_alarms(table):
    bunch = getattr(datasets, f"load_{table}")()
    names = [str(name) for name in bunch.feature_names]
    for name, values in zip(names, bunch.data.T, strict=True):
        assert not is_identifier(name, values)
        assert find_sentinels(values) == ()
        assert not looks_like_codes(name, values)
    assert find_copies(bunch.data) == []
    assert not looks_like_bits(bunch.data.astype(np.uint8))
    assert not look_like_counts(bunch.data)


def test_names_of_identifiers():
    identifiers = (
        "id|ID|StoreID|customer_id|customerid|PassengerId|order number|order_no|OrderNo|row|"
        "index|Unnamed: 0|key|#|No.|user.id|id_customer|EmployeeNumber|SerialNo|CUSTOMERID|"
        "rownames|seqn|idno|SK_ID_CURR|storeid|Kundennummer|level_0|emp_no|GUID|Serial|Sl No|"
        "Rec#|ids|ticket|user|case|sample|patient|subject|participant|respondent|MRN|VpNr|houseid|"
        "fid|Matrikelnummer|gid|PK|numero|nro"
    )
    others = (
        "grid|bid|paid|width|humid|valid|age|price index|body mass index|phone number|keys|"
        "number of rooms|arrow|idle|EmployeeCount|acid|x0|residual|covid|hybrid|# of rooms"
    )
    assert all(map(is_named_like_identifier, identifiers.split("|")))
    assert not any(map(is_named_like_identifier, others.split("|")))


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("x", np.arange(1.0, 6.0), True),
        ("x", np.arange(300.0) + 1000, True),
        ("x", RNG.permutation(300.0 + np.arange(300)), True),
        ("x", np.sort(RNG.choice(1000, 700, replace=False)), True),
        ("x", RNG.permutation(np.arange(1.0, 81.0)), True),
        ("x", np.array([1.0, 2.0, 4.0, 5.0, 7.0]), True),
        ("x", np.cumsum(RNG.integers(1, 3, 40)) + 1000.0, True),
        ("x", RNG.choice(250, 150, replace=False), False),
        ("StoreID", np.array([5.0, 900.0, 17.0]), True),
        ("customer_id", RNG.choice(1000.0 * np.arange(200), 200, replace=False), True),
        *((name, np.repeat(np.arange(50.0), 2), True) for name in REPEATED.split()),
        ("grid", np.array([5.0, 900.0, 17.0]), False),
        ("age", np.array([3.0, 1.0, 2.0, 7.0, 6.0, 5.0, 4.0]), False),
        ("age", np.array([18.0, 19.0, 20.0, 22.0]), False),
        ("year", np.arange(1900.0, 2021.0), False),
        ("salary", np.append(RNG.choice(19000, 1427, replace=False), np.arange(43)), False),
        ("population", np.sort(RNG.choice(10**6, 500, replace=False)), False),
        ("id", RNG.normal(size=100), False),
        ("id", np.array([1.0, 2.0]), False),
    ],
)
def test_identifiers(name, values, expected):
    assert is_identifier(name, values.astype(np.float64)) is expected


@pytest.mark.parametrize(
    ("values", "codes", "expected"),
    [
        (RNG.normal(50, 10, 500), [-999] * 20, (-999,)),
        (RNG.normal(0, 10, 500), [9999] * 20 + [-999] * 20, (-999, 9999)),
        (RNG.integers(1, 6, 500), [99] * 20, (99,)),
        (RNG.integers(0, 20, 500), [97, 98, 99] * 10, (97, 98, 99)),
        (RNG.integers(0, 2, 500), [-9] * 20, (-9,)),
        (RNG.integers(1, 800, 500), [-1] * 900, (-1,)),
        (RNG.integers(18, 80, 500), [-1] * 20, (-1,)),
        (RNG.gamma(2, 50, 500), [-99.9] * 20, (-99.9,)),
        (RNG.integers(18, 90, 500), [99], ()),
        (RNG.integers(18, 90, 500), [99] * 20, ()),
        (RNG.normal(50, 10, 500), [-999] * 3, ()),
        (np.minimum(RNG.gamma(2, 1e5, 500), 5e5), [500001] * 20, ()),
        (RNG.gamma(2, 5e4, 500) * (RNG.random(500) < 0.3), [0], ()),
        (np.minimum(RNG.gamma(1, 50, 500).round(), 99), [99], ()),
        (RNG.choice([9, 19, 29, 49], 500), [999] * 20, ()),
        (RNG.integers(-1, 2, 500), [1], ()),
        (RNG.integers(-10, 30, 500), [-1], ()),
        (RNG.integers(-9, 10, 500), [-9] * 20, ()),
        (RNG.normal(20, 5, 500), [-200] * 20, (-200,)),
        (RNG.integers(0, 9000, 500), [365243] * 20, ()),
        (RNG.integers(0, 300, 500), [646] * 9, ()),
        (np.arange(500) % 100, [999] * 50, (999,)),
        (np.arange(500) % 100, [99999] * 50, (99999,)),
        (RNG.integers(18, 65, 500), [99] * 50, (99,)),
        (RNG.integers(18, 65, 500), [98, 99] * 25, (98, 99)),
        (np.append(RNG.normal(0, 10, 500), 1e6), [-999] * 80, (-999,)),
        ([0, 1] * 50, [99] * 9, (99,)),
        (RNG.choice([4.99, 9.99, 14.99, 29.99], 500), [99.99] * 20, ()),
        (np.full(100, 3.0), [99] * 20, ()),
        (np.full(100, np.nan), [np.nan], ()),
    ],
)
def test_sentinels(values, codes, expected):
    assert find_sentinels(np.append(values, codes).astype(np.float64)) == expected


def test_codes_need_a_name():
    soil = RNG.integers(1, 41, 5000).astype(np.float64)
    for name in ("Soil_Type", "regionCode", "Pclass", "bodenklasse", "precinct", "store"):
        assert looks_like_codes(name, soil)
    assert looks_like_codes("region_code", soil + 100.0)
    assert looks_like_codes("textbook_isbn", soil[:50])
    for name, values in (
        *((name, soil) for name in ("children", "age class", "number of types", "mean")),
        *((name, soil) for name in ("YearsCodedJob", "open_accounts", "account_balance")),
        *(("Soil_Type", soil[:50]), ("Soil_Type", soil + 0.5)),
        *(("type", (soil > 20.0) + 0.0), ("zone", 50.0 * soil)),
    ):
        assert not looks_like_codes(name, values)


def test_copies():
    X = RNG.normal(size=(300, 12))
    X[:, 3] = 2.54 * X[:, 0] + 1.0
    X[:, 7] = (-10.0 * X[:, 0]).round(1)
    X[:, 4] = X[:, 1] + 0.01 * X[:, 2]
    X[:, 5] = X[:, 8] > 0.0
    X[:, 6] = X[:, 8] <= 0.0
    X[:, 9] = X[:, 5]
    X[0, 9] = 1.0 - X[0, 9]
    X[:, [10, 11]] = 1.0
    assert find_copies(X) == [(0, 3, 7), (5, 6)]
    X[:20, [0, 3, 7]] = np.nan
    X[25, 3] = np.nan
    assert find_copies(X) == [(0, 3, 7), (5, 6)]
    assert find_copies(X[:5]) == []
    rare = np.zeros((300, 2))
    rare[0] = 1.0
    assert find_copies(rare) == []
    wide = RNG.normal(size=(200, 3000))
    wide[:, 1000:2000] = wide[:, :1]
    assert find_copies(wide) == [(0, *range(1000, 2000))]


def test_bits():
    bits = RNG.random((400, 256)) < RNG.uniform(0.05, 0.4, 256)
    smooth, group = np.cumsum(RNG.normal(size=(400, 64)), axis=1), RNG.integers(0, 4, 400)
    flips = RNG.random((400, 256)) < 0.05
    for each in (bits, (RNG.random((4, 256)) < 0.5)[group] ^ flips):
        packed = np.packbits(each, axis=1)
        assert looks_like_bits(packed)
        assert looks_like_bits(packed.astype(np.float32))
        assert not looks_like_bits(packed.astype(np.float64))
    vectors = RNG.normal(size=(400, 64))
    for pixels in (
        *(255 * (smooth - smooth.min()) / np.ptp(smooth), 255 * (smooth > 0)),
        *(128 + 40 * vectors, 128 + 20 * vectors + RNG.normal(0, 40, (4, 64))[group]),
        RNG.gamma(2, 20, (400, 64)),
    ):
        for kind in (np.uint8, np.float32):
            assert not looks_like_bits(pixels.clip(0, 255).round().astype(kind))


def test_counts():
    rates = RNG.gamma(0.3, 2.0, 200) * RNG.lognormal(0.0, 0.5, (300, 1))
    X = RNG.poisson(rates)
    for counts in (X, X.astype(np.float32), csr_array(X.astype(np.float32))):
        assert look_like_counts(counts)
    others = RNG.poisson(5.0, (300, 200)), 255 * (X > 1)
    for numbers in (np.log1p(X), X[:, :20], (X > 0) + 0.0, -X, *others):
        assert not look_like_counts(numbers)
