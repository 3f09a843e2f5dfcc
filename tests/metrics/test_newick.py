import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics import ClassTree
from taxarbor.metrics._newick import read_newick

PLAIN = ([-1, 0, 1, 1, 0], ["animal", "mammal", "cat", "dog", "owl"])


@pytest.mark.parametrize(
    "text",
    [
        "((cat,dog)mammal,owl)animal;",
        "((cat,dog)mammal,owl)animal",
        "  ( (cat , dog) mammal,\n\towl ) animal ; \n",
        "((cat:1,dog:2.5)mammal:1e-3,owl:-.5)animal:0;",
        "(('cat','dog')'mammal','owl')'animal';",
        "[tree [one]]((cat[a],dog)[b]mammal[c],[d]owl)animal;[the end]",
        "((cat:[&rate=1]1[&x={1,2}],dog: 2 )mammal,owl)animal;",
    ],
)
def test_the_same_tree(text):
    assert read_newick(text) == PLAIN


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "(a_b,c d,'it''s','(x),[y];:','''',' z ');",
            ["a_b", "c d", "it's", "(x),[y];:", "'", " z "],
        ),
        ("(é,木,\N{SNOWMAN});", ["é", "木", "\N{SNOWMAN}"]),
        ("('[no comment]',a)[one];", ["[no comment]", "a"]),
        ("(0.5,1e3)95;", ["0.5", "1e3"]),
    ],
)
def test_names(text, names):
    assert read_newick(text)[1][1:] == names


def test_names_of_inner_nodes_are_optional():
    assert read_newick("((a,b),c);") == ([-1, 0, 1, 1, 0], ["", "", "a", "b", "c"])
    assert read_newick("((a,b):1,c):2;") == ([-1, 0, 1, 1, 0], ["", "", "a", "b", "c"])


def test_single_children_and_single_leaves():
    assert read_newick("(((a)));") == ([-1, 0, 1, 2], ["", "", "", "a"])
    assert read_newick("a;") == ([-1], ["a"])
    assert read_newick("a:3;") == ([-1], ["a"])


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("((a,b);", "ends before all parentheses are closed", 7),
        ("((a,b)", "ends before all parentheses are closed", 7),
        ("(a,b));", "')' outside of all parentheses", 6),
        ("a,b;", "',' outside of all parentheses", 2),
        ("(a,,b);", "a leaf without a name", 4),
        ("(a,);", "a leaf without a name", 4),
        ("();", "a leaf without a name", 2),
        (";", "a leaf without a name", 1),
        ("(a,'');", "a leaf without a name", 6),
        ("(a,:1);", "a leaf without a name", 6),
        ("(a,'b);", "a quote that is not closed", 4),
        ("(a,b'c);", "a second name for one node", 5),
        ("(a,'b'c);", "a second name for one node", 7),
        ("(a,b[x]c);", "a second name for one node", 8),
        ("(a:1 b,c);", "one branch length, a number", 4),
        ("(a:x,b);", "one branch length, a number", 4),
        ("(a:,b);", "one branch length, a number", 4),
        ("(a:1:2,b);", "one branch length, a number", 6),
        ("(a:1[x]c,b);", "a second name for one node", 8),
        ("(a,b[c);", "a comment that is not closed", 5),
        ("(a,b]);", "a ']' without a '['", 5),
        ("(a,b);(c,d);", "text after the end", 7),
        ("(a,b);c", "text after the end", 7),
        ("(a,b)(c);", "a '(' may stand", 6),
        ("(a,b(c,d));", "a '(' may stand", 5),
        ("(a,b)c(d);", "a '(' may stand", 7),
    ],
)
def test_mistakes_are_found_where_they_are(text, what, where):
    pattern = f"not a tree in Newick format: .*{re.escape(what)}.*at character {where}, near"
    with pytest.raises(ValueError, match=pattern):
        read_newick(text)


def test_a_deep_tree():
    depth = 20_000
    parents, names = read_newick("(" * depth + "a" + ",b)" * depth + ";")
    assert len(parents) == 2 * depth + 1
    assert names.count("b") == depth


# Control characters are not kept by to_newick.
plain_names = st.text(
    st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1, max_size=8
)


@given(st.lists(plain_names.map(str.strip).filter(bool), min_size=2, max_size=6, unique=True))
def test_what_a_hierarchy_writes_is_read(names):
    text = Hierarchy.from_labels(np.arange(len(names))).to_newick(names)
    assert ClassTree.read(text).names == tuple(names)
