"""The curve behind a suggested number of clusters."""

import numpy as np
import pytest

from taxarbor import HMMC, make_planted_tree
from taxarbor.plot import plot_stability
from taxarbor.stability import assess


def test_the_curve_and_the_suggestion():
    X = make_planted_tree(80, depth=1, n_noise_features=0).X
    model = HMMC(4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="assess"):
        plot_stability(model)
    taxonomy = assess(model, X, n_refits=4)
    curve, ax = taxonomy.stability.curve, plot_stability(taxonomy)
    data, reference, _, suggestion = ax.lines
    for line, values in ((data, curve.stability), (reference, curve.reference)):
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert set(suggestion.get_xdata()) == {curve.suggested} == {2}
    assert "suggested: 2" in [text.get_text() for text in ax.get_legend().get_texts()]
    ax.figure.canvas.draw()
