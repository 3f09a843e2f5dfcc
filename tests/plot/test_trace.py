"""Traces begin at 1 and never rise, and the root's lies on top."""

import dataclasses

import numpy as np
import pytest

from taxarbor._types import SolveInfo, Status
from taxarbor.plot import plot_trace
from taxarbor.plot._trace import find_traces


def traced(tree, *traces):
    """Return the tree with these traces of its first nodes."""
    info = [SolveInfo(Status.SETTLED, len(trace) - 1, 1.0, trace) for trace in traces]
    return dataclasses.replace(tree, info=(*info, *[None] * (tree.n_nodes - len(info))))


@pytest.fixture
def some(known):
    """Traces of the root, of a leaf that was tried and of another split."""
    return traced(known, (4.0, 2.0, 1.0), (3.0, 3.0), (5.0, 0.5))


def test_shares_of_the_start(some):
    traces = find_traces(some)
    assert traces.nodes.tolist() == [0, 2]
    assert traces.depth.tolist() == [0, 1]
    assert traces.lines[0].tolist() == [[0, 1], [1, 0.5], [2, 0.25]]
    assert traces.lines[1].tolist() == [[0, 1], [1, 0.1]]


def test_a_fit(animals):
    tree, _ = animals
    traces = find_traces(tree)
    assert set(traces.nodes.tolist()) <= {n for n in range(tree.n_nodes) if not tree.is_leaf(n)}
    for line in traces.lines:
        assert line[0].tolist() == [0, 1]
        assert (np.diff(line[:, 1]) <= 1e-12).all()
    drawn = plot_trace(tree)
    assert len(drawn.lines.get_segments()) == len(traces.lines)
    assert drawn.lines.get_linewidths()[-1] == max(drawn.lines.get_linewidths())
    assert drawn.axes.get_yscale() == "log"
    drawn.axes.figure.canvas.draw()
    low, high = drawn.axes.get_ylim()
    values = np.concatenate(traces.lines)[:, 1]
    assert low < values.min()
    assert high > values.max()
    page = drawn.axes.figure.get_tightbbox()
    assert page.x0 >= 0
    assert page.y0 >= 0


def test_chosen_nodes(some):
    assert find_traces(some, [1, 0]).nodes.tolist() == [1, 0]
    drawn = plot_trace(some, nodes=iter([2]))
    assert len(drawn.lines.get_segments()) == 1
    assert [text.get_text() for text in drawn.legend.get_texts()] == ["depth 1, 1 split"]
    for error, nodes, told in [
        (ValueError, [0, 3], "there is no trace of node 3"),
        (IndexError, [6], "there is no node 6"),
        (ValueError, [], "there are no traces"),
    ]:
        with pytest.raises(error, match=told):
            plot_trace(some, nodes=nodes)


def test_an_objective_of_zero(known):
    drawn = plot_trace(traced(known, (0.0, 0.0), (1.0,), (2.0, 0.0)))
    assert drawn.traces.lines[0].tolist() == [[0, 1], [1, 1]]
    assert drawn.axes.get_yscale() == "linear"
    drawn.axes.figure.canvas.draw()
    drawn = plot_trace(traced(known, (2.0,)))
    drawn.axes.figure.canvas.draw()
