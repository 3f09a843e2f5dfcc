"""What numbers may be other than measurements: identifiers, codes, copies, bits, counts."""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components

from taxarbor._frames import Frame, find_dtype
from taxarbor._types import Array, IndexArray, Matrix
from taxarbor.tables._spelled_dates import find_date_format
from taxarbor.tables._spelled_numbers import find_number_format

MIN_ROWS_OF_COUNT = 10
"""Rows from which on different integers that rise, and fill half of their range, identify rows.
Of measurements that fill so much of it, some would be equal: the birthday problem."""
MIN_FILLED_SHARE, MIN_SHUFFLED_SHARE = 0.5, 0.9
"""Of their range: of integers that rise with the row, and in any order."""
YEARS = 1500, 2100  # integers between these may be years

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
ENTITY = (
    "account|application|artikel|auftrags?|bestell|booking|case|claim|client|contract|cust|"
    "customer|device|emp|employee|event|flight|house|invoice|item|kunden?|listing|loan|"
    "matrikel|member|message|obj|object|obs|observation|order|participant|passenger|patient|"
    "person|player|policy|post|product|project|property|rec|rechnungs?|record|reference|"
    "respondent|row|s|sample|school|sequence|serial|session|sl|sr|store|student|subj|subject|"
    "supplier|task|ticket|transaction|trip|tweet|unit|user|vehicle|vendor|visit|vp"
)
IDENTIFIER = re.compile(
    r"no|nr|nro|numero|key|pk|primary key|index|idx|ids|idno|isbn|[fgp]id|seqn|serial|ssn|mrn|"
    r"[gu]?uid|unnamed 0|level 0|row|row ?(?:index|names?)|(?:.* )?id(?: .*)?|case|participant|"
    rf"patient|respondent|sample|subject|ticket|user|"
    rf"(?:.* )?(?:{ENTITY}) ?(?:id|no|nr|num|number|nummer|key)"
)
ID = re.compile(rf"(?:.* )?(?:(?:{ENTITY}) ?)?id|id ?num|cust(?:omer)? ?no")
"""Names of identifiers, though their values repeat."""
MAX_ROW_NAME, MAX_WORDS_OF_NAME = 100, 4
"""Characters of a text that may be the name of a row, and words of all on average."""
LIKE_VALUE = re.compile(r"[\d\W]*[^\w\s][\d\W]*")  # values such as 101:02:00, no names

MIN_SENTINEL_SHARE, MIN_SENTINEL_ROWS, MIN_OTHERS = 0.005, 5, 20
"""Rows that a number for missing values has at least, and the other values from which on any
negative number may be one."""
NINES = re.compile(r"9+[789]|88+|77+")
MAX_SHARE_OF_NINES = 0.3  # share of values that end in 9, from which on they are prices

CODE = re.compile(
    r"\w*class|\w*type?|category|cat|zone|region|cover|kind|species|cluster|segment|sector|soil|"
    r"district|department|dept|industry|occupation|job|race|ethnicity|religion|country|state|"
    r"city|brand|method|channel|label|colou?r|marital|origin|mode|stratum|inst|institution|"
    r"station|group|language|gender|sex|precinct|county|site|cent(?:er|re)|clinic|hospital|"
    r"cls|product|store|shop|branch|team|vendor|dealer|carrier|airline|manufacturer|ward|"
    r"\w*klasse|kategorie|gruppe|art|beruf|geschlecht|bundesland|land|branche|abteilung"
)
KEY = re.compile(
    r"(?:.* )?(?:\w*codes?|zip|postal|plz|fips|phone|telephone|mobile|fax|iban|barcode|ean|upc|"
    r"isbn|naics|account|invoice|subject|patient|individual|participant|respondent|household)"
    r"(?: ?(?:number|num|no|nr))?"
)
"""Names of codes with many values."""
DEGREE = re.compile(
    r"(?:age|count|number|num|no|n|level|grade|rating|score|rank|size|income|year|month|day|week|"
    r"hour|price|rate|index|risk)s?"
)
MAX_CODES, MIN_ROWS_OF_CODES, MIN_PRESENT_SHARE = 60, 100, 0.8

MIN_ROWS_OF_COPY = 5  # rows in which a copy differs from its most common value, at least

MAX_ROWS_TRIED, MAX_BYTES_TRIED = 2000, 64
MAX_BIT_CORRELATION, MAX_BIT_RATIO = 0.25, 1.5
"""Of two bits of a byte, beyond those of two bytes, and of the shares of ones at two places."""

MIN_GENES, MIN_ZERO_SHARE, MIN_LARGEST, MIN_TOTALS_RATIO = 50, 0.3, 10, 1.5


# Identifiers


def is_named_like_identifier(name: str) -> bool:
    """Return whether a column is named like an identifier: StoreID, order_no, Unnamed: 0."""
    return IDENTIFIER.fullmatch(_split_name(name)) is not None


def is_named_like_id(name: str) -> bool:
    """Return whether a column is named like an identifier whose values may repeat: unitid."""
    return ID.fullmatch(_split_name(name)) is not None


def _split_name(name: str) -> str:
    return " ".join(WORD.findall(name.replace("#", " no "))).casefold()


def is_identifier(
    name: str, values: Array, rows: IndexArray | None = None, n_all: int | None = None
) -> bool:
    """Return whether integers identify rows: by the name, or different ones that fill a range.

    Fewer than ten only if they are counted from 0 or 1. ``rows`` are their numbers in a table
    of ``n_all`` rows, of which they may be a sample: then they rise with the row.
    """
    n = len(values)
    if n < 3 or not (values == np.floor(values)).all():
        return False
    if is_named_like_id(name):
        return True
    low, high, steps = float(values.min()), float(values.max()), np.diff(values)
    is_named = is_named_like_identifier(name) and bool(np.isfinite(high - low))
    are_different = len(np.unique(values)) == n
    are_years = YEARS[0] <= low and high <= YEARS[1]
    if is_named or are_years or not are_different:
        return is_named and are_different
    width, rises = high - low + 1.0, bool((steps > 0.0).all())
    if rows is not None and n_all is not None and len(rows) < n_all:
        return rises and float(rows[-1] - rows[0] + 1) >= MIN_FILLED_SHARE * width
    is_count = n >= MIN_ROWS_OF_COUNT or low in (0.0, 1.0)
    if rises:
        return is_count and n >= MIN_FILLED_SHARE * width
    return n >= max(MIN_SHUFFLED_SHARE * width, MIN_ROWS_OF_COUNT)


def find_row_names(frame: Frame, names: Sequence[str]) -> str | None:
    """Return the only column that identifies rows; of several, the only one named so."""
    columns = {name: frame.get_column(name) for name in names}
    named = [name for name, cells in columns.items() if _are_row_names(cells)] or [
        name
        for name, cells in columns.items()
        if cells.dtype.is_integer() and not cells.null_count()
        if cells.n_unique() == len(cells) and is_identifier(name, cells.to_numpy())
    ]
    if len(named) > 1:  # such as a comment, beside an identifier
        named = [name for name in named if is_named_like_identifier(name)]
    return named[0] if len(named) == 1 else None


def _are_row_names(cells: Any) -> bool:
    if find_dtype(cells) != "text" or cells.null_count() or cells.n_unique() < len(cells):
        return False
    texts = cells.to_list()
    n_words = sum(len(text.split()) for text in texts)
    if max(map(len, texts)) > MAX_ROW_NAME or n_words > MAX_WORDS_OF_NAME * len(texts):
        return False
    few = [text.strip() for text in texts[:: -(-len(texts) // MAX_ROWS_TRIED)]]
    ones, others = [1] * len(few), [text for text in few if not text.isdigit()]
    is_value = find_date_format(few, ones) or find_number_format(others, ones[: len(others)])
    return not (is_value or all(map(LIKE_VALUE.fullmatch, texts)))


# Numbers that stand for something else


def find_sentinels(values: Array) -> tuple[float, ...]:
    """Return the numbers that stand for missing values, such as -999 and 99; rising.

    They are repeated, lie beyond all others, and are made of nines, -1 or 0, or are the only
    negative one. Capped values are none, as others lie near them, nor are prices such as 9.99.
    """
    known = values[np.isfinite(values)]
    ends = [float(known.min()), float(known.max())] if len(known) else []
    if not any(map(_is_missing_code, ends)) and len(np.unique(known[known < 0.0])) != 1:
        return ()  # as of most columns, whose values need not be sorted
    distinct, totals = np.unique(known, return_counts=True)
    least = max(MIN_SENTINEL_SHARE * totals.sum(), MIN_SENTINEL_ROWS)
    is_alone = len(distinct) > MIN_OTHERS and distinct[0] < 0.0 <= distinct[1]
    if is_alone:
        is_alone = totals[0] >= least and distinct[1] - distinct[0] > 0.5 * np.ptp(distinct)
    n_first = int(is_alone)  # of those that are none of the usual ones
    n_low = n_first + len([*takewhile(_is_missing_code, distinct[n_first:].tolist())])
    n_high = len([*takewhile(_is_missing_code, distinct[::-1].tolist())])
    top = len(distinct) - n_high
    below = distinct[:top], totals[:top], least
    low = next((n for n in range(n_low, 0, -1) if _are_low(n, *below)), 0)
    above = distinct[low:], totals[low:], least
    end = len(distinct) - next((n for n in range(n_high, 0, -1) if _are_high(n, *above)), 0)
    return (*distinct[:low].tolist(), *distinct[end:].tolist())


def _are_low(n: int, distinct: Array, totals: NDArray[Any], least: float) -> bool:
    """Return whether the first n values are repeated, and far from the others but outliers."""
    others, rows = distinct[n:], totals[n:]
    if len(others) < 2 or totals[:n].sum() < least:
        return False
    last, is_positive, is_many = distinct[n - 1], others[0] >= 0.0, len(others) > 2
    gap, bulk = others[0] - last, others[np.searchsorted(rows.cumsum(), 0.99 * rows.sum())]
    if last == 0.0:
        return bool(gap > others[-1] - others[0]) and is_many
    if last == -1.0:
        is_far = gap > 5.0 or totals[:n].sum() > 2.0 * rows[0]
        return bool(is_far and is_positive and others[-1] >= 10.0)
    return bool(gap > bulk - others[0] or (is_positive and is_many))


def _are_high(n: int, distinct: Array, totals: NDArray[Any], least: float) -> bool:
    """Return whether the last n values are so; nines half as far, and beside no prices."""
    others, rows = distinct[:-n], totals[:-n]
    if len(others) < 2 or totals[-n:].sum() < least:
        return False
    ends_in_nine = (others % 10.0 == 9.0) | (np.round(100.0 * others) % 10.0 == 9.0)
    is_price = np.average(ends_in_nine, weights=rows) >= MAX_SHARE_OF_NINES
    gap = distinct[-n] - others[-1]
    bulk = others[np.searchsorted(rows.cumsum(), 0.01 * rows.sum())]
    part = 1.0 if f"{distinct[-1]:.10g}".strip("9.") else 0.5
    return bool(gap > part * (others[-1] - bulk) and not is_price)


def _is_missing_code(value: float) -> bool:
    digits = f"{abs(value):.10g}".replace(".", "")
    is_nines = abs(value) > 70.0 and NINES.fullmatch(digits) is not None
    return is_nines or value in (0.0, -1.0, -7.0, -8.0, -9.0)


def is_named_like_codes(name: str) -> bool:
    """Return whether a column is named like one of classes: Soil_Type, region."""
    words = _split_name(name).split()
    return any(map(CODE.fullmatch, words)) and not any(map(DEGREE.fullmatch, words))


def looks_like_codes(name: str, values: Array) -> bool:
    """Return whether integers are classes or keys; the name tells these from counts."""
    is_key = KEY.fullmatch(_split_name(name)) is not None
    if not (is_key or is_named_like_codes(name)) or not (values == np.floor(values)).all():
        return False
    low, high, n_values = float(values.min()), float(values.max()), len(np.unique(values))
    if is_key:
        return n_values > 2
    is_short = low in (0.0, 1.0) and 3 <= high - low + 1 <= MAX_CODES
    is_dense = n_values >= MIN_PRESENT_SHARE * (high - low + 1.0)
    return is_short and is_dense and len(values) >= MIN_ROWS_OF_CODES


def looks_like_days(values: Array) -> bool:
    """Return whether integers are days, such as 20190105."""
    known = values[np.isfinite(values)]
    if not len(known) or known.min() < 19000101 or known.max() > 21001231:
        return False
    month, day = known // 100 % 100, known % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


# Tables of numbers


def find_copies(X: Array, rtol: float = 1e-3) -> list[tuple[int, ...]]:
    """Return groups of columns that are equal but for unit, sign and rounding."""
    n, p = X.shape
    if n < 2 * MIN_ROWS_OF_COPY or p < 2:
        return []
    is_known = np.isfinite(X)
    n_known = np.maximum(is_known.sum(axis=0), 1)
    with np.errstate(all="ignore"):
        Z = np.where(is_known, X, 0.0)
        Z = np.where(is_known, Z - Z.sum(axis=0) / n_known, 0.0)
        Z = np.nan_to_num(Z / np.sqrt(np.square(Z).sum(axis=0)), posinf=0.0)
    common = np.partition(X, n // 2, axis=0)[n // 2]  # if more than half of a column have it
    Z[:, np.minimum((common != X).sum(axis=0), n_known) < MIN_ROWS_OF_COPY] = 0.0
    alike = np.triu(np.abs(Z.T @ Z) >= 0.95, 1)  # gaps may differ
    for i, j in np.argwhere(alike).tolist():
        alike[i, j] = _are_copies(X[:, i], X[:, j], rtol)
    _, owner = connected_components(alike)
    groups = np.flatnonzero(np.bincount(owner) > 1)
    return [tuple(np.flatnonzero(owner == group).tolist()) for group in groups]


def _are_copies(a: Array, b: Array, rtol: float) -> bool:
    is_known = np.isfinite(a) & np.isfinite(b)
    a, b = a[is_known] - a[is_known].mean(), b[is_known] - b[is_known].mean()
    std_a, std_b = float(a.std()), float(b.std())
    if len(a) < 2 * MIN_ROWS_OF_COPY or not std_a * std_b > 0.0:
        return False
    a, b = a / std_a, b / std_b
    correlation = float(a @ b) / len(a)
    if abs(correlation) < 0.999:
        return False
    # The coarser of two roundings moves a value by half a step; booleans differ by a whole one.
    step = max(_find_step(a), _find_step(b))
    residual = np.abs(a - np.sign(correlation) * b).max()
    return bool(residual <= 0.75 * step + rtol)


def _find_step(values: Array) -> float:
    """Return the least difference of two values."""
    steps = np.diff(np.unique(values))
    steps = steps[steps > 1e-9]
    return float(steps.min()) if len(steps) else 0.0


def looks_like_bits(X: NDArray[Any]) -> bool:
    """Return whether bytes are packed bits of vectors, not numbers.

    Then all places of a byte have about as many ones, and tell no more of one another than of
    those of the next byte, high ones no more than low ones, as they do in images. An embedding
    holds them as float32.
    """
    if X.dtype not in (np.uint8, np.float32) or X.shape[0] < 50 or X.shape[1] < 8:
        return False
    given = X[:: -(-len(X) // MAX_ROWS_TRIED), :MAX_BYTES_TRIED]
    rows = np.nan_to_num(given).clip(0, 255).astype(np.uint8)
    bits = np.unpackbits(rows, axis=1).reshape(*rows.shape, 8).astype(np.float64)
    shares = bits.mean(axis=(0, 1))
    is_even = 0.01 <= shares.min() >= shares.max() / MAX_BIT_RATIO
    if not is_even or (rows != given).any():
        return False
    with np.errstate(all="ignore"):
        bits = np.nan_to_num((bits - bits.mean(axis=0)) / bits.std(axis=0))
    within = np.einsum("rci,rcj->cij", bits, bits) / len(bits)
    beside = np.einsum("rci,rcj->cij", bits[:, 1:], bits[:, :-1]) / len(bits)
    within_size, beside_size = (np.abs(one).mean(axis=0) for one in (within, beside))
    most, (high, low) = within_size[np.triu_indices(8, 1)].max(), np.diag(beside_size)[[0, -1]]
    more = max(most - beside_size.mean(), abs(high - low))
    return bool(more < MAX_BIT_CORRELATION and most < 0.9)  # 0 and 255 are those of an image


def look_like_counts(X: Matrix) -> bool:
    """Return whether rows, dense or sparse, are raw counts, as of genes in cells.

    Most are zero, and of the others one is the most common; images have many large values.
    """
    n, p = X.shape
    if p < MIN_GENES or n < 2:
        return False
    rows: Any = (csr_array(X) if issparse(X) else X)[:: -(-n // MAX_ROWS_TRIED)]
    values: NDArray[Any] = rows.data if issparse(X) else rows[rows != 0]
    if not len(values) or not (values >= 0).all() or not (values == np.floor(values)).all():
        return False
    ones, twos, threes = (int((values == one).sum()) for one in (1, 2, 3))
    if not (ones > twos > threes and values.max() > MIN_LARGEST):
        return False
    low, high = np.quantile(np.asarray(rows.sum(axis=1)).ravel(), [0.05, 0.95]).tolist()
    share = np.count_nonzero(values) / (rows.shape[0] * p)
    return bool(share <= 1.0 - MIN_ZERO_SHARE and high >= MIN_TOTALS_RATIO * low)
