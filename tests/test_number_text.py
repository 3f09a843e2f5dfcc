"""Shares and means as text."""

import math

from taxarbor._number_text import format_exactly, format_means, format_share, round_digits


def test_shares_that_are_not_all_or_none_are_never_written_as_such():
    shares = {0.0: "0 %", 1e-4: "<1 %", 0.005: "<1 %", 0.016: "2 %", 0.5: "50 %"}
    shares |= {0.994: "99 %", 0.9999: ">99 %", 1.0: "100 %", 1.0 - 1e-9: "100 %", -0.0: "0 %"}
    assert {share: format_share(share) for share in shares} == shares


def test_means_of_a_feature_have_the_same_decimals_or_are_shares():
    assert format_means((1.5, 20.25), is_share=False) == ["1.50", "20.25"]
    assert format_means((0.5, 1.0), is_share=True) == ["50 %", "100 %"]
    for is_share in (False, True):
        assert format_means((None, math.nan), is_share=is_share) == ["unknown"] * 2


def test_numbers_of_a_page_are_short():
    assert round_digits(0.123456) == 0.1235
    assert [format_exactly(v) for v in (1.6e8, 2e8, 46e6)] == [
        "160 million",
        "200 million",
        "46 million",
    ]
    assert round_digits(3.0) == 3
    assert isinstance(round_digits(12_345.0), int)
    assert [round_digits(value) for value in (None, math.nan, math.inf)] == [None] * 3
