"""The curve behind a suggested number of clusters."""

import numpy as np
import pytest

from taxarbor import HMMC, make_planted_tree
from taxarbor.plot import plot_stability
from taxarbor.stability import assess


def test_the_curve_and_the_suggestion():
    X = make_planted_tree(80, depth=1, n_noise_features=0).X
    model = HMMC(4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="not assessed yet"):
        plot_stability(model)
    taxonomy = assess(model, X, n_refits=4)
    drawn = plot_stability(taxonomy)
    data, reference, _, suggestion = drawn.lines
    for line, values in [
        (data, taxonomy.stability.curve[1]),
        (reference, taxonomy.stability.curve[2]),
    ]:
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert set(suggestion.get_xdata()) == {taxonomy.stability.suggested} == {2}
    told = [text.get_text() for text in drawn.legend.get_texts()]
    assert told == ["these rows", "rows without clusters", "suggested: 2"]
    drawn.axes.figure.canvas.draw()
