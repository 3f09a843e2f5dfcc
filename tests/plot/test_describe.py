"""What boxes say by default, and what is made of the lines given."""

import re

import pytest

from taxarbor.hierarchy import Hierarchy
from taxarbor.plot._describe import describe_node, tidy


def test_the_default_says_what_to_text_says(animals):
    tree, _ = animals
    told = re.findall(r"node (\d+): (.*?)(?: \[c\d+\])?$", tree.to_text(), re.M)
    assert len(told) == tree.n_nodes
    for node, line in told:
        lines = describe_node(tree, int(node))
        assert ", ".join(text for text, _ in lines).replace("\u2212", "-") == line


def test_styles_by_default(known):
    assert describe_node(known, 0) == [("12 rows", "title")]
    assert describe_node(known, 1) == [("3 rows", "title"), ("+a", "plus")]
    assert describe_node(known, 3) == [
        ("3 rows", "title"), ("\u2212$b$", "minus"), ("\u2212a", "minus"),
    ]  # fmt: skip


def test_large_and_small_numbers():
    tree = Hierarchy.from_labels([0] + [1] * 12_345)
    assert [describe_node(tree, node) for node in range(3)] == [
        [("12,346 rows", "title")], [("1 row", "title")], [("12,345 rows", "title")],
    ]  # fmt: skip


def test_lines_without_a_style():
    lines = ["a", "b", ("c", "plus"), ("d", "title"), "e"]
    styles = ["title", "plain", "plus", "title", "plain"]
    assert tidy(lines, 0) == list(zip("abcde", styles, strict=True))
    assert tidy((), 0) == []


def test_lines_are_short_and_printable():
    long = "x" * 28
    ((whole, _), (cut, _), (odd, _)) = tidy([long, long + "x", "a\n\x07b \ud800 "], 0)
    assert whole == long
    assert cut == "x" * 27 + "…"
    assert odd == "a  b ?"


def test_what_is_no_description_is_refused():
    with pytest.raises(TypeError, match=r"got the text 'one' for node 7: put it in a list"):
        tidy("one", 7)
    with pytest.raises(
        ValueError, match=r"one of title, plain, plus, minus, got 'bold' for node 7"
    ):
        tidy([("one", "bold")], 7)
