"""How trees show themselves: text, and sound HTML whatever the names."""

import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone

from taxarbor import HMMC, Taxarbor, load_animals
from taxarbor.exchange import from_labels
from taxarbor.taxonomy import Taxonomy
from taxarbor.tree import LinearRule, TreeBuilder

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


def named(names):
    """Return a tree of one split that uses each of the names."""
    builder = TreeBuilder(2)
    W = np.arange(1.0, 1 + len(names))
    builder.add_split(0, [0, 1], LinearRule(np.stack([W, -W]), np.zeros(len(names))))
    return Taxonomy(builder.freeze(feature_names=names))


def test_text(known, bare):
    lines = [
        "node 0: 10 rows",
        "  node 1: 3 rows, higher a [c0]",
        "  node 2: 5 rows, higher b",
        "    node 4: 2 rows, a at most 2 [c1]",
        "    node 5: 3 rows, a above 2 [c2]",
        "  node 3: 2 rows, lower b, lower a [c3]",
    ]
    assert str(known) == known.to_text() == "\n".join(lines)
    assert known.to_text(max_depth=1, n_top=1).splitlines() == [
        *lines[:2],
        "  node 2: 5 rows, higher b [2 clusters]",
        "  node 3: 2 rows, lower b [c3]",
    ]
    last = ["  node 2: 5 rows [2 clusters]", "  ... and 1 more cluster"]
    assert known.to_text(max_nodes=3, n_top=0).splitlines()[-2:] == last
    assert known.to_text(max_nodes=5) == known.to_text(max_depth=1)
    assert bare.to_text().splitlines()[:2] == [lines[0], "  node 1: 3 rows [c0]"]


def test_trees_say_what_came_back(assessed):
    told = [
        "node 0: 10 rows",
        "  node 1: 3 rows, higher a (recovered in 18 of 20 refits) [c0]",
        "  node 2: 5 rows, higher b (recovered in 20 of 20 refits)",
    ]
    assert assessed.to_text().splitlines()[:3] == told
    gapless = "(recovered in 16 of 20 refits, in 12 of them without a gap)"
    assert assessed.to_text().endswith(f" {gapless} [c3]")
    _, page = read(assessed)
    assert page.count("recovered in") == 5
    html = assessed._repr_html_()
    assert '<span class="n">(recovered in 18 of 20 refits)</span>' in html
    assert f'<span class="unstable">{gapless}</span>' in html


def test_text_has_a_line_per_node(chain):
    for name in HOSTILE:
        text = named([name]).to_text()
        assert len(text.splitlines()) == 3
        text.encode("utf-8")
    assert chain.to_text().endswith("[2,902 clusters]")
    assert len(chain.to_text(max_nodes=10**9, n_top=0).splitlines()) == chain.tree.n_nodes


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


def read(taxonomy):
    """Return the page of a tree, which must hold nothing but what is expected, and its text."""
    text = taxonomy._repr_html_()
    text.encode("utf-8")
    page = Page(text)
    assert set(page.tags) <= {"style", "div", "details", "summary", "span", "b"}
    assert page.attributes <= {"class", "style", "open"}
    assert not page.comments
    assert page.tags.count("style") == 1
    return page, "".join(page.texts)


def test_html_of_the_known_tree(known, bare):
    page, text = read(known)
    assert page.tags.count("b") == known.tree.n_nodes
    assert page.tags.count("details") == known.tree.n_splits
    assert text.startswith("Taxonomy(n_rows=10, n_leaves=4, height=2)")
    for words in ("all rows", "10 rows · 4 clusters", "3 rows · c0", "higher a"):
        assert words in text
    assert "1 row · c0" in read(Taxonomy(TreeBuilder(1).freeze()))[1]
    assert read(bare)[0].tags.count("b") == bare.tree.n_nodes


def test_hostile_names_stay_text():
    for name in HOSTILE:
        taxonomy = named([name])
        for one in (taxonomy, dataclasses.replace(taxonomy, means=[[0.0], [1.0], [-1.0]])):
            page, _ = read(one)
            assert page.tags.count("b") == 3
            clean = "".join(c if c.isprintable() else " " for c in name.replace("\ud800", "?"))
            clean = clean.strip() or "unnamed"
            assert {f"{clean} at least 0", f"{clean} below 0"} <= set(page.texts)


@given(names=st.lists(st.text(), min_size=1, max_size=3))
def test_no_name_makes_a_tag(names):
    assert read(named(names))[0].tags.count("b") == 3


def test_of_big_trees_the_first_splits_are_shown(chain):
    X = np.random.default_rng(0).normal(size=(400, 3))
    taxonomy = HMMC(150, random_state=0).fit(X).taxonomy_
    page, text = read(taxonomy)
    assert text.startswith("Taxonomy(n_rows=400, n_leaves=150")
    assert page.tags.count("b") == 199
    assert len(re.findall(r"· (c\d+|\d+ clusters)(?=\D|$)", text)) == 199
    page, _ = read(chain)  # nothing recurses
    assert page.tags.count("b") == 199
    assert page.deepest < 500


def test_of_a_wide_split_the_first_children_are_shown():
    page, text = read(from_labels(np.arange(500)))
    assert page.tags.count("b") == 200
    assert "... and 301 more clusters" in text
    assert "c198" in text
    assert "c199" not in text
    assert "more cluster" not in read(from_labels(np.arange(199)))[1]
    assert "... and 1 more cluster<" in from_labels(np.arange(200))._repr_html_()


@pytest.mark.parametrize("kind", [Taxarbor, HMMC])
def test_notebooks_show_the_tree_of_fitted_models(kind):
    model = kind(3, random_state=0)
    assert "Taxonomy(" not in model._repr_mimebundle_()["text/html"]
    model.fit(load_animals().X)
    shown = model._repr_mimebundle_(include=None, exclude=None)
    assert shown["text/html"].endswith(model.taxonomy_._repr_html_())
    assert shown["text/plain"] == repr(model)
    assert "Taxonomy(" not in clone(model)._repr_mimebundle_()["text/html"]
    with config_context(display="text"):
        assert model._repr_mimebundle_() == {"text/plain": repr(model)}
