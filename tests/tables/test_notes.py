"""What is said of a table, and the options that change it."""

import numpy as np
import pandas as pd
import pytest

from taxarbor import TableEncoder
from taxarbor.tables.notes import MAX_LINE

RNG = np.random.default_rng(0)
N = 600


def find_notes(frame, **parameters):
    return [note.for_shell for note in TableEncoder(**parameters).fit(frame).columns_.notes]


def test_lines_fit_and_name_what_their_options_name():
    names = [f"a question with many words, number {at}, of a survey" for at in range(9)]
    values = RNG.choice(["yes, of course, and always", "no"], (N, 9)).astype(object)
    values[:2] = "a value that is very long, and that hardly any row has"
    notes = find_notes(pd.DataFrame(values, columns=names))
    rare = next(note for note in notes if note.startswith("rare"))
    assert len(rare) <= MAX_LINE + 50
    assert "and 8 more" in rare
    short = pd.DataFrame(values, columns=[*"abcdefghi"])
    rare = next(note for note in find_notes(short) if note.startswith("rare"))
    assert len(rare) <= MAX_LINE
    assert rare.endswith("[--categories a,b,c,d,e,f,g,h,i]")


@pytest.mark.parametrize(("n_values", "option"), [(200, "categories"), (300, "exclude")])
def test_options_of_columns_with_many_values(n_values, option):
    numbers = np.arange(N) % n_values
    odd = np.where(np.arange(N) < 9, "other", numbers.astype(str))
    euros = [f"{number} €" for number in numbers]
    frame = pd.DataFrame({"odd": odd, "zip": numbers, "euros": euros, "x": np.arange(N) % 7})
    notes = find_notes(frame)
    for name in ("odd", "zip", "euros"):
        assert any(f"{name} (" in note and f"[--{option} {name}]" in note for note in notes)
    words = pd.DataFrame({"w": [f"w{at}" for at in range(n_values)]}).assign(x=range(n_values))
    words["x"] %= 7
    assert any("--categories w" in note for note in find_notes(words)) is (n_values == 200)


def test_what_tells_nothing_is_not_said():
    days = pd.date_range("2019-01-01", periods=N, freq="D")
    frame = pd.DataFrame({"day": days, "year": days.year, "at": days.strftime("%H:%M")})
    frame = frame.assign(cylinders=RNG.choice([*"468"], N))
    assert not any("tell the same" in note or "numbers:" in note for note in find_notes(frame))


def test_copies_and_odd_dates_are_told():
    teams = RNG.integers(0, 12, N)
    days = ["2/-9/1928"] * 20 + [*pd.date_range("1928", periods=N - 20).strftime("%m/%d/%Y")]
    frame = pd.DataFrame({"team": teams, "abbreviation": 11 - teams, "other": teams // 2})
    frame = frame.map("t{}".format).assign(day=days, x=RNG.normal(size=N))
    notes = find_notes(frame)
    assert (
        "columns that tell the same all count: team (= abbreviation) [--exclude abbreviation]"
        in notes
    )
    assert any(
        note.endswith("missing: day ('2/-9/1928': 20 rows) [--exclude day]") for note in notes
    )
    assert any(note.startswith("missing values in 1 of 5 columns") for note in notes)
    assert not TableEncoder().fit(frame).columns_.read(frame).unseen


def test_an_unknown_level_is_told():
    levels = RNG.choice(["low", "medium", "high", "unknown"], N)
    notes = find_notes(pd.DataFrame({"v": levels, "x": np.arange(N) % 7}))
    assert any("unknown values count as missing: v ('unknown')" in note for note in notes)


def test_huge_numbers_are_short():
    frame = pd.DataFrame({"v": np.append(RNG.normal(50, 5, N), [-1e30] * 9)})
    assert "v (-1e+30, 1.5 % of the rows) [--missing -1e+30]" in find_notes(frame)[0]
