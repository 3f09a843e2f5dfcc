"""Trees in notebooks: sound HTML, whatever the names, and not too much of it."""

import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone

from taxarbor import HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral, load_animals
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder, LinearRule

EXPECTED = {"style", "div", "ul", "li", "details", "summary", "span", "b"}
ATTRIBUTES = {"class", "style", "open"}
HOSTILE = [
    "<script>alert(1)</script>",
    "</b></li></ul></div><img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "</style><style>*{display:none}",
    "&lt;b&gt; &amp; &#60;",
    "<!-- ]]> -->",
    "a\nb\x00c\u202e\ud800",
    "",
]


class Page(HTMLParser):
    """What a browser sees: tags that match, attributes, and text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.texts = [], [], set(), []
        self.comments, self.deepest = [], 0
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.deepest = max(self.deepest, len(self.open))
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    def handle_comment(self, data):
        self.comments.append(data)

    handle_decl = unknown_decl = handle_pi = handle_comment


def read(tree):
    """Return the page of a tree, which must hold nothing but what is expected."""
    text = tree._repr_html_()
    text.encode("utf-8")
    page = Page(text)
    assert set(page.tags) <= EXPECTED
    assert page.attributes <= ATTRIBUTES
    assert not page.comments
    assert page.tags.count("style") == 1
    return page


def count(page, tag):
    return page.tags.count(tag)


def test_the_known_tree(known):
    page = read(known)
    assert count(page, "li") == known.n_nodes
    assert count(page, "details") == known.n_splits
    told = "".join(page.texts)
    assert told.startswith("Hierarchy(n_rows=10, n_leaves=4, height=2)")
    assert "shown" not in told
    for text in ("all rows", "10 rows · 4 groups", "3 rows · c0", "5 rows · 2 groups", "+a"):
        assert text in told


def test_a_root_alone_and_a_tree_without_rules(bare):
    page = read(HierarchyBuilder(1).freeze())
    assert count(page, "li") == 1
    assert "1 row · c0" in "".join(page.texts)
    assert count(read(bare), "li") == bare.n_nodes


def named(names):
    """Return a tree of one split that uses each of the names."""
    builder = HierarchyBuilder(2, names)
    W = np.arange(1.0, 1 + len(names))
    builder.add_split(0, [0, 1], LinearRule(np.stack([W, -W]), np.zeros(len(names))))
    return builder.freeze()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name):
    tree = named([name])
    for one in (tree, dataclasses.replace(tree, means=[[0.0], [1.0], [-1.0]])):
        page = read(one)
        assert count(page, "li") == 3
        clean = "".join(c if c.isprintable() else " " for c in name.replace("\ud800", "?"))
        assert "+" + clean in page.texts
        assert "-" + clean in page.texts


@given(names=st.lists(st.text(), min_size=1, max_size=3))
def test_no_name_makes_a_tag(names):
    page = read(named(names))
    assert count(page, "li") == 3


def test_big_trees_are_cut():
    X = np.random.default_rng(0).normal(size=(400, 3))
    tree = HierarchicalKMeans(150, random_state=0).fit(X).hierarchy_
    page = read(tree)
    told = "".join(page.texts)
    assert told.startswith("Hierarchy(n_rows=400, n_leaves=150")
    assert "cut to 100 of its groups" in told
    assert count(page, "li") == 199
    ends = re.findall(r"· (c\d+|\d+ groups)(?=\D|$)", told)
    assert len(ends) == 199
    assert "shown" not in "".join(read(tree.prune(100)).texts)


def test_of_a_wide_split_the_first_children_are_shown():
    page = read(Hierarchy.from_labels(np.arange(500)))
    told = "".join(page.texts)
    assert "cut to 100 of its groups" in told
    assert "… and 400 more groups" in told
    assert count(page, "li") == 1 + 100 + 1
    assert "c99" in told
    assert "c100" not in told
    exact = "".join(read(Hierarchy.from_labels(np.arange(100))).texts)
    assert "more groups" not in exact
    assert "cut to" not in exact


def test_groups_below_a_wide_split_are_counted():
    builder = HierarchyBuilder(300)
    children = builder.add_split(0, np.arange(300) // 2)
    for child in children:
        builder.add_split(child, [0, 1])
    told = "".join(read(builder.freeze()).texts)
    assert "… and 100 more groups" in told
    assert "cut to 100 of its groups" in told


def test_deep_trees_do_not_recurse(chain):
    page = read(chain)
    assert count(page, "li") == 199
    assert page.deepest < 500


def test_only_the_first_levels_are_unfolded():
    tree = Hierarchy.from_linkage([[0, 1, 1, 2], [5, 2, 2, 3], [6, 3, 3, 4], [7, 4, 4, 5]])
    assert tree.height == 4
    text = tree._repr_html_()
    assert text.count("<details open>") == 3
    assert text.count("<details>") == 1


# Notebooks show the tree of a fitted model.

MODELS = [
    HMMC(4, random_state=0),
    HMMC(4, refine=False, random_state=0),
    MMC(2, random_state=0),
    HierarchicalKMeans(4, random_state=0),
    HierarchicalSpectral(4, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_notebooks_show_the_tree_of_fitted_models(model):
    X = load_animals().X
    model = clone(model)
    before, parameters = model._repr_mimebundle_(), model.get_params()
    assert "taxarbor" not in before["text/html"].split("</style>")[-1]
    assert "Hierarchy(" not in before["text/html"]
    model.fit(X)
    tree = model.hierarchy_._repr_html_()
    shown = model._repr_mimebundle_(include=None, exclude=None)
    assert shown["text/html"].endswith(tree)
    assert shown["text/plain"] == before["text/plain"] == repr(model)
    assert model.get_params() == parameters
    again = clone(model)
    assert again.get_params() == parameters
    assert "hierarchy_" not in vars(again)
    assert "Hierarchy(" not in again._repr_mimebundle_()["text/html"]
    assert model._repr_mimebundle_()["text/html"].count(tree) == 1


def test_who_wants_text_gets_text():
    model = HierarchicalKMeans(3, random_state=0).fit(load_animals().X)
    with config_context(display="text"):
        assert model._repr_mimebundle_() == {"text/plain": repr(model)}
