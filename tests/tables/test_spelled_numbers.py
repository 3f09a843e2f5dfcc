"""Numbers as people write them."""

from itertools import compress

import numpy as np
import pytest

from taxarbor.tables._spelled_numbers import NumberFormat, find_number_format, parse_numbers


@pytest.mark.parametrize(
    ("texts", "expected", "numbers"),
    [
        ("1234|-1.5e3|+3|\u22123|.5|3.", NumberFormat(), [1234, -1500, 3, -3, 0.5, 3]),
        ("$1,234|-$3|($120)|$ 1,234.50", (".", ",", "$", True), [1234, -3, -120, 1234.5]),
        ("12 %|7%|0.5 %|3", (".", "", "%", False), [12, 7, 0.5, 3]),
        ("1.234,5|12|0,25", (",", ".", "", False), [1234.5, 12, 0.25]),
        ("1,5|3,25|12", (",", "", "", False), [1.5, 3.25, 12]),
        ("1,234|12,345|1,234,567", (".", ",", "", False), [1234, 12345, 1234567]),
        ("1.234|1.234.567|5", (",", ".", "", False), [1234, 1234567, 5]),
        ("1.234|0.567", NumberFormat(), [1.234, 0.567]),
        ("0,123|0,456", (",", "", "", False), [0.123, 0.456]),
        ("1 234|12\u202f345|7", (".", " ", "", False), [1234, 12345, 7]),
        ("1\u00a0234,5 €|12 €", (",", " ", "€", False), [1234.5, 12]),
        ("1'234.50|1\u2019000|5", (".", "'", "", False), [1234.5, 1000, 5]),
        ("USD 3|USD 4.5", (".", "", "USD", True), [3, 4.5]),
        ("3.5 km|12km|1e2 km", (".", "", "km", False), [3.5, 12, 100]),
        ("1 year|2 years|12 years", (".", "", "year", False), [1, 2, 12]),
        ("5 min.|7 min|90 km/h", None, []),
        ("120 km/h|90 km/h", (".", "", "km/h", False), [120, 90]),
    ],
)
def test_formats(texts, expected, numbers):
    texts = texts.split("|")
    found = find_number_format(texts, [1] * len(texts))
    assert found == expected
    if found:
        np.testing.assert_allclose(parse_numbers(texts, found), numbers)


@pytest.mark.parametrize(
    "texts",
    [
        *("007|008|12", "01234|12345|23456|34567", "1.2.3|1.2|1.10.0"),
        *("01.03.2024|02.03.2024", "2024-03-01|2024-03-02", "14:30|9:05"),
        *("192.168.100.101|192.168.100.205", "612 345 678|698 765 432"),
        *("+15551234567|+15557654321", "+49 151 234|+49 151 235", "1-5|6-10", "3/4|1/2"),
        *("3 kg|5 g", "12 Main Street|7 Main Street", "A1|A2|A3", "P12|P13", "2 PM|3 PM"),
        *("1,2|1,2,3|2,3|1", "low|high", "", "inf|nan|1e999", "1,23,4|2,34,5"),
    ],
)
def test_other_texts_are_no_numbers(texts):
    texts = texts.split("|")
    assert find_number_format(texts, [1] * len(texts)) is None


def test_odd_values_are_few_rows():
    texts = [*map(str, range(50)), "other", ">3", "5 stars"]
    found = find_number_format(texts, [10] * 50 + [5, 5, 5])
    assert found is not None
    assert [*compress(texts, np.isnan(parse_numbers(texts, found)))] == ["other", ">3"]
    assert find_number_format(texts, [10] * 50 + [40, 140, 5]) is not None
    for totals in ([40, 400, 5], [20] * 6):
        texts = [*map(str, range(50)), *(f"{word} other" for word in "abcdef"[: len(totals)])]
        assert find_number_format(texts, [10] * 50 + totals) is None
    assert find_number_format([], []) is None
    # One padded number among a thousand is a slip, not a code.
    assert find_number_format([*texts[:53], "05"], [20] * 50 + [1] * 4) is not None
