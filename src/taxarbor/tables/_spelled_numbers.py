"""Numbers as people write them: separators, signs, a currency or a unit.

Functions take the distinct texts of a column, stripped, and how many rows have each.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import IndexArray

MIN_SHARE = 0.9  # share of the rows that a format must read; the texts of the others are odd
MAX_FREQUENT, MIN_NUMBER_SHARE = 2, 0.6
"""Odd texts that many rows may have, and the share of the rows with numbers beside them."""
MIN_CODE_SHARE = 0.01  # of codes such as 007 or 1.2.3, from which on nothing is a number
SEPARATORS = (
    *((".", ""), (".", ","), (",", ""), (",", ".")),
    *((".", " "), (",", " "), (".", "'"), (",", "'")),
)
"""Decimal and thousands separators; the first of those that read most rows is used."""

SAME = str.maketrans("\u00a0\u2007\u2009\u202f\u2212\u2013\u2019", "    --'")
SYMBOLS = "$€£¥₹₽₩₺₪₫฿₴"
CURRENCIES = "AUD BRL CAD CHF CNY CZK DKK EUR GBP HUF INR JPY KRW MXN NOK PLN SEK TRY USD ZAR"
TEXT = re.compile(
    rf"(?P<open>\()?(?P<sign>[+-]?) ?(?P<first>[A-Z]{{0,2}}[{SYMBOLS}]|Rs\.?|"
    rf"{CURRENCIES.replace(' ', '|')})? ?(?P<inner>[+-]?)"
    r"(?P<digits>[\d.,](?:[\d., ']*[\d.,])?)(?P<power>[eE][+-]?\d{1,3})?"
    rf"(?: ?(?P<last>(?!/|(?i:[ap]m)$)(?:[^\W\d_]|[%‰°/{SYMBOLS}]){{1,10}})\.?)?(?(open)\))"
)
THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
"""Numbers such as 1.250, which are thousands beside others without a dot."""
POWERS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "bn": 1e9}  # letters that multiply: 3.5k
CODE = re.compile(r"0\d+|\d+(?:[.,] ?\d+){2,}")  # leading zeros, versions, lists of answers
ADDRESS_OR_PHONE = re.compile(
    r"(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}|\d{3}(?: \d{3}){2,}"
)


class NumberFormat(NamedTuple):
    """How the numbers of a column are written."""

    decimal: str = "."
    thousands: str = ""
    unit: str = ""  # a currency or a unit, which rows may leave out
    unit_first: bool = False

    @property
    def pattern(self) -> str:
        """How a number is shown with its unit: ``{} km``; empty if it has none."""
        space = "" if self.unit in SYMBOLS else " "
        parts = (self.unit, "{}") if self.unit_first else ("{}", self.unit)
        return space.join(parts) if self.unit else ""


def find_number_format(
    texts: Sequence[str], counts: Sequence[int] | IndexArray
) -> NumberFormat | None:
    """Return the format that reads nearly all rows as numbers, None if there is none."""
    weights = np.asarray(counts, dtype=np.float64)
    tokens = [TEXT.fullmatch(text.translate(SAME)) for text in texts]
    is_odd = np.array([token is None for token in tokens], dtype=bool)
    total, frequent = weights.sum(), np.sort(weights[is_odd])[-MAX_FREQUENT:].sum()
    least = max(MIN_SHARE * (total - frequent), MIN_NUMBER_SHARE * total)
    if not least or weights[~is_odd].sum() < least:
        return None
    units: Counter[tuple[str, bool]] = Counter()
    spellings: dict[tuple[str, bool], str] = {}
    for token, weight in zip(tokens, weights.tolist(), strict=True):
        last = "" if token is None or token["last"] in POWERS else token["last"]
        if token and (unit := last or token["first"]):
            place = _simplify(unit), not last
            units[place] += weight
            spellings.setdefault(place, unit)
    place = units.most_common(1)[0][0] if units else ("", False)
    best, most, is_read = None, 0.0, np.zeros(len(texts), dtype=bool)
    dots = [text for text in texts if "." in text]
    has_thousands = 0 < len(dots) < len(texts) and all(map(THOUSANDS.fullmatch, dots))
    for decimal, thousands in SEPARATORS[3 * has_thousands :]:
        found = NumberFormat(decimal, thousands, spellings.get(place, ""), place[1])
        is_number = ~np.isnan(parse_numbers(texts, found))
        if (rows := float(weights[is_number].sum())) > most:
            best, most, is_read = found, rows, is_number
        if is_number.all():
            break
    if most < least or _are_codes(texts, weights, is_read):
        return None
    return best


def parse_numbers(texts: Sequence[str], number_format: NumberFormat) -> NDArray[np.float64]:
    """Return texts as numbers, NaN where a text is none."""
    numbers = (_parse(text.translate(SAME), number_format) for text in texts)
    return np.fromiter(numbers, np.float64, len(texts))


def _are_codes(
    texts: Sequence[str], weights: NDArray[np.float64], is_read: NDArray[np.bool_]
) -> bool:
    """Return whether what is not read looks like codes, or what is read like addresses."""
    rest = [bool(CODE.fullmatch(text)) for text in texts] & ~is_read
    others = [bool(ADDRESS_OR_PHONE.fullmatch(text.translate(SAME))) for text in texts]
    total = weights.sum()
    n_codes, n_others = weights[rest].sum(), weights[others].sum()
    return bool(n_codes >= MIN_CODE_SHARE * total or n_others >= MIN_SHARE * total)


def _parse(text: str, number_format: NumberFormat) -> float:
    decimal, thousands, unit, unit_first = number_format
    token = TEXT.fullmatch(text)
    if token is None:
        return np.nan
    first, last, digits = token["first"] or "", token["last"] or "", token["digits"]
    signs = token["sign"] + token["inner"] + (token["open"] or "")
    if not _digits_of(decimal, thousands).fullmatch(digits) or len(signs) > 1:
        return np.nan
    if signs == "+" and (" " in digits or len(digits) > 7):  # a phone number
        return np.nan
    power = POWERS.get(last, 1.0)
    last = "" if last in POWERS else last
    if first or last:
        given = first if unit_first else last
        if (first and last) or _simplify(given) != _simplify(unit):
            return np.nan
    plain = digits.replace(thousands, "") if thousands else digits
    number = power * float(plain.replace(decimal, ".") + (token["power"] or ""))
    return np.nan if np.isinf(number) else -number if signs in ("-", "(") else number


@cache
def _digits_of(decimal: str, thousands: str) -> re.Pattern[str]:
    whole = r"0|[1-9]\d*"
    if thousands:
        by = re.escape(thousands)
        whole += rf"|[1-9]\d{{0,2}}(?:{by}\d{{3}})+|[1-9]\d?(?:{by}\d\d)+{by}\d{{3}}"
    point = re.escape(decimal)
    return re.compile(rf"(?:{whole})(?:{point}\d*)?|{point}\d+")


def _simplify(unit: str) -> str:
    """Return a unit without its plural, in small letters."""
    unit = unit.casefold().rstrip(".")
    return unit[:-1] if len(unit) > 2 and unit.endswith("s") else unit
