"""Trees of every kind, with the rows they were grown on."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import linkage

from taxarbor import HMMC, TableEncoder, Taxarbor, load_animals
from taxarbor.exchange import from_labels, from_linkage
from taxarbor.explain import explain
from taxarbor.taxonomy.taxonomy import taxonomy_of
from taxarbor.tree import LinearRule
from tests.tree.conftest import frontier

ANIMALS = load_animals()
SHARES = ANIMALS.X / ANIMALS.X.max(axis=0)
SHARES.flags.writeable = False


def grow(X=SHARES, n_clusters=6, **options):
    return Taxarbor(n_clusters, random_state=0, **options).fit(X).taxonomy_


def grow_greedily(X=SHARES):
    return HMMC(6, random_state=0).fit(X)


def remove_rules():
    taxonomy = grow()
    tree = replace(taxonomy.tree, rules=(None,) * taxonomy.tree.n_nodes)
    return replace(taxonomy, tree=tree, statistics=None)


def shuffle_rows():
    """Return a tree some of whose rows are not where its rules send them."""
    taxonomy = grow()
    order = taxonomy.tree.order.copy()
    order[::3] = np.random.default_rng(0).permutation(order[::3])
    return replace(taxonomy, tree=replace(taxonomy.tree, order=order), statistics=None)


def choose_among(taxonomy, ruled):
    """Return the tree with nearest-mean rules at some nodes, and at no others."""
    tree, rules = taxonomy.tree, [None] * taxonomy.tree.n_nodes
    for node in ruled:
        rules[node] = LinearRule.nearest(taxonomy.means[frontier(tree, node, ruled)])
    return replace(taxonomy, tree=replace(tree, rules=tuple(rules)))


def make_cases(four_clusters, three_nodes):
    """Yield a name, a tree or a model, and its rows."""
    equal = np.random.default_rng(0).integers(0, 2, size=(40, 3)).astype(float)
    single, csr = SHARES.astype("f4"), sparse.csr_array(SHARES)
    far, standard = SHARES * 7.0 + 3.0, TableEncoder(scale="standard")
    large = grow(n_clusters=12)
    inner = [n for n in range(1, large.tree.n_nodes) if not large.tree.is_leaf(n)]
    flat, mixed = choose_among(large, {0}), choose_among(large, {0, *inner[::3]})
    yield "model", Taxarbor(6, random_state=0).fit(SHARES), SHARES
    yield "three children", grow(n_clusters=7, branching=3), SHARES
    yield "csr", grow(csr), csr
    yield "float32", grow(single), single
    yield "greedy", grow_greedily(), SHARES
    yield "greedy, csr, float32", grow_greedily(sparse.csr_matrix(single)), csr.astype("f4")
    yield "labels", from_labels([name[0] for name in ANIMALS.names]), SHARES
    yield "ward", from_linkage(linkage(SHARES, "ward"), 12), SHARES
    yield "ward, a row per leaf", from_linkage(linkage(equal, "ward")), equal
    yield "no rules", remove_rules(), SHARES
    yield "shuffled", shuffle_rows(), SHARES
    yield "one leaf", Taxarbor(1).fit(SHARES), SHARES
    yield "one leaf, without means", from_labels([0] * 206), SHARES
    yield "standardized", grow(far, encoder=standard), far
    yield "frontier", *four_clusters
    yield "frontier of three nodes", *three_nodes
    yield "one rule", flat, SHARES
    yield "some rules", mixed, SHARES
    yield "pruned", flat.prune(5), SHARES


@pytest.fixture(scope="session")
def animals():
    return ANIMALS


@pytest.fixture(scope="session", name="X")
def shares():
    """The animals, each column divided by its maximum."""
    return SHARES


@pytest.fixture(scope="session")
def cases(four_clusters, three_nodes):
    """Each kind of tree: its rows, as given and as a float64 array, and its explanation."""
    cases = {}
    for name, given, X in make_cases(four_clusters, three_nodes):
        dense = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        why = explain(given, X)
        case = SimpleNamespace(name=name, given=taxonomy_of(given), X=X, dense=dense, why=why)
        case.tree, case.means = why.taxonomy.tree, why.taxonomy.means
        case.tolerance = 1e-4 if why.data.dtype == np.float32 else 1e-9
        cases[name] = case
    return cases


def steps_of(tree, leaf):
    """Return the rules on the path to a leaf: their nodes, and where they lead to on it."""
    path = tree.path(leaf)
    ruled = [node for node in path if tree.rules[node] is not None]
    return [(node, *set(path).intersection(tree.frontier(node))) for node in ruled]


@pytest.fixture(scope="session")
def model():
    """A model of the animals."""
    return Taxarbor(6, random_state=0).fit(SHARES)


@pytest.fixture(scope="session")
def named(model):
    """Its explanation, with names of rows and columns."""
    taxonomy = model.taxonomy_.rename_features(ANIMALS.feature_names)
    return explain(taxonomy, SHARES, row_names=ANIMALS.names)


def describe(why):
    """Return all that is said about each node."""
    return [why.node(node) for node in range(why.taxonomy.tree.n_nodes)]


def steps_of_row(why, row):
    """Return the lines of a row in the frame of rows."""
    return why.rows(row).to_dict("records")


def check_json(values):
    """Check that values survive JSON: no NaN, no infinity, nothing but plain types."""
    assert json.loads(json.dumps(values, allow_nan=False)) == values
