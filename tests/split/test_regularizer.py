"""From alpha and beta to the weights of a penalty, in both units."""

import numpy as np
import pytest

from taxarbor.hierarchy import LinearRule
from taxarbor.optim import MultiHinge
from taxarbor.split import KINDS, Regularizer

UNITS = ("raw", "relative")


def ancestors_of(path, rules):
    return [rule.weights[child] for child, rule in zip(path, rules, strict=True)]


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deep", [False, True], ids=["root", "deep"])
@pytest.mark.parametrize("n_children", [2, 3])
def test_the_penalty_is_the_papers(lineage, penalty_term, units, kind, deep, n_children):
    W = np.random.default_rng(0).normal(size=(n_children, 8))
    path, rules = lineage(8, n_children) if deep else ((), ())
    regularizer = Regularizer(kind, 0.7, 0.4, units == "relative")
    usage = regularizer.usage(path, rules, 8)
    spread = 2.5
    expected = penalty_term[units](kind, 0.7, 0.4, W, ancestors_of(path, rules), spread)
    actual = regularizer.at(usage, spread, n_children).value(W)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deep", [False, True], ids=["root", "deep"])
def test_complexity_is_the_sum_of_the_papers_terms(lineage, penalty_term, kind, deep):
    """The denominator of the splitting score: G + E, the variant's own."""
    W = np.random.default_rng(0).normal(size=(3, 8))
    path, rules = lineage(8, 3) if deep else ((), ())
    regularizer = Regularizer(kind, 0.7, 0.4, relative=False)
    spread = np.sqrt(1e3 / 24)  # the ridge at the root of "exclusive" without its factor
    expected = penalty_term["raw"](kind, 1.0, 1.0, W, ancestors_of(path, rules), spread)
    actual = regularizer.complexity(W, regularizer.usage(path, rules, 8))
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["group", "l1", "group+exclusive"])
@pytest.mark.parametrize("n_children", [2, 3, 5])
def test_an_alpha_of_one_is_critical(draw, rows_of, kind, n_children):
    X = draw(n_children)
    rows = rows_of(X)
    spread = rows.spread()
    loss = MultiHinge(rows, n_children)
    adversarial = (X[:, spread.argmax()] < rows.center[spread.argmax()]).astype(np.int32)
    others = np.random.default_rng(1).integers(0, n_children, (10, len(X))).astype(np.int32)
    gradients = [loss.gradient(loss.zero(labels)) for labels in (adversarial, *others)]
    nothing = np.zeros_like(gradients[0])
    for alpha, left in ((1.0 + 1e-9, False), (0.999, True)):
        penalty = Regularizer(kind, alpha, 0.5, relative=True).at(
            np.zeros(rows.n_features), float(spread.max()), n_children
        )
        worst = [penalty.optimality(nothing, gradient) for gradient in gradients]
        assert (worst[0] > 0.0) == left
        assert not any(worst[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_relative_strengths_have_no_unit(lineage, kind):
    """Ten times the data and a tenth of the weights cost the same."""
    W = np.random.default_rng(0).normal(size=(2, 8))
    path, rules = lineage(8)
    scaled = tuple(LinearRule(rule.weights / 10, rule.center) for rule in rules)
    regularizer = Regularizer(kind, 0.3, 0.2, relative=True)
    one = regularizer.at(regularizer.usage(path, rules, 8), 1.5, 2)
    ten = regularizer.at(regularizer.usage(path, scaled, 8), 15.0, 2)
    np.testing.assert_allclose(one.value(W), ten.value(W / 10), rtol=1e-12)


@pytest.mark.parametrize("units", UNITS)
def test_an_ancestor_without_weights_does_not_count(units):
    silent = LinearRule(np.zeros((2, 3)), np.zeros(3))
    loud = LinearRule(np.array([[2.0, 0.0, 1.0], [9.0, 9.0, 9.0]]), np.zeros(3))
    regularizer = Regularizer("group+exclusive", 0.1, 0.1, units == "relative")
    usage = regularizer.usage((0, 0), (silent, loud), 3)
    largest = 2.0 if units == "relative" else 1.0
    np.testing.assert_allclose(usage, np.array([1.0, 0.0, 0.5]) / largest)
    np.testing.assert_array_equal(regularizer.usage((), (), 3), np.zeros(3))
