"""The splitter as a whole: its objective, its score, its sizes, and when it refuses."""

import pickle

import numpy as np
import pytest

from taxarbor._types import Status
from taxarbor.assign import size_bounds
from taxarbor.hierarchy import LinearRule
from taxarbor.split import KINDS, MaxMarginSplitter, Refusal, Regularizer, Split, SplitTask

BALANCE = (0.5, 1.5)
STRENGTHS = {"raw": (0.5, 0.3), "relative": (0.03, 0.02)}


def splitter_of(kind="group+exclusive", units="relative", **options):
    alpha, beta = options.pop("strengths", STRENGTHS[units])
    regularizer = Regularizer(kind, alpha, beta, units == "relative")
    return MaxMarginSplitter(regularizer, options.pop("balance", BALANCE), **options)


def ancestors_of(task):
    pairs = zip(task.path, task.lineage, strict=True)
    return [rule.weights[child].astype(float) for child, rule in pairs]


@pytest.mark.parametrize("units", STRENGTHS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("deep", [False, True], ids=["root", "deep"])
@pytest.mark.parametrize(
    ("storage", "dtype"), [("dense", "float64"), ("sparse", "float64"), ("dense", "float32")]
)
def test_the_objective_is_the_papers(
    draw, rows_of, task_of, hinge, penalty_term, units, kind, K, deep, storage, dtype
):
    X = draw(K, dtype=dtype)
    task = task_of(rows_of(X, storage), K, deep=deep)
    found = splitter_of(kind, units, tol=1e-3).split(task)
    assert isinstance(found, Split)
    W, center = found.rule.weights.astype(float), found.rule.center.astype(float)
    assert found.rule.dtype == dtype
    Z = X - center
    spread = np.abs(X - X.mean(axis=0, dtype=np.longdouble)).mean(axis=0).max()
    strengths = STRENGTHS[units]
    expected = hinge(Z, W, found.labels) + penalty_term[units](
        kind, *strengths, W, ancestors_of(task), float(spread)
    )
    precision = 1e-9 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(found.objective, expected, rtol=precision)

    assert found.objective == found.info.trace[-1]
    assert len(found.info.trace) == found.info.n_iter + 1
    assert found.info.n_passes > 0.0
    trace = np.array(found.info.trace)
    slack = 1e-12 if dtype == "float64" else 1e-6
    assert (np.diff(trace) <= slack * trace[:-1]).all()


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("deep", [False, True], ids=["root", "deep"])
def test_the_score_is_the_papers(draw, rows_of, task_of, penalty_term, K, deep):
    """The sum of the rows' own scores over G + E (its Eq. 4)."""
    X = draw(K)
    task = task_of(rows_of(X), K, deep=deep)
    found = splitter_of(units="raw").split(task)
    W = found.rule.weights
    own = ((X - found.rule.center) @ W.T)[np.arange(len(X)), found.labels].sum()
    terms = penalty_term["raw"]("group+exclusive", 1.0, 1.0, W, ancestors_of(task), 0.0)
    np.testing.assert_allclose(found.score, own / terms, rtol=1e-9)


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("balance", [(0.9, 1.1), (0.3, 1.7), (0.0, 5.0), (1.0, 1.0)])
def test_sizes(draw, rows_of, task_of, K, balance):
    for n_rows in (2 * K, 2 * K + 1, 97):
        task = task_of(rows_of(draw(K, n_rows=n_rows, distance=1.0)), K)
        found = splitter_of(balance=balance).split(task)
        lower, upper = size_bounds(n_rows, K, *balance)
        sizes = np.bincount(found.labels, minlength=K)
        assert len(sizes) == K
        assert 1 <= lower <= sizes.min() <= sizes.max() <= upper


def test_more_rows_than_the_sample(draw, rows_of, task_of, hinge, penalty_term):
    """Starts see a sample, the result all rows."""
    X = draw(2, n_rows=2500)
    for K in (2, 3):
        task = task_of(rows_of(X), K)
        found = splitter_of().split(task)
        assert found.labels.shape == (2500,)
        W = found.rule.weights
        spread = np.abs(X - X.mean(axis=0)).mean(axis=0).max()
        expected = hinge(X - found.rule.center, W, found.labels)
        expected += penalty_term["relative"](
            "group+exclusive", *STRENGTHS["relative"], W, [], spread
        )
        np.testing.assert_allclose(found.objective, expected, rtol=1e-9)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("alpha", [0.003, 0.03])
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_default_tolerance_comes_close_to_the_optimum(
    draw, rows_of, task_of, K, alpha, seed
):
    """Also where rows are far apart and a weak penalty decides which features count."""
    rows = rows_of(draw(K, distance=6.0, n_features=20, seed=seed))
    loose, tight = (
        splitter_of(strengths=(alpha, 0.0), **options).split(task_of(rows, K))
        for options in ({}, {"tol": 1e-8})
    )
    assert loose.objective <= 1.1 * tight.objective
    assert loose.rule.n_features_used <= tight.rule.n_features_used + 3


def test_more_starts_are_never_worse(draw, rows_of, task_of):
    rows = rows_of(draw(3, distance=0.7))
    for K in (2, 3):
        one, many = (
            splitter_of(n_init=n, tol=1e-4).split(task_of(rows, K)).objective for n in (1, 6)
        )
        assert many <= one


@pytest.mark.parametrize("K", [2, 3])
def test_scale_does_not_matter_in_relative_units(draw, rows_of, task_of, K):
    X = draw(K)
    one, two = (splitter_of().split(task_of(rows_of(X * scale), K)) for scale in (1.0, 1024.0))
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_allclose(one.objective, two.objective, rtol=1e-9)
    np.testing.assert_allclose(one.rule.weights, 1024.0 * two.rule.weights, rtol=1e-6)


def test_scale_matters_in_raw_units(draw, rows_of, task_of):
    X = draw(2)
    one, two = (
        splitter_of(units="raw").split(task_of(rows_of(X * scale), 2)) for scale in (1.0, 10.0)
    )
    assert two.objective < 0.9 * one.objective


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("solver", ["auto", "newton", "pqn"])
def test_a_split_depends_on_its_task_alone(draw, rows_of, task_of, K, solver):
    X = draw(K)
    splitter = splitter_of(solver=solver, n_init=3)
    results = [splitter.split(task_of(rows_of(X, n_threads=n), K)) for n in (1, 1, 2)]
    copy = pickle.loads(pickle.dumps(splitter))
    results.append(copy.split(pickle.loads(pickle.dumps(task_of(rows_of(X), K)))))
    for found in results[1:]:
        np.testing.assert_array_equal(found.labels, results[0].labels)
        assert found.rule.weights.tobytes() == results[0].rule.weights.tobytes()
        assert (found.score, found.objective) == (results[0].score, results[0].objective)


@pytest.mark.parametrize("K", [2, 3])
def test_labels_follow_the_rule_where_sizes_are_free(draw, rows_of, task_of, K):
    X = draw(K, distance=6.0, seed=3)
    found = splitter_of(balance=(0.0, float(K))).split(task_of(rows_of(X), K))
    S = (X - found.rule.center) @ found.rule.weights.T
    np.testing.assert_array_equal(S.argmax(axis=1), found.labels)
    assert found.info.status is Status.SETTLED


def test_a_split_avoids_the_features_of_its_ancestors():
    """Two features tell the rows apart equally well; the ancestor uses the first."""
    from taxarbor.rows import as_rows

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + 6.0 * np.repeat([[0, 0, 0], [1, 1, 0]], 100, axis=0)
    ancestor = LinearRule(np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), np.zeros(3))
    task = SplitTask(as_rows(X), (0,), (ancestor,), 2, 0)
    found = splitter_of(strengths=(0.1, 0.5), tol=1e-6).split(task)
    assert found.rule.features.tolist() == [1]


def test_no_feature_shared_with_an_ancestor():
    """HMMC-E, where the denominator of the score, the overlap, is then nothing at all."""
    from taxarbor.rows import as_rows

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + 6.0 * np.repeat([[0, 0, 0], [0, 1, 1]], 100, axis=0)
    ancestor = LinearRule(np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), np.zeros(3))
    task = SplitTask(as_rows(X), (0,), (ancestor,), 2, 0)
    found = splitter_of("exclusive", strengths=(0.0, 10.0)).split(task)
    assert isinstance(found, Split)
    assert 0 not in found.rule.features
    assert found.score > 0.0  # infinite is fine, NaN is not


# ---- refusals: reasons, never exceptions ----


@pytest.mark.parametrize("K", [2, 3, 5])
def test_too_few_rows(draw, rows_of, task_of, K):
    refused = splitter_of().split(task_of(rows_of(draw(K, n_rows=2 * K - 1)), K))
    assert isinstance(refused, Refusal)
    assert f"{2 * K - 1} rows are too few for {K} children" in refused.reason


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e6 / 3])
def test_equal_rows(rows_of, task_of, storage, dtype, value):
    X = np.full((37, 4), value, dtype=dtype)
    refused = splitter_of().split(task_of(rows_of(X, storage), 2))
    assert isinstance(refused, Refusal)
    assert "all of its 37 rows are equal" in refused.reason


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", [(0.1, 0.1), (1e6 / 3, 0.1), (0.1, 0.0), (0.0, 0.0)])
def test_equal_rows_among_others(rows_of, task_of, storage, dtype, row):
    """A child of duplicates, below a node that has other rows too."""
    X = np.random.default_rng(0).normal(size=(140, 2)).astype(dtype)
    X[:99] = row
    rows = rows_of(X, storage).take(np.arange(99))
    refused = splitter_of().split(task_of(rows, 2))
    assert isinstance(refused, Refusal)
    assert "all of its 99 rows are equal" in refused.reason


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("solver", ["newton", "pqn"])
@pytest.mark.parametrize(
    ("kind", "units", "alpha"),
    [
        ("group", "relative", 1.0),
        ("group+exclusive", "relative", 1.0),
        ("l1", "relative", 1.0),
        ("group", "raw", 1e6),
        ("group+exclusive", "relative", 1e9),
    ],
)
def test_too_strong_a_penalty(draw, rows_of, task_of, K, solver, kind, units, alpha):
    splitter = splitter_of(kind, units, strengths=(alpha, 0.0), solver=solver)
    refused = splitter.split(task_of(rows_of(draw(K)), K))
    assert isinstance(refused, Refusal)
    assert "no feature" in refused.reason
    assert "lower alpha" in refused.reason


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_feature_is_never_used(draw, rows_of, task_of, K, storage, dtype, kind):
    """Nor one that varies elsewhere in the tree, but not at this node."""
    X = draw(K, dtype=dtype, n_rows=3000)
    X[:, 1] = 7.1
    X[::2, 2] = 7.1
    X[::2, 3] = 0.0
    rows = rows_of(X, storage)
    whole = splitter_of(kind).split(task_of(rows, K))
    assert 1 not in whole.rule.features
    part = splitter_of(kind).split(task_of(rows.take(np.arange(0, 3000, 2)), K))
    assert not {1, 2, 3} & set(part.rule.features.tolist())


@pytest.mark.parametrize("K", [2, 3])
def test_few_distinct_rows(rows_of, task_of, K):
    """Fewer distinct rows than children: balanced all the same."""
    X = np.repeat([[0.0, 1.0], [3.0, 1.0]], 20, axis=0)
    found = splitter_of().split(task_of(rows_of(X), K))
    sizes = np.bincount(found.labels, minlength=K)
    lower, upper = size_bounds(40, K, *BALANCE)
    assert lower <= sizes.min() <= sizes.max() <= upper
