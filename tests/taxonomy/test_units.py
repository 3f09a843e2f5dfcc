"""Trees of rows that the fit scaled, in the units of the table."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from taxarbor import HMMC, TableEncoder, Taxarbor, make_planted_tree

MODELS = {
    "taxarbor": Taxarbor(6, random_state=0),
    "greedy": HMMC(6, random_state=0),
    "three": HMMC(7, branching=3, random_state=0),
}
STANDARD = TableEncoder(scale="standard")


@pytest.mark.parametrize("name", MODELS)
def test_scaled_rows_have_the_same_tree_and_means_are_of_the_rows_as_they_are(name):
    X = make_planted_tree(300, depth=3, random_state=1).X
    X = X * np.logspace(-3, 3, X.shape[1]) + np.linspace(-100.0, 100.0, X.shape[1])
    scaler, model = StandardScaler().fit(X), MODELS[name]
    scaled = model.set_params(encoder=None).fit(scaler.transform(X)).taxonomy_
    taxonomy = model.set_params(encoder=STANDARD).fit(X).taxonomy_
    np.testing.assert_array_equal(taxonomy.tree.labels, scaled.tree.labels)
    rng = np.random.default_rng(0)
    new = X[rng.integers(len(X), size=500)] + rng.normal(size=X.shape[1]) * scaler.scale_
    is_same = taxonomy.predict(new) == scaled.predict(scaler.transform(new))
    # Taxarbor rounds thresholds, in other units to other numbers.
    assert is_same.mean() > (0.9 if name == "taxarbor" else 0.998)
    for node in range(taxonomy.tree.n_nodes):
        expected = X[taxonomy.tree.rows(node)].mean(axis=0)
        np.testing.assert_allclose(taxonomy.means[node], expected, rtol=1e-9)
    for one, two in zip(taxonomy.tree.rules, scaled.tree.rules, strict=True):
        assert (one and one.features.tolist()) == (two and two.features.tolist())
