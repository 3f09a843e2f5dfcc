"""Dates and times of day as people write them, and the parts of them that vary.

Functions take the distinct texts of a column, stripped, and how many rows have each.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import IndexArray

Times: TypeAlias = NDArray[np.datetime64]

MIN_SHARE = 0.9  # share of the rows that a format must read
MIN_VARYING_SHARE = 0.01  # of the rows that differ from the most common value, if a part varies
MAX_MIDNIGHT_SHARE = 0.3  # share of the times at midnight up to which the hour is used
N_TRIED = 200  # texts of which a format must read at least one to be tried on all
DATE_PARTS = ("year", "month", "weekday", "hour")

NAMES = (
    "january february march april may june july august september october november december",
    "januar februar märz april mai juni juli august september oktober november dezember",
)
MONTHS = {
    short: month
    for names in NAMES
    for month, name in enumerate(names.split(), 1)
    for short in (name, name[:3])
} | {"sept": 9, "mrz": 3}

YEAR, MONTH, DAY = r"(?P<year>[12]\d{3})", r"(?P<month>\d{1,2})", r"(?P<day>\d{1,2})"
SHORT_YEAR = r"(?P<short>\d\d)"
NAME = r"(?P<name>[^\W\d_]{3,9})\.?"
NTH = rf"{DAY}(?:st|nd|rd|th|\.)?"
TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::\d\d(?:[.,]\d+)?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
)
ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?))?"
DATES = {
    "yearmonthday": r"(?P<year>[12]\d{3})(?P<month>\d\d)(?P<day>\d\d)",
    "year-month-day": rf"{YEAR}(?P<by>[-/.]){MONTH}(?P=by){DAY}",
    "month/day/year": rf"{MONTH}/{DAY}/(?:{YEAR}|{SHORT_YEAR})",
    "day/month/year": rf"{DAY}/{MONTH}/(?:{YEAR}|{SHORT_YEAR})",
    "day.month.year": rf"{DAY}(?P<by>[-.]) ?{MONTH}(?P=by) ?{YEAR}",
    "month-day-year": rf"{MONTH}(?P<by>[-.]){DAY}(?P=by){YEAR}",
    "dd.mm.yy": rf"(?P<day>\d\d)(?P<by>[-.])(?P<month>\d\d)(?P=by){SHORT_YEAR}",
    "day name year": rf"{NTH}[-/ ]?{NAME}[-,/ ]{{1,2}}(?:{YEAR}|{SHORT_YEAR})",
    "name day year": rf"{NAME}[ -]?{NTH},? ?{YEAR}",
    "year-month": rf"{YEAR}-(?P<month>\d\d)",
    "year month": rf"{YEAR}[- ]?M(?P<month>\d\d?)",
    "year quarter": rf"{YEAR}[- ]?[Qq](?P<quarter>[1-4])",
    "month/year": rf"(?P<month>\d\d)/{YEAR}",
    "name year": rf"{NAME}[-, ]{{1,2}}{YEAR}",
    "name-yy": rf"{NAME}-{SHORT_YEAR}",
}
"""Of formats that read equally many rows the first is used."""
TIME_OF_DAY = "hour:minute"


def find_date_format(texts: Sequence[str], counts: Sequence[int] | IndexArray) -> str | None:
    """Return the key of ``DATES``, or ``TIME_OF_DAY``, that reads nearly all rows, or None."""
    weights = np.asarray(counts, dtype=np.float64)
    total, most, best, times = weights.sum(), 0.0, None, np.zeros(0, "datetime64[m]")
    few = texts[:: -(-len(texts) // N_TRIED) or 1]
    for order in (*DATES, TIME_OF_DAY):
        if np.isnat(parse_dates(few, order)).all():
            continue
        found = parse_dates(texts, order)
        if (rows := weights[~np.isnat(found)].sum()) > most:
            most, best, times = rows, order, found
        if rows == total:
            break
    if best is None or most < MIN_SHARE * total:
        return None
    if best == "month/day/year":  # or the first day of each month
        other = parse_dates(texts, "day/month/year")
        is_first = other.astype("datetime64[D]") == other.astype("datetime64[M]")
        if weights[is_first].sum() == most:
            return "day/month/year"
    if best == "year-month":  # seasons such as 2010-11 are none
        months = times[~np.isnat(times)].astype("datetime64[M]").astype(np.int64)
        if ((months // 12 + 1971) % 100 == months % 12 + 1).all():
            return None
    return best


def parse_dates(texts: Sequence[str], date_format: str) -> Times:
    """Return texts as times to the minute, NaT where a text is none.

    A month or quarter is its first day, a time of day one of 1970-01-01. Zones are ignored.
    """
    pattern = _pattern_of(date_format)
    found = [_parse(token) if (token := pattern.fullmatch(text)) else None for text in texts]
    return np.array(found, dtype="datetime64[m]")


def find_date_parts(times: Times, counts: Sequence[int] | IndexArray) -> tuple[str, ...]:
    """Return which of year, month, weekday and hour vary."""
    is_known = ~np.isnat(times)
    known, weights = times[is_known], np.asarray(counts, dtype=np.float64)[is_known]
    days_of_month = known.astype("datetime64[D]") - known.astype("datetime64[M]")
    varying = [part for part in DATE_PARTS if _varies(split_date(known, part), weights)]
    at_midnight = split_date(known, "hour") == 0.0
    if "hour" in varying and weights[at_midnight].sum() > MAX_MIDNIGHT_SHARE * weights.sum():
        varying.remove("hour")  # dates, few of them with a time
    if not _varies(days_of_month.astype(np.float64), weights) and "weekday" in varying:
        varying.remove("weekday")  # months, written as their first days
    return tuple(varying)


def split_date(times: Times, part: str) -> NDArray[np.float64]:
    """Return a part of each time: weekdays from Monday, 0; hours of the day with fractions."""
    months, days = times.astype("datetime64[M]"), times.astype("datetime64[D]")
    if part == "year":
        found = times.astype("datetime64[Y]").astype(np.int64) + 1970.0
    elif part == "month":
        found = months.astype(np.int64) % 12 + 1.0
    elif part == "weekday":
        found = (days.astype(np.int64) + 3) % 7 + 0.0
    else:
        found = (times.astype("datetime64[m]") - days).astype(np.int64) / 60.0
    return np.where(np.isnat(times), np.nan, found)


def _varies(values: NDArray[np.float64], weights: NDArray[np.float64]) -> bool:
    codes = np.rint(60.0 * (values - values.min(initial=np.inf))).astype(np.intp)  # minutes
    totals = np.bincount(codes, weights)
    return bool(
        totals.sum() - totals.max(initial=0.0) >= MIN_VARYING_SHARE * totals.sum() > 0.0
    )


@cache
def _pattern_of(order: str) -> re.Pattern[str]:
    if order == TIME_OF_DAY:
        return re.compile(TIME)
    weekday = r"(?:[^\W\d_]{2,10}\.?,? )?" if "name" in order else ""
    return re.compile(rf"{weekday}{DATES[order]}(?:(?:T|,? ){TIME}{ZONE})?")


def _parse(token: re.Match[str]) -> datetime | None:
    """Return the time of a match, None for one such as February 30."""
    given = {"year": "1970", "month": "1", "day": "1", "hour": "0", "minute": "0"}
    given |= {name: text for name, text in token.groupdict().items() if text}
    year, hour = int(given["year"]), int(given["hour"])
    if "short" in given:
        year = 1969 + (int(given["short"]) - 69) % 100  # 1969 to 2068, as in POSIX
    month = 3 * int(given["quarter"]) - 2 if "quarter" in given else int(given["month"])
    month = MONTHS.get(given["name"].casefold(), 0) if "name" in given else month
    if "half" in given:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (given["half"] in "Pp")
    try:
        return datetime(year, month, int(given["day"]), hour, int(given["minute"]))
    except ValueError:
        return None
