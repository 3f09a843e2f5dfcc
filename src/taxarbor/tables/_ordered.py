"""Categories that have a natural order: numbered labels, ranges, and words for degrees."""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import TypeAlias

MAX_NUMBERED = 12  # numbered labels up to which their numbers are an order, not codes

Rank: TypeAlias = float | tuple[float, float]

SCALES = [
    {word: at for at, level in enumerate(scale.split(", ")) for word in level.split("|")}
    for scale in (
        "none, lowest, very low|extremely low, low, medium low|low medium|moderately low, "
        "medium|mid|med|middle|moderate|average|normal, "
        "medium high|high medium|moderately high, high, very high|extremely high, "
        "highest|critical|urgent",
        "xxxs|3xs, xxs|2xs, xs, s, m, l, xl, xxl|2xl, xxxl|3xl, 4xl, 5xl",
        "tiny|extra small|x small|very small, small, medium|mid|middle|midsize, large|big, "
        "extra large|x large|very large|huge",
        "terrible|awful, very poor|very bad, poor|bad, fair|average|acceptable|ok|okay|neutral|"
        "satisfactory, good, very good, excellent|outstanding|great",
        "fair, good, very good, premium, ideal",
        "bad|poor, fair, good, better, best",
        "none|none at all, a little|little, a moderate amount|some, a lot, a great deal",
        "not at all, to a small extent, to some extent, to a moderate extent, "
        "to a large extent|to a great extent, to a very great extent",
        "not at all, several days, more than half the days, nearly every day",
        "definitely not, probably not, might or might not|possibly, probably|probably yes, "
        "definitely|definitely yes",
        "not important|unimportant|of no importance, slightly important|of little importance, "
        "moderately important|of average importance|important, very important, "
        "extremely important|absolutely essential",
        "not true, somewhat true, certainly true|very true",
        "not happy|not too happy, fairly happy|pretty happy, very happy",
        "no schooling|none, primary school|elementary school|grade school, middle school, "
        "some high school|less than high school, high school|hs|high school graduate, "
        "some college, associate|associates|associate's|associate degree|associate's degree, "
        "college|bachelor|bachelors|bachelor's|graduation|undergraduate|bachelor degree|"
        "bachelor's degree, "
        "master|masters|master's|graduate|graduate school|graduate degree|postgraduate|"
        "master degree|master's degree, "
        "phd|ph.d|doctor|doctorate|professional degree|doctoral degree",
        "never, almost never|hardly ever|very rarely, rarely|seldom, occasionally, sometimes, "
        "often|frequently, usually|most of the time|mostly, very often|very frequently, "
        "almost always|nearly always, always",
        "yearly|annually|annual, quarterly, monthly, weekly, daily, hourly",
        "none|absent, minimal, mild|slight, moderate, severe, very severe|extreme|critical",
        "novice|beginner, elementary|basic, intermediate, advanced, expert",
        "intern|trainee, entry|entry level, junior, mid|middle|mid level, senior, lead",
        "bronze, silver, gold, platinum, diamond",
        "freezing, cold, cool, mild, warm, hot, very hot",
        "very slow, slow, medium|moderate|average, fast, very fast",
        "very short, short, medium|average, tall|long, very tall|very long",
        "light, medium, heavy, very heavy",
        "very young, young, middle aged|middle age, old|elderly|senior, very old",
        "first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth",
        "1st, 2nd, 3rd, 4th, 5th, 6th, 7th, 8th, 9th, 10th",
        "i, ii, iii, iv, v, vi, vii, viii, ix, x",
        "jan|january, feb|february, mar|march, apr|april, may, jun|june, jul|july, aug|august, "
        "sep|sept|september, oct|october, nov|november, dec|december",
        "primary, secondary, tertiary",
        "l|low, m|medium, h|high",
        "underweight, normal|normal weight, overweight, obese",
        "never, former|past|ex, current",
        "no, maybe|sometimes, yes",
        "before, during, after",
        "less|fewer, same|equal, more",
        "too little, about right|just right, too much",
        "below college, college, bachelor, master, doctor",
        "po|poor, fa|fair, ta|average|typical, gd|good, ex|excellent",
        "*, **, ***, ****, *****",
    )
]
"""Words from little to much, with their levels, each in all spellings."""

STRENGTHS = {
    word: strength
    for words, strength in (
        ("slightly|a little|a bit|mildly", 1.0),
        ("somewhat|rather|partly", 1.2),
        ("moderately|fairly|quite|tend to|mostly", 1.5),
        ("", 2.0),
        ("very|strongly|highly|very much|much|a lot", 3.0),
        ("extremely|completely|totally|fully|definitely", 4.0),
        ("not very", -1.0),
        ("not so", -1.2),
        ("not", -2.0),
        ("not at all", -4.0),
    )
    for word in words.split("|")
}
"""How much a word before or after a statement adds to it."""
STATEMENTS = (
    "agree/disagree approve/disapprove satisfied/dissatisfied satisfied/unsatisfied "
    "likely/unlikely important/unimportant positive/negative easy/difficult easy/hard "
    "true/false happy/unhappy favorable/unfavorable favourable/unfavourable useful/useless "
    "support/oppose like/dislike better/worse "
    "comfortable/uncomfortable familiar/unfamiliar true/untrue "
    "safe/unsafe interested/uninterested confident/ concerned/ worried/ often/ /"
)
NEUTRAL = re.compile(
    r"neutral|neither(?: .* nor .*)?|undecided|no opinion|indifferent|unsure|mixed|"
    r"(?:about |stayed )?the same|no change"
)

NUMBERED = re.compile(
    r"\(?(\d{1,2}|[a-h](?=[):.]))\s*"
    r"(?:[).:=-]+\s*(?=[^\d\s])|[).:]+\s+(?=\d)|_(?=\S)(?![\d_]+$)).*",
    re.DOTALL,
)
NUMBERED_LEVEL = re.compile(
    r"(?:\d{4}[- ]?)?(?:q|(?:level|grade|stage|tier|degree|step|rank|quarter) ?)(\d{1,2})"
)

AMOUNT = r"[$€£]?(-?\d[\d,]*(?:\.\d+)?) ?([km%]|thousand|million)?"
BELOW = r"<=?|≤|under|below|less than|up to|at most|fewer than|younger than"
ABOVE = r">=?|≥|over|above|more than|at least|older than|from"
MORE = r"\+|plus|(?:and|or|&) (?:more|over|above|older|up|greater)|or higher"
UNIT = re.compile(
    r"(?<![^\W\d]) ?(?:(?:years?|yrs?|months?|weeks?|days?|hours?|hrs?|minutes?|mins?)"
    r"(?: olds?)?|employees|people|persons|times|kg|km(?:/h)?|miles|m?[gl]|usd|eur|"
    r"(?:per |/)(?:day|week|month|year))+\b"
)
RANGES = {
    "below": re.compile(rf"(?:{BELOW}) ?{AMOUNT}|{AMOUNT} (?:or|and) (?:less|under|younger)"),
    "above": re.compile(rf"(?:{ABOVE}) ?{AMOUNT}|{AMOUNT} ?(?:{MORE})"),
    "between": re.compile(
        rf"[\[(]?{AMOUNT} ?(?:[-\u2013\u2014]|to|and|,|\.\.+|<) ?<?{AMOUNT}[\])]?"
    ),
    "one": re.compile(AMOUNT),
}
SCALE_OF = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6}


def find_order(values: Sequence[str], *, is_numbered: bool = True) -> tuple[str, ...] | None:
    """Return categories in their natural order, None if they have none.

    All of them must belong to one scale, and each must be another level of it. Numbers before
    the names of classes are no order.
    """
    if len(values) < 3:  # of two, an order says nothing
        return None
    texts = [" ".join(value.casefold().split()) for value in values]
    ranks = _rank_numbered(texts) if is_numbered else None
    ranks = ranks or _rank_ranges(texts) or _rank_words(texts)
    if ranks is None or len(set(ranks)) < len(values):
        return None
    return tuple(value for _, value in sorted(zip(ranks, values, strict=True)))


def _rank_numbered(texts: Sequence[str]) -> list[Rank] | None:
    for pattern in (NUMBERED, NUMBERED_LEVEL):
        found = [pattern.fullmatch(text) for text in texts]
        marks = [one[1] for one in found if one]
        is_one_kind = len({mark.isdigit() for mark in marks}) == 1
        if len(marks) == len(texts) <= MAX_NUMBERED and is_one_kind:
            return [float(one) if one.isdigit() else float(ord(one)) for one in marks]
    return None


def _rank_ranges(texts: Sequence[str]) -> list[Rank] | None:
    found = (_read_range(UNIT.sub("", text).strip()) for text in texts)
    ranges = [one for one in found if one is not None]
    if len(ranges) < len(texts) or all(low == high for low, high in ranges):
        return None
    are_apart = all(high <= low for (_, high), (low, _) in pairwise(sorted(ranges)))
    return [*ranges] if are_apart else None


def _read_range(text: str) -> tuple[float, float] | None:
    for kind, pattern in RANGES.items():
        if token := pattern.fullmatch(text):
            parts = token.groups()
            pairs = [pair for pair in zip(parts[::2], parts[1::2], strict=True) if pair[0]]
            last = SCALE_OF.get(pairs[-1][1], 1.0)
            numbers = [
                float(digits.replace(",", "")) * SCALE_OF.get(suffix, last)
                for digits, suffix in pairs
            ]
            low = -inf if kind == "below" else numbers[0]
            high = inf if kind == "above" else numbers[-1]
            return (low, high) if low <= high else None
    return None


def _rank_words(texts: Sequence[str]) -> list[Rank] | None:
    plain = [re.sub(r"[\s_/-]+", " ", text).strip(" .") for text in texts]
    words = [text.split() for text in plain]
    shorter = [plain]  # and without a word that all have in common: low risk, high risk
    for at, rest in ((-1, slice(-1)), (0, slice(1, None))):
        if min(map(len, words)) > 1 and len({one[at] for one in words}) == 1:
            shorter.append([" ".join(one[rest]) for one in words])
    for tried in shorter:
        for level_of in SCALES:
            if level_of.keys() >= set(tried):
                return [level_of[text] for text in tried]
    for statement in STATEMENTS.split():
        strength_of = _list_strengths(*statement.split("/"))
        strength_of |= {text: 0.0 for text in plain if NEUTRAL.fullmatch(text)}
        if strength_of.keys() >= set(plain):
            return [strength_of[text] for text in plain]
    return None


def _list_strengths(positive: str, negative: str) -> dict[str, float]:
    """Return how strongly texts say the one or the other."""
    strength_of = {}
    for pole, sign in ((negative, -1.0), (positive, 1.0)):
        for word, strength in STRENGTHS.items() if pole or not positive else ():
            strength_of[f"{word} {pole}".strip()] = sign * strength
            strength_of[f"{pole} {word}".strip()] = sign * strength
    return strength_of
