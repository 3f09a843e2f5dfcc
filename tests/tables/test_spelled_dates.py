"""Dates as people write them."""

import numpy as np
import pandas as pd
import pytest

from taxarbor import TableEncoder
from taxarbor.tables._spelled_dates import (
    find_date_format,
    find_date_parts,
    parse_dates,
    split_date,
)

DAY = "2024-03-01"


@pytest.mark.parametrize(
    ("texts", "order", "times"),
    [
        ("2024-03-01|2024-12-31", "year-month-day", "2024-03-01|2024-12-31"),
        (f"{DAY}T14:30:05.25Z|{DAY} 14:30+02:00", "year-month-day", f"{DAY}T14:30|{DAY}T14:30"),
        ("2024/03/01|2024/3/2", "year-month-day", "2024-03-01|2024-03-02"),
        ("01.03.2024|2.3.2024 14:30", "day.month.year", "2024-03-01|2024-03-02T14:30"),
        ("3/14/2024|3/1/2024", "month/day/year", "2024-03-14|2024-03-01"),
        ("14/3/2024|1/3/2024", "day/month/year", "2024-03-14|2024-03-01"),
        ("1/3/2024|2/3/24 2:30 PM", "month/day/year", "2024-01-03|2024-02-03T14:30"),
        ("03-14-2024|03-01-2024", "month-day-year", "2024-03-14|2024-03-01"),
        ("01.03.24|02.03.99", "dd.mm.yy", "2024-03-01|1999-03-02"),
        ("1-Mar-2024|02-Apr-24", "day name year", "2024-03-01|2024-04-02"),
        ("Mon, 01 Jan 2024 10:00:00 +0000", "day name year", "2024-01-01T10:00"),
        ("1. März 2024|3. Dezember 2024", "day name year", "2024-03-01|2024-12-03"),
        ("March 1, 2024|Apr. 2nd 2024", "name day year", "2024-03-01|2024-04-02"),
        ("2024-03|2023-12", "year-month", "2024-03-01|2023-12-01"),
        ("2000M01|2001 M12", "year month", "2000-01-01|2001-12-01"),
        ("1979 Q3|2011Q1|2011-Q4", "year quarter", "1979-07-01|2011-01-01|2011-10-01"),
        ("Dec-2015|Mar 2024", "name year", "2015-12-01|2024-03-01"),
        ("14:30|2:30:05|2:30 PM|12:05 a.m.", "hour:minute", "14:30|02:30|14:30|00:05"),
    ],
)
def test_formats(texts, order, times):
    texts, times = texts.split("|"), times.split("|")
    found = find_date_format(texts, [1] * len(texts))
    assert found == order
    if order == "hour:minute":
        times = [f"1970-01-01T{time}" for time in times]
    np.testing.assert_array_equal(parse_dates(texts, found), np.array(times, "datetime64[m]"))


@pytest.mark.parametrize(
    "texts",
    [
        *("1.2.3|1.10.12", "2024-13-01|2024-02-30", "45:30|59:59"),
        *("2010-11|2011-12|2008-09", "Marble 5, 2024", "3/4|1/2", "1-5|6-10"),
        *("9999-12-31|0000-00-00", "12|13", ""),
    ],
)
def test_other_texts_are_no_dates(texts):
    texts = texts.split("|")
    assert find_date_format(texts, [1] * len(texts)) is None
    assert find_date_format([], []) is None


def test_rare_other_texts_are_missing():
    texts = ["3/14/2024", "3/15/2024", "15/3/2024", "soon"]
    found = find_date_format(texts, [60, 30, 4, 1])
    assert found is not None
    assert np.isnat(parse_dates(texts, found)).tolist() == [False, False, True, True]
    assert find_date_format(texts, [6, 3, 1, 5]) is None


def test_first_days_of_months_are_no_days_of_january():
    texts = [f"01/{month:02}/2024" for month in range(1, 13)]
    assert find_date_format(texts, [1] * 12) == "day/month/year"
    assert find_date_format([*texts, "01/13/2024"], [1] * 13) == "month/day/year"
    frame = pd.DataFrame({"d": texts * 9, "x": np.arange(108) % 7})
    assert "d (month, as day/month/year)" in str(TableEncoder().fit(frame).columns_.notes[0])


def test_parts_that_vary():
    days = np.arange("2023-01-01", "2025-01-01", dtype="datetime64[D]").astype("datetime64[m]")
    one = np.ones(len(days), dtype=np.intp)
    assert find_date_parts(days, one) == ("year", "month", "weekday")
    assert find_date_parts(days[:20], one[:20]) == ("weekday",)
    assert find_date_parts(days[:1], one[:1]) == ()
    months = np.unique(days.astype("datetime64[M]")).astype("datetime64[m]")
    assert find_date_parts(months, one[: len(months)]) == ("year", "month")
    counts = np.where(days < np.datetime64("2024-01-01"), 1000, 1)
    assert find_date_parts(days, counts) == ("month", "weekday")
    hours = np.array(["1970-01-01T14:30", "NaT", "1970-01-01T02:00"], "datetime64[m]")
    assert find_date_parts(hours, [1, 1, 1]) == ("hour",)
    np.testing.assert_array_equal(split_date(hours, "hour"), [14.5, np.nan, 2.0])
    centuries = np.arange("1600", "2000", dtype="datetime64[Y]").astype("datetime64[m]")
    assert find_date_parts(centuries, [1] * 400) == ("year",)


def test_split_date_agrees_with_the_calendar():
    dates = ["1969-12-31T23:59", "2024-02-29T06:15", "1900-01-01T00:00"]
    times = np.array(dates, "datetime64[m]")
    expected = [one.item() for one in times]
    parts = [(d.year, d.month, d.weekday(), d.hour + d.minute / 60) for d in expected]
    for place, name in enumerate(("year", "month", "weekday", "hour")):
        np.testing.assert_allclose(split_date(times, name), [part[place] for part in parts])
    assert np.isnan(split_date(np.array(["NaT"], "datetime64[m]"), "year")).all()
