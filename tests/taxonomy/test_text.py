"""Numbers and reasons as people say them."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from taxarbor._number_text import format_column, format_exactly, format_number, round_between
from taxarbor.taxonomy import Reason
from taxarbor.taxonomy._phrases import phrase

NAN = float("nan")


def test_numbers():
    told = {
        17_590.4: "17,590", 0.12345: "0.1235", 46e6: "46 million", -3e9: "-3 billion",
        2.5e12: "2.5 trillion", 46_123_456.0: "46.12 million", 999_999.0: "1 million",
        1994.0: "1994", 1e15: "1e+15", 1e-9: "1e-09", -0.0: "0", -123_456.0: "-123,500",
        205.5: "205.5", NAN: "-", float("inf"): "inf", 12_345.5: "12,350", 0.0001: "0.0001",
    }  # fmt: skip
    for value, text in told.items():
        assert format_number(value) == text
    exact = {12_345.5: "12,345.5", 46_123_456.0: "46.123456 million", 0.1: "0.1", 3.0: "3"}
    for value, text in exact.items():
        assert format_exactly(value) == text


def test_columns_have_the_same_decimals_and_unit():
    for values, texts in (
        ([0.5, 12.25], ["0.50", "12.25"]),
        ([1994.0, 17_590.0], ["1,994", "17,590"]),
        ([46e6, 1.25e6], ["46.00 million", "1.25 million"]),
        ([46e6, 500.0], ["46,000,000", "500"]),
        ([1.0, -1e-17], ["1", "0"]),
        ([1.5, NAN, -2.0], ["1.5", "-", "-2.0"]),
        ([1e16, 1.0], ["1.000e+16", "1.000e+00"]),
        ([], []),
    ):
        assert format_column(np.array(values)) == texts


@given(st.lists(st.floats(-1e14, 1e14) | st.just(NAN), max_size=6))
def test_columns_line_up_and_lose_little(values):
    told = format_column(values)
    assert len(told) == len(values)
    numbers = [t.split(" ")[0] for t, v in zip(told, values, strict=True) if not np.isnan(v)]
    assert len({len(text.partition(".")[2].partition("e")[0]) for text in numbers}) <= 1
    largest = max([abs(v) for v in values if not np.isnan(v)], default=0.0)
    units = {"": 1.0, "million": 1e6, "billion": 1e9, "trillion": 1e12}
    for text, value in zip(told, values, strict=True):
        if not np.isnan(value):
            number, _, word = text.partition(" ")
            assert abs(float(number.replace(",", "")) * units[word] - value) <= 1e-3 * largest


@example(536870912.953125, 1e-6, 1.0)  # few digits are left between the two
@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e6), st.floats(0, 1))
def test_a_rounded_number_stays_within_the_gap_and_is_said_exactly(low, gap, part):
    high = low + gap
    rounded = round_between(low + part * gap, low, high)
    assert low <= rounded < high
    text, _, unit = format_exactly(rounded).replace(",", "").partition(" ")
    times = {"": 1.0, "million": 1e6, "billion": 1e9}[unit]
    assert abs(float(text) * times - rounded) <= 1e-14 * abs(rounded)


def test_reasons_in_words():
    def told(sign=1, name="fur", **known):
        return phrase(Reason(0, name, float(sign), 0.5, **known))

    assert [told(sign, "age") for sign in (1, -1)] == ["higher age", "lower age"]
    alone = [told(sign, "age", threshold=41.5) for sign in (1, -1)]
    assert alone == ["age above 41.5", "age below 41.5"]
    ties = [told(sign, "age", threshold=41.5, takes_threshold=True) for sign in (1, -1)]
    assert ties == ["age at least 41.5", "age at most 41.5"]
    assert told(1, "pay", threshold=46e6) == "pay above 46 million"
    for name, yes, no in (
        ("fur", "has fur", "no fur"),
        ("has_fur", "has fur", "no fur"),
        ("gives_milk", "gives_milk", "not gives_milk"),
        ("is_tame", "is tame", "not tame"),
        (" \n", "has unnamed", "no unnamed"),
        ("has_", "has_", "not has_"),
    ):
        assert [told(s, name, threshold=0.5, have=0.4) for s in (1, -1)] == [yes, no]
        assert [told(1, name, have=0.81), told(-1, name, have=0.19)] == [yes, no]
    assert told(1, have=0.8) == told(1, "has_fur", have=0.8) == "more often fur"
    assert told(-1, have=0.3) == "less often fur"


def test_the_name_is_cut_and_never_the_number():
    reason = Reason(0, "flipper_length_in_millimetres", -1.0, 1.0, threshold=205.5)
    assert phrase(reason, 28).endswith("… below 205.5")
    assert len(phrase(reason, 28)) == 28
    assert phrase(reason) == "flipper_length_in_millimetres below 205.5"
    assert str(reason) == phrase(reason)
    assert phrase(reason, 3) == "f… below 205.5"
