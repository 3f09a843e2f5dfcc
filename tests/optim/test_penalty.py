"""The penalty: its value, its prox, its subdifferential, and when it leaves nothing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taxarbor.optim import HingeLoss, SparseGroupPenalty
from taxarbor.rows import as_rows
from tests.optim.conftest import KINDS, penalty_of

N_FEATURES = 5
TINY = 1e-150  # squares below its own vanish
ANY_KIND = st.sampled_from(KINDS)
ANY_STEP = st.floats(0.01, 100.0)
ANY_L1 = hnp.arrays(np.float64, N_FEATURES, elements=st.floats(0, 5))


def weights(n_models=None, size=10.0):
    models = st.integers(1, 4) if n_models is None else st.just(n_models)
    numbers = st.floats(-size, size) | st.just(0.0)
    return models.flatmap(lambda m: hnp.arrays(np.float64, (m, N_FEATURES), elements=numbers))


def slow_value(penalty, W):
    total = 0.0
    for p in range(W.shape[1]):
        squares = sum(float(w) ** 2 for w in W[:, p])
        total += penalty.group * squares**0.5 + penalty.ridge * squares
        total += penalty.l1[p] * sum(abs(float(w)) for w in W[:, p])
    return total


@given(kind=ANY_KIND, W=weights())
def test_value(kind, W):
    penalty = penalty_of(kind, N_FEATURES)
    np.testing.assert_allclose(penalty.value(W), slow_value(penalty, W), rtol=1e-12, atol=TINY)


@settings(max_examples=200)
@given(kind=ANY_KIND, W=weights(), step=ANY_STEP)
def test_prox_is_optimal(kind, W, step):
    penalty = penalty_of(kind, N_FEATURES)
    V = penalty.prox(W, step)
    assert penalty.optimality(V, (V - W) / step) <= 1e-9


@settings(max_examples=200)
@given(kind=ANY_KIND, W=weights(3), other=weights(3), step=ANY_STEP, share=st.floats(1e-6, 1.0))
def test_nothing_is_below_the_prox(kind, W, other, step, share):
    penalty = penalty_of(kind, N_FEATURES)

    def objective(V):
        return ((V - W) ** 2).sum() / (2.0 * step) + slow_value(penalty, V)

    V = penalty.prox(W, step)
    least = objective(V)
    assert least <= objective(V + share * (other - V)) + 1e-9 * (1.0 + least)


@given(W=weights(), step=ANY_STEP, l1=ANY_L1, strength=st.floats(0.01, 5))
def test_what_is_left_without_the_other_terms(W, step, l1, strength):
    """The lasso without group weight, the group lasso without l1, and a ridge scales."""
    nothing = np.zeros(N_FEATURES)
    lasso = np.where(np.abs(W) > step * l1, W - step * l1 * np.sign(W), 0.0)
    found = SparseGroupPenalty(0.0, l1).prox(W, step)
    np.testing.assert_allclose(found, lasso, rtol=1e-12, atol=1e-15)
    lengths = np.linalg.norm(W, axis=0)
    shrink = np.maximum(1.0 - step * strength / np.maximum(lengths, TINY), 0.0)
    found = SparseGroupPenalty(strength, nothing).prox(W, step)
    np.testing.assert_allclose(found, shrink * W, rtol=1e-9, atol=1e-14)
    found = SparseGroupPenalty(0.0, nothing, strength).prox(W, step)
    np.testing.assert_allclose(found, W / (1.0 + 2.0 * strength * step), rtol=1e-12, atol=TINY)


@given(W=weights(1), step=ANY_STEP)
def test_a_group_of_one_is_the_lasso(W, step):
    grouped = SparseGroupPenalty(0.4, np.zeros(N_FEATURES))
    plain = SparseGroupPenalty(0.0, np.full(N_FEATURES, 0.4))
    np.testing.assert_allclose(grouped.value(W), plain.value(W), rtol=1e-12, atol=TINY)
    np.testing.assert_allclose(grouped.prox(W, step), plain.prox(W, step), atol=1e-12)


@given(W=weights(), slope=weights(1), step=ANY_STEP)
def test_a_group_of_features_is_one_of_more_models(W, slope, step):
    """The features of a group, one below the other, are a single one of so many models."""
    owner, l1 = np.array([0, 1, 0, 2, 1]), np.array([0.2, 0.0, 0.3])
    grouped = SparseGroupPenalty(0.4, l1[owner], 0.1, owner)
    plain = SparseGroupPenalty(0.4, l1, 0.1)

    def stack(V):
        first, second = V[:, [0, 1, 3]], V[:, [2, 4, 4]].copy()
        second[:, 2] = 0.0  # a group of one
        return np.concatenate([first, second])

    def close(one, other):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)

    close(grouped.value(W), plain.value(stack(W)))
    close(stack(grouped.prox(W, step)), plain.prox(stack(W), step))
    V, gradient = grouped.prox(W, step), np.repeat(slope, len(W), axis=0)
    found, whole = grouped.violations(V, gradient), plain.violations(stack(V), stack(gradient))
    squares, used = np.bincount(owner, found**2), stack(V).any(axis=0)
    close(np.sqrt(squares[used]), whole[used])
    close(found[~used[owner]], whole[owner][~used[owner]])  # all of a group alike
    assert grouped.optimality(V, (V - W) / step) <= 1e-9
    some = np.array([0, 2, 3])
    close(grouped.restrict(some).prox(W[:, some], step), grouped.prox(W, step)[:, some])


def steepest_slope(penalty, W, gradient, n_angles=20_000):
    """Return, per feature, the least directional derivative over unit directions; two models.

    Minus this is the distance from minus the gradient to the subdifferential.
    """
    turn = np.linspace(0.0, 2.0 * np.pi, n_angles, endpoint=False)
    D = np.array([np.cos(turn), np.sin(turn)])
    least = []
    for p in range(W.shape[1]):
        w, g = W[:, p], gradient[:, p]
        slope = (g + 2.0 * penalty.ridge * w) @ D
        for m in range(2):
            slope += penalty.l1[p] * (np.sign(w[m]) * D[m] if w[m] else np.abs(D[m]))
        slope += penalty.group * (w @ D / np.linalg.norm(w) if w.any() else 1.0)
        least.append(slope.min())
    return np.array(least)


def test_violations_are_distances_to_the_subdifferential(kind):
    penalty = penalty_of(kind, 60)
    for size in (0.1, 0.5, 3.0):
        rng = np.random.default_rng(2)
        W = rng.normal(size=(2, 60)) * (rng.random((2, 60)) < 0.5)
        W[:, :15] = 0.0
        gradient = size * rng.normal(size=(2, 60))
        expected = np.maximum(-steepest_slope(penalty, W, gradient), 0.0)
        np.testing.assert_allclose(penalty.violations(W, gradient), expected, atol=1e-6)
        assert penalty.optimality(W, gradient) == penalty.violations(W, gradient).max()


def test_excluded_features_stay_at_zero(kind):
    """Whatever pulls at them, as long as it is weaker; the others are as they were."""
    W = np.random.default_rng(6).normal(size=(3, 8))
    is_out, plain = np.arange(8) % 3 == 0, penalty_of(kind, 8)
    assert plain.exclude(np.zeros(8, dtype=bool), 1e3) is plain
    V = plain.exclude(is_out, 1e3).prox(W, 1.0)
    assert not V[:, is_out].any()
    np.testing.assert_array_equal(V[:, ~is_out], plain.prox(W, 1.0)[:, ~is_out])
    assert plain.exclude(is_out, 1e3).is_smooth == plain.is_smooth


# ---- the critical weight: the largest spread, times sqrt(2) for groups ----


def adversarial(Z):
    """Return the labels that the feature of largest spread asks for most loudly."""
    return (Z[:, np.abs(Z).mean(axis=0).argmax()] < 0).astype(np.int32)


def critical_penalties(spread, share, n_features):
    everywhere = np.full(n_features, share * spread)
    yield SparseGroupPenalty(share * np.sqrt(2.0) * spread, np.zeros(n_features))
    yield SparseGroupPenalty(0.0, everywhere)


def test_the_critical_weight():
    """Just above it nothing is worth its weight, for any labels; just below, one feature."""
    for n_children in (2, 3, 5):
        for offset in (0.0, 50.0):
            rng = np.random.default_rng(4)
            X = rng.gamma(0.5, size=(101, 6)) + offset
            rows = as_rows(X)
            loss = HingeLoss(rows, n_children)
            Z, spread = X - rows.center, float(rows.spread().max())
            labellings = [rng.integers(0, n_children, len(X)) for _ in range(20)]
            labellings += [np.zeros(len(X)), adversarial(Z)]
            labellings += [np.argsort(np.argsort(Z[:, 0])) * n_children // len(X)]
            for labels in labellings:
                zero = loss.zero(labels.astype(np.int32))
                gradient = loss.gradient(zero)
                for penalty in critical_penalties(spread, 1.0 + 1e-9, 6):
                    assert penalty.optimality(zero.W, gradient) == 0.0
            gradient = loss.gradient(loss.zero(adversarial(Z)))
            for penalty in critical_penalties(spread, 0.999, 6):
                gain = penalty.optimality(zero.W, gradient)
                np.testing.assert_allclose(gain, 0.001 * spread * np.sqrt(2.0), rtol=1e-6)
                used = penalty.prox(-gradient, 1.0).any(axis=0)
                np.testing.assert_array_equal(used, np.arange(6) == rows.spread().argmax())
