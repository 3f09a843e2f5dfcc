"""Duplicate rows are in one cluster."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from taxarbor import HMMC, GrowthWarning, Taxarbor

MODELS = {
    "taxarbor": Taxarbor(),
    "taxarbor, noise": Taxarbor(noise=0.1),
    "taxarbor, small leaves": Taxarbor(max_leaf_size=20),
    "taxarbor, large leaves": Taxarbor(min_leaf_size=9),
    "taxarbor, small leaves, noise": Taxarbor(max_leaf_size=20, noise=0.1),
    "hmmc": HMMC(),
    "hmmc, even": HMMC(balance=1.0),
    "hmmc, node": HMMC(balance=0.3, center="node"),
    "hmmc, ridge": HMMC(penalty="l2"),
    "hmmc, quasi-newton": HMMC(solver="pqn"),
}


def draw_duplicates(seed):
    """Return few places of many rows each, and the place of every row."""
    rng = np.random.default_rng(seed)
    n_places = int(rng.integers(3, 30))
    places = rng.standard_normal((n_places, int(rng.integers(1, 5))))
    if seed % 3 == 0:
        places = np.unique(np.round(places), axis=0)
    place = rng.choice(len(places), 100, p=rng.dirichlet(np.full(len(places), 0.7)))
    X = places[place].astype("float32" if seed % 4 == 0 else "float64")
    return (sparse.csr_array(X) if seed % 5 == 0 else X), place


@pytest.mark.parametrize("seeds", [(0, 1, 5), pytest.param(range(12), marks=pytest.mark.long)])
@pytest.mark.parametrize("name", MODELS)
def test_equal_rows_are_in_one_cluster(name, seeds):
    model = MODELS[name]
    for seed in seeds:
        X, place = draw_duplicates(seed)
        rng = np.random.default_rng(seed)
        for weights in (None, rng.integers(0, 3, 100), rng.exponential(size=100) ** 3):
            for K in (2, 3, 5):
                n_clusters = int(rng.integers(2, 8))
                model.set_params(n_clusters=n_clusters, branching=K, random_state=seed)
                with warnings.catch_warnings(action="ignore", category=GrowthWarning):
                    labels = model.fit(X, sample_weight=weights).labels_
                some = np.ones(100, dtype=bool)
                if weights is not None and not isinstance(model, Taxarbor):
                    some = model.taxonomy_.tree.weights > 0.0  # others are routed by the rules
                pairs = {*zip(place[some].tolist(), labels[some].tolist(), strict=True)}
                assert len(pairs) == len({*place[some].tolist()}), (seed, weights, K)
