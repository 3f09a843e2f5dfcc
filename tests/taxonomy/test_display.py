"""How trees show themselves: text, and sound HTML whatever the names."""

import re
from html import unescape

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from taxarbor import HMMC, Taxarbor, load_animals
from taxarbor.exchange import from_labels
from taxarbor.tables.columns import Columns
from taxarbor.taxonomy import Taxonomy
from taxarbor.tree import LinearRule, TreeBuilder
from tests.taxonomy.conftest import set_means

HOSTILE = [
    *("<script>alert(1)</script>", "</b></li></ul></div><img src=x onerror=alert(1)>"),
    *("\"' onmouseover='alert(1)", "</style><style>*{display:none}"),
    *("&lt;b&gt; &amp; &#60;", "<!-- ]]> -->", "a\nb\x00c\u202e\ud800", ""),
]


def named(names):
    """Return a tree of one split that uses each of the names."""
    builder = TreeBuilder(2)
    W = np.arange(1.0, 1 + len(names))
    builder.add_split(0, [0, 1], LinearRule(np.stack([W, -W]), np.zeros(len(names))))
    return Taxonomy(builder.freeze(), Columns.plain(len(names), names))


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


def test_notebooks_show_the_text_and_names_make_no_tag():
    for name in HOSTILE:
        taxonomy = named([name])
        for one in (taxonomy, set_means(taxonomy, [[0.0], [1.0], [-1.0]])):
            html = one._repr_html_()
            html.encode("utf-8")
            assert re.findall(r"<[^>]*>", html) == ["<pre>", "</pre>"]
            assert unescape(html[5:-6]) == str(one)
            clean = "".join(c if c.isprintable() else " " for c in name.replace("\ud800", "?"))
            clean = clean.strip() or "unnamed"
            assert f"{clean} at least 0" in str(one)
            assert f"{clean} below 0" in str(one)


def test_of_wide_and_deep_trees_the_first_splits_are_shown(chain):
    lines = from_labels(np.arange(500)).to_text().splitlines()
    assert len(lines) == 201
    assert lines[-1] == "  ... and 301 more clusters"
    assert lines[-2].endswith("[c198]")
    assert "more cluster" not in from_labels(np.arange(199)).to_text()
    assert from_labels(np.arange(200)).to_text().endswith("... and 1 more cluster")
    assert len(chain.to_text().splitlines()) == 199  # nothing recurses


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
