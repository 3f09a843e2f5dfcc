"""What holds of every picture: whose tree, on which axes, in which words, how quietly."""

import dataclasses
import itertools
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.text import Text
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from taxarbor import Taxarbor, plot
from taxarbor.plot._dendrogram import lay_out_dendrogram
from taxarbor.plot._layout import lay_out

DRAW = [getattr(plot, name) for name in plot.__all__]
MEASURE = [lay_out, lay_out_dendrogram]
every_plot = pytest.mark.parametrize("draw", DRAW, ids=lambda draw: draw.__name__)


def artists(drawn):
    """All that was drawn, out of tuples, without what it was drawn on."""
    for field in dataclasses.fields(drawn)[1:]:
        held = [getattr(drawn, field.name)]
        while held:
            part = held.pop()
            held += part if isinstance(part, tuple) else ()
            if isinstance(part, Artist):
                yield part


@every_plot
def test_what_is_drawn_shows_itself_quietly(animals, draw):
    """As a notebook's last line, a plot prints one short line."""
    drawn = draw(animals[0])
    assert plt.get_fignums() == [drawn.axes.figure.number]
    names = [field.name for field in dataclasses.fields(drawn)]
    assert repr(drawn) == f"{type(drawn).__name__}({', '.join(names)})"
    assert names[0] == "axes"
    assert len(repr(drawn)) < 80
    for shown in ("_repr_html_", "_repr_mimebundle_", "_repr_pretty_", "_ipython_display_"):
        assert not hasattr(drawn, shown)
    assert len(repr(getattr(drawn, "layout", None))) < 80


def test_importing_does_not_import_matplotlib():
    code = "import sys, taxarbor.plot; print('matplotlib' in sys.modules)"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@every_plot
def test_without_matplotlib(animals, monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib.textpath", None)
    told = rf"^{draw.__name__} needs matplotlib: pip install matplotlib$"
    with pytest.raises(ImportError, match=told):
        draw(animals[0])


def test_a_fitted_model_has_a_tree(animals):
    model = Taxarbor()
    model.taxonomy_ = animals[0]
    for make in MEASURE:
        ours, expected = make(model), make(model.taxonomy_)
        for name in type(ours).__slots__:
            for one, other in zip(getattr(ours, name), getattr(expected, name), strict=True):
                np.testing.assert_array_equal(one, other)
    for draw in DRAW:
        assert draw(model).axes.figure is not None


def test_wrong_arguments_leave_no_figure(known, single):
    expected = "expected a fitted model of taxarbor or a Taxonomy, got"
    for make in (*DRAW, *MEASURE):
        for wrong in (3, None, "tree", KMeans(3)):
            with pytest.raises(TypeError, match=f"{expected} {type(wrong).__name__}"):
                make(wrong)
        with pytest.raises(NotFittedError, match="this Taxarbor is not fitted yet"):
            make(Taxarbor(3))
    for draw in (plot.plot_tree, plot.plot_dendrogram):
        with pytest.raises(ValueError, match="orientation must be 'down' or 'right', got 'up'"):
            draw(known, orientation="up")
        with pytest.raises(TypeError, match="put it in a list"):
            draw(known, describe=lambda node: "text")
    with pytest.raises(ValueError, match="max_depth must be 0 or more, or None, got -1"):
        plot.plot_tree(known, max_depth=-1)
    with pytest.raises(TypeError):
        plot.plot_tree(known, max_depth=1.5)
    told = r"one class for each of the 12 rows .* got shape \(3,\)"
    with pytest.raises(ValueError, match=told):
        plot.plot_tree(known, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="at least two leaves, but the root was not split"):
        plot.plot_dendrogram(single)
    assert plt.get_fignums() == []


@every_plot
def test_given_axes(animals, draw):
    for size in [(1, 1), (3, 2), (6.4, 4.8), (20, 9)]:
        figure, (ax, other) = plt.subplots(1, 2, figsize=size)
        before = ax.get_position().bounds
        drawn = draw(animals[0], ax=ax)
        assert drawn.axes is ax
        assert ax.get_position().bounds == before
        assert plt.get_fignums() == [figure.number]
        shown = list(artists(drawn))
        assert shown
        for artist in shown:
            assert artist.axes is ax
            assert artist in ax.get_children()
        assert not [*other.texts, *other.patches, *other.collections, *other.images]
        figure.canvas.draw()
        plt.close(figure)


def test_hostile_names_are_literal(hostile):
    taxonomy, classes = hostile
    for draw in set(DRAW) - {plot.plot_stability}:  # it names no features
        has_classes = draw is plot.plot_tree
        drawn = draw(taxonomy, **({"classes": classes} if has_classes else {}))
        drawn.axes.figure.canvas.draw()
        texts = [text for text in drawn.axes.figure.findobj(Text) if text.get_text()]
        words = [text.get_text() for text in texts]
        assert any("$x$" in word for word in words)
        assert not any(text.get_parse_math() for text in texts if "$" in text.get_text())
        parts = itertools.chain(*(word.split(" · ") for word in words))
        longest = max(map(len, set(parts) - {drawn.axes.get_xlabel()}))
        assert longest <= 28
        if has_classes:
            shown = {text.get_text() for text in drawn.legend.texts}
            assert {"$x$", "two lines", "(no label)", "_under", "a & <b>"} < shown


@pytest.mark.long
def test_no_tree_is_too_deep(chain):
    """A chain of 3,000 splits, which recursion would not reach the end of."""
    assert chain.height == 3000
    n_rows = len(chain.order)
    classes, images = np.arange(n_rows) % 12, np.zeros((n_rows, 2, 2))
    drawn = plot.plot_tree(chain, max_depth=300, classes=classes, images=images)
    assert len(drawn.boxes) == 601
    drawn = plot.plot_dendrogram(chain)
    drawn.axes.figure.canvas.draw()
    assert len(drawn.lines.get_segments()) == chain.n_splits
    assert drawn.texts == ()


def test_what_is_not_stable_is_pale(known, assessed):
    taxonomy, before = plot.plot_tree(assessed), plot.plot_tree(known)
    assert taxonomy.layout.is_lost.tolist() == [False] * 4 + [True] * 2
    assert [box.get_linestyle() == "solid" for box in taxonomy.boxes] == [True] * 4 + [
        False
    ] * 2
    (told,) = (text.get_text() for text in taxonomy.legend.get_texts())
    assert told == "pale: came back, apart from others, in fewer than half of 20 refits"
    inks = [texts[0].get_alpha() for texts in taxonomy.texts]
    assert inks == [1.0] * 4 + [0.65] * 2
    both = plot.plot_tree(assessed, classes=["one", "two"] * 6)
    assert len(both.legend.get_texts()) == 3
    assert before.legend is None
    assert plot.plot_tree(assessed, max_depth=1).legend is None
