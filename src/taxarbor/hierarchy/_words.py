"""Numbers and reasons as people say them: one vocabulary for text, pictures and pages."""

import re
from collections.abc import Iterable
from math import floor, isfinite, isnan, log10
from typing import TYPE_CHECKING

from taxarbor._errors import counted, printable

if TYPE_CHECKING:
    from taxarbor.hierarchy._reasons import Reason
    from taxarbor.hierarchy._tree import Hierarchy

UNITS = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))
BEYOND = 1e15
"""From here on there are no words that people know."""
MOSTLY = 0.8
"""A word is said of some rows if it is false for less than a fifth of them."""

N_NAMED = 3
"""Categories that are named, at most; of more, one less, and how many others there are."""

SAID = {"has": ("has ", "no "), "is": ("is ", "not "), "": ("", "not ")}
"""What stands before a feature of yes and no: its own verb, or ours for a single word."""


def format_number(value: float, digits: int = 4) -> str:
    """Return a number in so many digits: ``46 million``, ``17,590``, ``1994``, ``0.1235``."""
    if not isfinite(value):
        return "-" if isnan(value) else str(value)
    rounded = float(f"{value:.{digits}g}") + 0.0  # no negative zero
    for unit, word in UNITS:
        if unit <= abs(rounded) < BEYOND:
            return f"{rounded / unit:.{digits}g}{word}"
    text = f"{rounded:.{digits}g}"
    if "e" in text:
        text = f"{rounded:.0f}" if 1.0 <= abs(rounded) < BEYOND else text
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
    kind = "f" if 1e-4 <= most < BEYOND else "e"
    decimals = decimals if kind == "f" else 3
    told = [f"{value / unit:z{style}.{decimals}{kind}}" for value in values]
    shown = [text for text, value in zip(told, values, strict=True) if isfinite(value)]
    if kind == "f" and decimals:
        n_zeros = min((len(text) - len(text.rstrip("0")) for text in shown), default=0)
        n_cut = n_zeros + 1 if n_zeros >= decimals else n_zeros  # the point goes as well
        told = [text[: len(text) - n_cut] for text in told]
    return [
        text + word if isfinite(value) else format_number(value)
        for text, value in zip(told, values, strict=True)
    ]


def format_exactly(value: float) -> str:
    """Return a number in as many digits as it has, four at least if it has more."""
    digits = next((d for d in range(1, 17) if float(f"{value:.{d}g}") == value), 17)
    return format_number(value, digits)


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


def phrase(reason: "Reason", longest: int | None = None) -> str:
    """Say what a feature does for a node, in ``longest`` characters, of which the name gives.

    A feature that divides the parent alone: ``age at most 41.5``, ``age above 41.5``, for yes
    and no ``has fur``, ``no fur``. One of several: ``higher age``, ``lower age``; ``has fur``
    or ``no fur`` where that is so for more than four fifths of the rows, else ``more often
    fur``, ``less often fur``. A name of several words speaks for itself: ``gives_milk``,
    ``not gives_milk``; ``is_tame`` is ``is tame``, ``not tame``. Likewise of categories
    ``origin = japan or europe``, ``origin not usa``, ``more often origin = japan``. Where rows
    without a value are sent the same way: ``age above 41.5 or unknown``, ``origin unknown or
    not usa``.
    """
    name, is_more = printable(reason.name).strip() or "unnamed", reason.sign > 0
    before, after = ("higher " if is_more else "lower "), ""
    is_plain = reason.threshold is not None
    if reason.have is not None:
        so = reason.have if is_more else 1.0 - reason.have
        if reason.categories not in (("known",), ("unknown",)):
            so *= 1.0 - reason.unknown  # of rows without a value it is not so
        is_plain = is_plain or so > MOSTLY
    if reason.unknown >= 1.0:
        before, after = "", " unknown"
    elif reason.categories:
        return _phrase_categories(reason, name, is_plain, longest)
    elif reason.have is not None:
        verb = "" if "_" in name or " " in name else "has"
        if found := re.match(r"(has|is)[_ ]+(.+)", name, re.IGNORECASE):
            verb, name = found[1].lower(), found[2]
        words = SAID[verb] if is_plain else ("more often ", "less often ")
        before = words[0 if is_more else 1]
    elif reason.threshold is not None:
        side = "above" if is_more else "at most"
        before, after = "", f" {side} {format_exactly(reason.threshold)}"
    if reason.takes_unknown and reason.unknown < 1.0:
        is_denied = reason.have is not None and not is_more  # "not x or unknown" has two senses
        before = "unknown or " + before if is_denied else before
        after += "" if is_denied else " or unknown"
    if longest is not None and len(before + name + after) > longest:
        name = name[: max(longest - len(before + after) - 1, 1)].rstrip() + "…"
    return before + name + after


def _phrase_categories(reason: "Reason", name: str, is_plain: bool, longest: int | None) -> str:
    """Say which categories lead to a node, naming as many of them as there is room for."""
    is_more, text = reason.sign > 0, ""
    values = [printable(value).strip() or "blank" for value in reason.categories]
    before = "" if is_plain else "more often " if is_more else "less often "
    verb = "= " if is_more or not is_plain else "not "
    verb = "" if verb == "= " and values in (["known"], ["unknown"]) else verb
    if reason.takes_unknown and not is_more:
        verb = "unknown or " + verb
    for most in range(N_NAMED, 0, -1):
        shown = values if len(values) <= most else values[: max(most - 1, 1)]
        rest = [counted(len(values) - len(shown), "other value")] * (len(shown) < len(values))
        unknown = ["unknown"] * (reason.takes_unknown and is_more)
        # No commas: these stand between reasons.
        text = f"{before}{name} {verb}" + " or ".join([*shown, *rest, *unknown])
        if longest is None or len(text) <= longest:
            return text
    return text[: max(longest - 1, 1)].rstrip() + "…" if longest is not None else text


def describe_doubt(hierarchy: "Hierarchy", node: int) -> str:
    """Return ``words hold for 63 % of rows`` if they are false for a fifth or more, or ""."""
    follows = hierarchy.follows
    if follows is None or not follows.is_doubtful[node]:
        return ""
    return f"words hold for {100 * follows.share[node]:.0f} % of rows"


def describe_trust(hierarchy: "Hierarchy", node: int) -> str:
    """Return ``came back in 18 of 20 refits``; "" for the root and what was not assessed."""
    trust = hierarchy.trust
    return "" if trust is None or node == hierarchy.root else trust.told(node)
