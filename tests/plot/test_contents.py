"""Boxes are large enough for what they hold, and nothing in them overlaps."""

import numpy as np
import pytest

from taxarbor.plot import lay_out
from taxarbor.plot._boxes import place_boxes
from taxarbor.plot._contents import BAR, PAD, SHORTEST, Contents
from taxarbor.plot._images import Strip


def held(n, with_bars, with_strips):
    strips = tuple(
        Strip(np.zeros((4, 4 * i, 4), dtype=np.uint8), (20.0 * i, 20.0 * (i > 0)))
        for i in range(n)
    )
    counts = np.arange(3 * n).reshape(n, 3) if with_bars else None
    return Contents(
        words=[[("text", "title")] * (i % 3) for i in range(n)],
        counts=counts,
        colours=("#000000",) * 3,
        strips=strips if with_strips else (),
    )


@pytest.mark.parametrize("with_bars", [False, True])
@pytest.mark.parametrize("with_strips", [False, True])
def test_all_fits(known, with_bars, with_strips):
    layout = lay_out(known)
    contents = held(known.n_nodes, with_bars, with_strips)
    placed = place_boxes(layout, *contents.measure(), "down")
    left, right, bottom, top = contents.place_strips(placed).T
    text = np.array([sum(9.0 * 1.38 for _ in lines) for lines in contents.words])
    assert (left >= placed.low[:, 0] + PAD - 1e-9).all()
    assert (right <= placed.high[:, 0] - PAD + 1e-9).all()
    assert (top <= placed.high[:, 1] - PAD - text + 1e-9).all()
    assert (bottom >= placed.low[:, 1] + PAD - 1e-9 + with_bars * BAR).all()


def test_bars(known):
    layout = lay_out(known)
    contents = held(known.n_nodes, True, False)
    placed = place_boxes(layout, *contents.measure(), "down")
    pieces, groups = contents.place_bars(placed)
    nodes, expected = np.nonzero(contents.counts)
    assert groups.tolist() == expected.tolist()
    widths = np.ptp(pieces[..., 0], axis=1)
    for node in range(known.n_nodes):
        mine = pieces[nodes == node]
        assert mine[..., 0].min() == pytest.approx(placed.low[node, 0] + PAD)
        assert mine[..., 0].max() == pytest.approx(placed.high[node, 0] - PAD)
        counts = contents.counts[node][contents.counts[node] > 0]
        np.testing.assert_allclose(
            widths[nodes == node] / widths[nodes == node].sum(), counts / counts.sum()
        )
    np.testing.assert_allclose(np.ptp(pieces[..., 1], axis=1), BAR)
    assert (placed.high - placed.low)[:, 0].min() >= SHORTEST
