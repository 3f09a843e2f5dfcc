"""What holds of every plot: whose tree, on which axes, in which words, how quietly."""

import itertools
import sys

import pytest
from matplotlib import pyplot as plt
from matplotlib.text import Text
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from taxarbor import Taxarbor, plot

PLOTS = [getattr(plot, name) for name in plot.__all__]
every_plot = pytest.mark.parametrize("draw", PLOTS, ids=lambda draw: draw.__name__)


@every_plot
def test_without_matplotlib(animals, monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib.textpath", None)
    with pytest.raises(ImportError, match=rf"{draw.__name__} needs .* pip install matplotlib"):
        draw(animals[0])


@every_plot
def test_a_fitted_model_has_a_tree(animals, draw):
    model = Taxarbor()
    model.taxonomy_ = animals[0]
    ax = draw(model)
    assert plt.get_fignums() == [ax.figure.number]
    with pytest.raises(NotFittedError):
        draw(Taxarbor(3))
    for wrong in (3, None, "tree", KMeans(3), KMeans(2, n_init=1).fit([[0.0], [1.0]])):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            draw(wrong)


def test_wrong_arguments_leave_no_figure(known):
    with pytest.raises(ValueError, match="orientation"):
        plot.plot_tree(known, orientation="up")
    with pytest.raises(TypeError, match="describe"):
        plot.plot_tree(known, describe=lambda node: "text")
    with pytest.raises(ValueError, match="max_depth"):
        plot.plot_tree(known, max_depth=-1)
    with pytest.raises(TypeError):
        plot.plot_tree(known, max_depth=1.5)
    for classes in (["a", "b", "c"], 3, [[0, 0]] * 12, []):
        with pytest.raises(ValueError, match="one class for each of the 12 rows"):
            plot.plot_tree(known, classes=classes)
    with pytest.raises(ValueError, match="no classes"):
        plot.plot_tree(known, classes=["", None] * 6)
    assert plt.get_fignums() == []


@every_plot
def test_given_axes(animals, draw):
    for size in [(1, 1), (3, 2), (6.4, 4.8), (20, 9)]:
        figure, (ax, other) = plt.subplots(1, 2, figsize=size)
        before = ax.get_position().bounds
        assert draw(animals[0], ax=ax) is ax
        assert ax.get_position().bounds == before
        assert plt.get_fignums() == [figure.number]
        assert [*ax.texts, *ax.lines, *ax.patches, *ax.collections]
        assert not [*other.texts, *other.patches, *other.collections, *other.images]
        figure.canvas.draw()
        plt.close(figure)


def test_hostile_names_are_literal(hostile):
    taxonomy, classes = hostile
    for draw, options in ((plot.plot_tree, {"classes": classes}), (plot.plot_dendrogram, {})):
        ax = draw(taxonomy, **options)
        ax.figure.canvas.draw()
        texts = [text for text in ax.figure.findobj(Text) if text.get_text()]
        words = [text.get_text() for text in texts]
        assert any("$x$" in word for word in words)
        assert not any(text.get_parse_math() for text in texts if "$" in text.get_text())
        assert max(map(len, itertools.chain(*(word.split(" · ") for word in words)))) <= 28
    legend = plot.plot_tree(taxonomy, classes=classes).get_legend()
    shown = {text.get_text().strip() for text in legend.texts}
    assert {"$x$", "two lines", "(no label)", "_under", "a & <b>"} < shown
