"""Numbers as text, for words, tables and pages alike."""

from collections.abc import Iterable
from math import floor, isfinite, isnan, log10, nan

UNITS = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))
LARGEST_IN_WORDS = 1e15  # numbers from here on are written with an exponent


def format_number(value: float, digits: int = 4) -> str:
    """Return a number in so many digits: ``46 million``, ``17,590``, ``1994``, ``0.1235``."""
    if not isfinite(value):
        return "-" if isnan(value) else str(value)
    rounded = float(f"{value:.{digits}g}") + 0.0  # no negative zero
    for unit, word in UNITS:
        if unit <= abs(rounded) < LARGEST_IN_WORDS:
            return f"{rounded / unit:.{max(digits, 3)}g}{word}"
    text = f"{rounded:.{digits}g}"
    if "e" in text:
        text = f"{rounded:.0f}" if 1.0 <= abs(rounded) < LARGEST_IN_WORDS else text
    if "e" in text:
        return text
    whole, dot, rest = text.partition(".")
    return (f"{int(whole):,}" if len(whole.strip("-")) > 4 else whole) + dot + rest


def format_column(values: Iterable[float]) -> list[str]:
    """Return numbers that stand below one another, all with the same decimals and unit."""
    values = [float(value) for value in values]
    sizes = [abs(value) for value in values if isfinite(value) and value]
    least, most = min(sizes, default=1.0), max(sizes, default=1.0)
    unit, word = next(((u, w) for u, w in UNITS if most >= u and least >= u / 100), (1.0, ""))
    # Four digits of the largest, two of the smallest, but no more than three beyond.
    first = 3 - floor(log10(most / unit))
    decimals = max(first, min(1 - floor(log10(least / unit)), first + 3), 0)
    style = "," if most / unit >= 1e4 else ""
    kind = "f" if 1e-4 <= most < LARGEST_IN_WORDS else "e"
    decimals = decimals if kind == "f" else 3
    texts = [f"{value / unit:z{style}.{decimals}{kind}}" for value in values]
    shown = [text for text, value in zip(texts, values, strict=True) if isfinite(value)]
    if kind == "f" and decimals:
        n_zeros = min((len(text) - len(text.rstrip("0")) for text in shown), default=0)
        n_cut = n_zeros + 1 if n_zeros >= decimals else n_zeros  # the point goes as well
        texts = [text[: len(text) - n_cut] for text in texts]
    return [
        text + word if isfinite(value) else format_number(value)
        for text, value in zip(texts, values, strict=True)
    ]


def format_exactly(value: float) -> str:
    """Return a number in as many digits as it has, four at least if it has more."""
    digits = next((d for d in range(1, 17) if float(f"{value:.{d}g}") == value), 17)
    return format_number(value, digits)


def format_share(share: float) -> str:
    """Return a percentage; ``>99 %`` for less than all, ``<1 %`` for more than none."""
    text = f"{abs(100.0 * share):.0f}"
    rounded = {"100": ">99", "0": "<1"} if 1e-6 < share < 1.0 - 1e-6 else {}
    return f"{rounded.get(text, text)} %"


def format_means(means: Iterable[float | None], *, is_share: bool) -> list[str]:
    """Return the means of one feature, as percentages if they are shares; None is unknown."""
    numbers = [nan if mean is None else mean for mean in means]
    texts = [format_share(mean) for mean in numbers] if is_share else format_column(numbers)
    return [
        "unknown" if isnan(mean) else text for mean, text in zip(numbers, texts, strict=True)
    ]


def round_digits(value: float | None, digits: int = 4) -> float | None:
    """Return a number with few digits, as it is written to a page; None if not finite."""
    if value is None or not isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    is_integer = rounded == int(rounded) and abs(rounded) < LARGEST_IN_WORDS
    return int(rounded) if is_integer else rounded


def round_between(value: float, low: float, high: float) -> float:
    """Return a number near ``value`` with few digits, three if they do, between two others.

    It stays clear of both by a part of the gap, so that no rounding reaches them.
    """
    gap = high - low
    target = min(max(value, low + 0.1 * gap), high - 0.1 * gap)
    for digits in range(3, 17):
        rounded = float(f"{target:.{digits}g}")
        if low + 0.05 * gap <= rounded <= high - 0.05 * gap and rounded < high:
            return rounded
    return target if target < high else low
