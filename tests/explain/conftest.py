"""Trees of every kind, with the rows they were grown on."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import linkage

from taxarbor import HMMC, Taxarbor, load_animals
from taxarbor.exchange import from_labels, from_linkage
from taxarbor.explain import explain

ANIMALS = load_animals()
SHARES = ANIMALS.X / ANIMALS.X.max(axis=0)
SHARES.flags.writeable = False


def greedy(X):
    return HMMC(6, random_state=0).fit(X)


def without_rules():
    taxonomy = Taxarbor(5, random_state=0).fit(SHARES).taxonomy_
    return dataclasses.replace(
        taxonomy, rules=(None,) * taxonomy.tree.n_nodes, means=None
    ), SHARES


def shuffled():
    """Return a tree some of whose rows are not where its rules send them."""
    taxonomy = Taxarbor(5, random_state=0).fit(SHARES).taxonomy_
    order = taxonomy.tree.order.copy()
    order[::3] = np.random.default_rng(0).permutation(order[::3])
    return dataclasses.replace(taxonomy, order=order, means=None), SHARES


def with_doubles():
    """Return a tree each of whose leaves is a row, and many rows are equal."""
    X = np.random.default_rng(0).integers(0, 2, size=(40, 3)).astype(float)
    return from_linkage(linkage(X, "ward")), X


MAKERS = {
    "hmmc": lambda: (Taxarbor(6, random_state=0).fit(SHARES), SHARES),
    "hmmc, three": lambda: (Taxarbor(7, branching=3, random_state=0).fit(SHARES), SHARES),
    "hmmc, csr": lambda: (Taxarbor(6, random_state=0).fit(S := sparse.csr_array(SHARES)), S),
    "hmmc, float32": lambda: (Taxarbor(6, random_state=0).fit(S := SHARES.astype("f4")), S),
    "greedy": lambda: (greedy(SHARES), SHARES),
    "greedy, csr, float32": lambda: (greedy(S := sparse.csr_matrix(SHARES, dtype="f4")), S),
    "labels": lambda: (from_labels([name[0] for name in ANIMALS.names]), SHARES),
    "ward": lambda: (from_linkage(linkage(SHARES, "ward"), 12), SHARES),
    "ward, all": with_doubles,
    "no rules": without_rules,
    "shuffled": shuffled,
    "one leaf": lambda: (Taxarbor(1).fit(SHARES), SHARES),
    "one leaf, bare": lambda: (from_labels([0] * 206), SHARES),
    "unscaled": lambda: (
        greedy(SHARES).taxonomy_.unscale(np.full(85, 3.0), np.full(85, 7.0)),
        SHARES * 7.0 + 3.0,
    ),
}


@pytest.fixture(scope="session")
def animals():
    return ANIMALS


@pytest.fixture(scope="session", name="X")
def shares():
    """The animals, each column divided by its maximum."""
    return SHARES


@pytest.fixture(scope="session")
def cases():
    """Every kind of tree, or its model, its rows, the same as a float64 array, and why."""
    found = {}
    for name, make in MAKERS.items():
        taxonomy, X = make()
        dense = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        found[name] = SimpleNamespace(name=name, given=taxonomy, X=X, dense=dense)
        found[name].why = explain(taxonomy, X)
    return found


@pytest.fixture(scope="session")
def whys(cases):
    """The explanation of each tree."""
    return [case.why for case in cases.values()]


@pytest.fixture(scope="session")
def model():
    """A model of the animals."""
    return Taxarbor(6, random_state=0).fit(SHARES)


@pytest.fixture(scope="session")
def named(model):
    """Its explanation, with names of rows and columns."""
    names = {"row_names": ANIMALS.names, "feature_names": ANIMALS.feature_names}
    return explain(model, SHARES, **names)


@pytest.fixture(scope="session")
def strict():
    """Conversion to JSON that refuses NaN, infinity, and what is not plain."""

    def convert(values):
        text = json.dumps(values, allow_nan=False)
        assert json.loads(text) == values
        return text

    return convert
