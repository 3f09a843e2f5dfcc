import html
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor.bench._markdown import number, percent, plain, seconds, table
from taxarbor.bench._select import Mean

SIGNS = "ab |\\\n\r\t<>&`*[]()!#-"


def read(text):
    """Return what Markdown shows for a text without emphasis, links or code."""
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*\[\]]", text)
    return html.unescape(re.sub(r"\\([\\`*\[\]|])", r"\1", text))


@given(st.lists(st.lists(st.text(SIGNS), min_size=3, max_size=3), max_size=4))
def test_what_is_in_a_cell_stays_in_it(markdown, lines):
    text = table(["a", "b", "c"], lines)
    assert len(text.splitlines()) == len(lines) + 2
    markdown.check(text)
    assert "<" not in text


@given(st.text(SIGNS))
def test_names_are_shown_as_they_are(text):
    assert read(plain(text)) == " ".join(text.split())
    assert len(plain(text).splitlines()) <= 1


@pytest.mark.parametrize(
    "name", ["a|b", "a\nb", "<img src=x onerror=alert(1)>", "![x](http://x)", "a\\|b", "`a`"]
)
def test_a_hostile_name_in_a_table(markdown, name):
    text = table(["data", plain(name)], [["x", "1"], [plain(name), "2"]])
    ((heading, _, _, line),) = markdown.check(text)
    assert heading[1] == line[0]
    shown = html.unescape(re.sub(r"\\([\\`*\[\]|])", r"\1", line[0].replace("\\|", "|")))
    assert shown == " ".join(name.split())
    assert "<" not in text
    assert "](" not in text.replace("\\](", "")


def test_a_table():
    assert table(["a", "b"], [["x", "**no**"]]) == "| a | b |\n| --- | --: |\n| x | **no** |"


def test_percent():
    assert percent(Mean(0.91234, 0.0035, 5)) == "91.23 ± 0.35"
    assert percent(Mean(0.5, 0.0, 1)) == "50.00"
    assert percent(Mean(-0.012, 0.01, 2)) == "-1.20 ± 1.00"
    assert percent(Mean()) == "-"


def test_numbers():
    assert number(1234.567) == "1,234.57"
    assert number(1234.567, 0) == "1,235"
    assert number(math.nan) == "-"
    assert [seconds(value) for value in (0.01234, 12.345, 1234.5, math.nan)] == [
        "0.012",
        "12.3",
        "1,234.5",
        "-",
    ]
