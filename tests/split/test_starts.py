"""Where splits begin: deterministic, finite, whatever the rows."""

import numpy as np
import pytest

from taxarbor.split._starts import STARTS, draw_sample, thin_out


@pytest.fixture(params=STARTS, ids=lambda start: start.__name__)
def start(request):
    return request.param


@pytest.fixture(params=["dense", "sparse"])
def kind(request):
    return request.param


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_children", [2, 3, 5])
def test_centers(draw, rows_of, start, kind, dtype, n_children):
    rows = rows_of(draw(n_children, dtype=dtype), kind)
    centers = start(rows, n_children, np.random.default_rng(0))
    assert centers.shape == (n_children, rows.n_features)
    assert centers.dtype == np.float64
    assert np.isfinite(centers).all()
    assert len(np.unique(centers, axis=0)) == n_children


def test_the_same_seed_gives_the_same_start(draw, rows_of, start, kind):
    rows = rows_of(draw(3), kind)
    one, two = (start(rows, 3, np.random.default_rng(0)) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("start", STARTS[1:], indirect=True)
def test_starts_vary_with_the_seed(draw, rows_of, start):
    rows = rows_of(draw(1))
    found = {start(rows, 3, np.random.default_rng(seed)).tobytes() for seed in range(5)}
    assert len(found) > 1


def test_threads_do_not_matter(draw, rows_of, start, kind):
    X = draw(3, n_rows=9000, n_features=4)
    one, two = (start(rows_of(X, kind, n), 3, np.random.default_rng(0)) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_clouds_that_are_far_apart_are_found(draw, rows_of):
    """The start along the principal direction: each centre in a cloud of its own."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 5)) + 20.0 * truth[:, None]
    rows = rows_of(X)
    centers = STARTS[0](rows, 3, rng) + rows.center
    nearest = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert len({(a, b) for a, b in zip(truth, nearest, strict=True)}) == 3


@pytest.mark.parametrize("n_distinct", [1, 2, 3])
def test_duplicates(rows_of, start, kind, n_distinct):
    """More centres than distinct rows: some are empty or equal, none is lost."""
    X = np.repeat(np.arange(float(n_distinct * 4)).reshape(n_distinct, 4), 10, axis=0)
    centers = start(rows_of(X, kind), 5, np.random.default_rng(0))
    assert centers.shape == (5, 4)
    assert np.isfinite(centers).all()


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_extreme_scales(draw, rows_of, start, scale):
    centers = start(rows_of(draw(2) * scale), 2, np.random.default_rng(0))
    assert np.isfinite(centers).all()
    assert len(np.unique(centers, axis=0)) == 2


def test_a_sample_is_sorted_and_distinct():
    positions = draw_sample(10_000, 500, np.random.default_rng(0))
    assert len(positions) == 500
    assert (np.diff(positions) > 0).all()
    assert 0 <= positions[0] <= positions[-1] < 10_000
    again = draw_sample(10_000, 500, np.random.default_rng(0))
    np.testing.assert_array_equal(positions, again)


@pytest.mark.parametrize("n_rows", [1, 499, 500])
def test_few_rows_are_their_own_sample(n_rows):
    assert draw_sample(n_rows, 500, np.random.default_rng(0)) is None


def test_rows_thinned_out_keep_their_center(draw, rows_of, kind):
    rows = rows_of(draw(2), kind)
    few = thin_out(rows, 40)
    assert few.n_rows == 40
    np.testing.assert_array_equal(few.center, rows.center)
    whole = rows.scores(np.eye(rows.n_features))
    kept = few.scores(np.eye(rows.n_features))
    assert {row.tobytes() for row in kept} <= {row.tobytes() for row in whole}
    assert len(np.unique(kept, axis=0)) == 40
    assert thin_out(rows, rows.n_rows) is rows
