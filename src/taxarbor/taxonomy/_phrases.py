"""Reasons, and how people say them: one vocabulary for text, pictures and pages."""

import re
from dataclasses import dataclass
from typing import final

import numpy as np

from taxarbor._errors import counted, printable
from taxarbor._number_text import format_exactly

MOSTLY = 0.8  # a word is said of some rows if it is false for less than a fifth of them

N_NAMED = 3  # categories named, at most; of more, one less, and how many others there are

SAID = {"has": ("has ", "no "), "is": ("is ", "not "), "": ("", "not ")}
"""What stands before a feature of yes and no: its own verb, or ours for a single word."""


@final
@dataclass(frozen=True, slots=True)
class Reason:
    """A feature that sends rows to a node rather than to its siblings.

    The values of a category are features of one column, and make one reason.

    Attributes
    ----------
    feature, name : int, str
        Number of the feature; of those of a category, the one that does most. Its name, or that
        of the column of a category; ``x0``, ``x1``, ... where there are none.
    weight : float
        Its weight for the node, less the mean over the node and its siblings; of a category,
        less that of a row without a value.
    share : float
        Its part in the separation of the node's rows from their siblings', of which those
        that are positive add up to 1. Negative if the others have to make up for it. NaN
        where the means of the nodes are not known; then the largest weight comes first.
    threshold : float or None
        Where this feature alone divides the parent in two: exactly where the rule does, as
        the shortest number that the dtype of the rule rounds to it. 0.5 where a category
        alone does.
    have : float or None
        The share of the node's rows that have it, for a feature of yes and no, or one of the
        ``categories``; of the rows with a value, None if there are none.
    categories : tuple of str
        Of a category, those that lead here, the most frequent first, or with a ``sign`` of -1
        those that lead elsewhere, if these are fewer. () for numbers.
    unknown : float
        The share of the node's rows that have no value in this column.
    takes_unknown, takes_threshold : bool
        Whether rows without a value come here for it, where this column alone divides; and
        rows at the threshold itself, which the first child takes.
    unit, levels : str, tuple of str
        How a value is shown, ``{} %``; and of an ordered category its levels, whose positions
        the values are.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> X = animals.X / animals.X.max(axis=0)
    >>> taxonomy = Taxarbor(6, random_state=0).fit(X).taxonomy_
    >>> first = taxonomy.rename_features(animals.feature_names).reasons(1)[0]
    >>> str(first), first.sign, first.have
    ('gives_milk', 1, 1.0)
    """

    feature: int
    name: str
    weight: float
    share: float
    threshold: float | None = None
    have: float | None = None
    categories: tuple[str, ...] = ()
    unknown: float = 0.0
    takes_unknown: bool = False
    takes_threshold: bool = False
    unit: str = ""
    levels: tuple[str, ...] = ()

    @property
    def sign(self) -> int:
        """1 if larger values lead to the node, -1 if smaller ones do."""
        return 1 if self.weight > 0.0 else -1

    def __str__(self) -> str:
        return phrase(self)


def phrase(reason: Reason, longest: int | None = None) -> str:
    """Say what a feature does for a node, in ``longest`` characters, of which the name gives.

    A feature that divides the parent alone: ``age at most 41.5``, ``age above 41.5``, or ``age
    below 41.5``, ``age at least 41.5``, as the first child takes ties; for yes and no ``has
    fur``, ``no fur``. One of several: ``higher age``, ``lower age``; ``has fur`` or ``no fur``
    where that is so for more than four fifths of the rows, else ``more often fur``, ``less
    often fur``. A name of several words speaks for itself: ``gives_milk``,
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
        if match := re.match(r"(has|is)[_ ]+(.+)", name, re.IGNORECASE):
            verb, name = match[1].lower(), match[2]
        words = SAID[verb] if is_plain else ("more often ", "less often ")
        before = words[0 if is_more else 1]
    elif reason.threshold is not None:
        before, after = "", _phrase_threshold(reason, reason.threshold)
    if reason.takes_unknown and reason.unknown < 1.0:
        is_denied = reason.have is not None and not is_more  # "not x or unknown" has two senses
        before = "unknown or " + before if is_denied else before
        after += "" if is_denied else " or unknown"
    if longest is not None and len(before + name + after) > longest:
        name = name[: max(longest - len(before + after) - 1, 1)].rstrip() + "…"
    return before + name + after


def _phrase_threshold(reason: Reason, threshold: float) -> str:
    """Say on which side of a threshold rows are: `` at most 41.5 km``, `` at least high``."""
    is_more, shown = reason.sign > 0, format_exactly(threshold)
    takes_threshold = reason.takes_threshold
    if reason.levels:
        at = int(np.ceil(threshold) if is_more else np.floor(threshold))
        shown = printable(reason.levels[min(max(at, 0), len(reason.levels) - 1)])
        takes_threshold = takes_threshold or at != threshold
    elif reason.unit:
        shown = printable(reason.unit).replace("{}", shown)
    sides = ("at least", "at most") if takes_threshold else ("above", "below")
    return f" {sides[not is_more]} {shown}"


def _phrase_categories(reason: Reason, name: str, is_plain: bool, longest: int | None) -> str:
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
