"""Coordinates in blocks, divided by planes: one node, and the nodes of many rounds."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxarbor._errors import InterruptedFitWarning
from taxarbor._run import Run, node_seed
from taxarbor.grow import StoppingRule, grow_on
from taxarbor.refine import Coordinates, _field
from taxarbor.refine._field import Cut, Field, Planes
from taxarbor.split import GapSplitter, Refusal
from taxarbor.split._gap import SAMPLE, Plane
from taxarbor.sweep import LocalEngine
from taxarbor.sweep._copies import Copies

KINDS = ("dense", "csr")
SPLITTERS = {"usual": GapSplitter(), "free": GapSplitter((0.0, 2.0), n_init=2)}


@pytest.fixture(params=SPLITTERS)
def splitter(request):
    return SPLITTERS[request.param]


def cut_of(coordinates, splitter, seed=0):
    """Return how the root is divided, and the side of each row."""
    run = Run(seed)
    field = Field(coordinates, splitter, run)
    (found,) = field.seek([()])
    if isinstance(found, Refusal):
        return found, None
    labels = field.labels([(0,), (1,)])
    return found, np.concatenate(coordinates.blocks.engine.gather(labels))


def is_same(one, other):
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


def everything(cut, labels):
    plane = cut.plane
    parts = [part.tobytes() for part in (labels, plane.weights, cut.threshold)]
    return parts, plane.offset, cut.sides, cut.sizes, cut.score, cut.objective, cut.info


# ---- one node ----


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_cut_holds(coordinates_of, data, splitter, kind, dtype):
    for X in data.values():
        found, labels = cut_of(coordinates_of(X.astype(dtype), kind), splitter)
        assert isinstance(found, Cut)
        assert np.bincount(labels).tolist() == [*found.sizes]
        assert sorted(found.sides) == [0, 1]
        assert type(found.score) is float
        assert found.score == len(X) * found.plane.gap > 0.0
        assert found.objective == found.info.trace[-1] >= 0.0
        assert (np.diff(found.info.trace) <= 0.0).all()


def test_sides_are_those_of_the_plane(coordinates_of, data, splitter, values_of):
    for X in data.values():
        coordinates = coordinates_of(X)
        found, labels = cut_of(coordinates, splitter)
        Z = values_of(coordinates.values, coordinates).astype(np.float64)
        scores = Z @ found.plane.weights + found.plane.offset
        clear = np.abs(scores - found.threshold) > 1e-5
        assert clear.mean() > 0.98
        expected = np.where(scores >= found.threshold, *found.sides)
        np.testing.assert_array_equal(labels[clear], expected[clear])


def test_a_cut_depends_on_the_rows_and_the_seed_alone(coordinates_of, data, splitter):
    rng = np.random.default_rng(0)
    sets = [data["cloud"], data["wide"], rng.standard_normal((3 * SAMPLE, 5))]
    sets.append(np.argwhere(np.ones((40, 40))).astype(np.float64, order="C"))  # with ties
    for X in sets:
        for kind in KINDS:
            first = everything(*cut_of(coordinates_of(X, kind), splitter))
            with ThreadPoolExecutor(2) as pool:
                for n_blocks in (2, 20):
                    edges = np.unique([0, *rng.choice(len(X), n_blocks), len(X)])
                    how = {"sizes": np.diff(edges), "pool": pool}
                    again = cut_of(coordinates_of(X, kind, **how), splitter)
                    assert everything(*again) == first
    cloud = coordinates_of(data["cloud"])
    assert len({cut_of(cloud, GapSplitter(), seed)[1].tobytes() for seed in range(6)}) > 1


def test_counts_are_repeated_rows(coordinates_of, splitter):
    for seed, n_rows in enumerate((60, 900, 4000)):
        rng = np.random.default_rng(seed)
        X, counts = rng.standard_normal((n_rows, 4)), rng.integers(0, 4, n_rows)
        index = np.repeat(np.arange(n_rows), counts)
        one, labels = cut_of(coordinates_of(X, counts=counts), splitter)
        other, repeated = cut_of(coordinates_of(X[index]), splitter)
        np.testing.assert_array_equal(labels[index], repeated)
        assert (labels[counts == 0] == -1).all()
        assert everything(one, repeated) == everything(other, repeated)


def test_clusters_that_nobody_could_miss(coordinates_of, splitter):
    """In all kinds of data, which agree."""
    rng = np.random.default_rng(7)
    for n_rows in (80, 4 * SAMPLE):
        truth = rng.permutation(np.arange(n_rows) % 2)
        X = rng.normal(size=(n_rows, 4)) + 60.0 * truth[:, None]
        scores = []
        for dtype in ("float32", "float64"):
            for kind in KINDS:
                found, labels = cut_of(coordinates_of(X.astype(dtype), kind), splitter)
                assert is_same(labels, truth)
                scores.append(found.score)
        np.testing.assert_allclose(scores, scores[0], rtol=1e-2)


def test_dense_and_sparse_agree(coordinates_of, splitter):
    for distance in (0.5, 3.0):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(180, 6)) + distance * rng.integers(0, 2, (180, 1))
        (dense, one), (csr, other) = (
            cut_of(coordinates_of(X, kind), splitter) for kind in KINDS
        )
        assert is_same(one, other)
        np.testing.assert_allclose(dense.score, csr.score, rtol=1e-6)
        np.testing.assert_allclose(dense.objective, csr.objective, rtol=1e-6)


def test_sizes_are_within_bounds(coordinates_of):
    for n_rows in (100, SAMPLE + 500):
        coordinates = coordinates_of(np.random.default_rng(2).standard_normal((n_rows, 4)) ** 3)
        for balance in ((0.9, 1.1), (0.5, 1.5), (0.0, 2.0)):
            for min_size in (1, 20, n_rows // 2):
                _, labels = cut_of(coordinates, GapSplitter(balance, min_size=min_size))
                sizes = np.bincount(labels)
                assert max(balance[0] * n_rows / 2, min_size) <= sizes.min()
                assert sizes.max() <= min(balance[1] * n_rows / 2, n_rows - 1)
        refused, _ = cut_of(coordinates, GapSplitter(min_size=n_rows // 2 + 1))
        told = f"too few for 2 children of at least {n_rows // 2 + 1} rows (it takes "
        assert told in refused.reason


def test_the_first_child_has_the_first_row_of_the_sample(coordinates_of):
    """Whichever way the plane points: the same for samples of other blocks."""
    for n_rows in (200, SAMPLE + 300):
        for seed in range(4):
            X = np.random.default_rng(seed).standard_normal((n_rows, 3))
            coordinates = coordinates_of(X)
            (sample,) = samples_of(coordinates, [()], GapSplitter(), seed)
            row = sample[0]
            _, labels = cut_of(coordinates, GapSplitter(), seed)
            same = (coordinates.array == row[:-1]).all(axis=1)
            assert labels[same].tolist() == [0]


def test_equal_rows_are_refused(coordinates_of, splitter):
    for kind in KINDS:
        for dtype in ("float32", "float64"):
            for value in (0.0, 1.0, 0.1, 1e6 / 3):
                for n_rows in (37, 3 * SAMPLE):
                    X = np.full((n_rows, 4), value, dtype=dtype)
                    refused, _ = cut_of(coordinates_of(X, kind), splitter)
                    told = f"all of its {n_rows} rows are equal, or nearly so"
                    assert refused == Refusal(told)


def test_equal_rows_below_others_are_refused(coordinates_of, splitter):
    """A child of duplicates, below a node that has other rows too."""
    for kind in KINDS:
        for row in ((0.1, 0.1), (1e6 / 3, 0.1), (0.1, 0.0), (0.0, 0.0)):
            X = np.random.default_rng(0).normal(size=(140, 2)) + np.array(row) + 50.0
            X[:99] = row
            run = Run()
            field = Field(coordinates_of(X, kind), splitter, run)
            (root,) = field.seek([()])
            below = field.seek([(0,), (1,)])
            refused = [one for one in below if isinstance(one, Refusal)]
            assert [one.reason for one in refused] == [
                "all of its 99 rows are equal, or nearly so"
            ]
            assert sorted(root.sizes) == [41, 99]


def test_few_rows_are_refused(coordinates_of, splitter):
    X = np.random.default_rng(0).standard_normal((4, 3))
    for n_rows in (2, 3):
        refused, _ = cut_of(coordinates_of(X[:n_rows]), splitter)
        assert refused == Refusal(f"{n_rows} rows are too few for 2 children (it takes 4)")
    assert cut_of(coordinates_of(X), splitter)[0].sizes in ((1, 3), (2, 2), (3, 1))


# ---- ties ----


def scored_by(scores, sizes=None, counts=None):
    """Return a field whose rows have these scores, on a plane along the first coordinate."""
    values = np.column_stack([scores, np.ones(len(scores))]).astype(np.float32)
    cuts = np.cumsum([len(scores)] if sizes is None else sizes)
    copies = Copies.once(np.diff([0, *cuts]))
    engine = LocalEngine(Run())
    if counts is not None:
        copies = Copies.of(np.split(counts.astype(np.int32), cuts[:-1]), engine)
    blocks = dataclasses.make_dataclass("Some", ["engine"])(engine)
    parts = np.split(values, cuts[:-1])
    nothing = np.zeros((1, 1))
    coordinates = Coordinates(blocks, copies, parts, nothing, nothing[0], 1.0, nothing)
    return Field(coordinates, GapSplitter(), Run())


def highest(field, wanted):
    """Return the threshold that so many rows reach, and how many do."""
    planes = Planes.of([Plane(np.array([1.0, 0.0]), 0.0, 1.0, None)])
    slots = np.zeros(1, dtype=np.int32)
    told = np.array([wanted]), np.array([field.n_rows])
    (threshold,), (n_high,) = field._highest(planes, slots, *told)
    return threshold, int(n_high)


@settings(max_examples=200)
@given(
    n_rows=st.integers(2, 60),
    scale=st.sampled_from([1e-40, 1e-3, 1.0, 3e7, 1e38]),
    n_values=st.sampled_from([1, 3, 10, 10**6]),
    is_weighted=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_bounds_are_found_exactly(n_rows, scale, n_values, is_weighted, seed):
    """As by a partition of all copies; those of equal scores stay together."""
    rng = np.random.default_rng(seed)
    scores = (rng.integers(-n_values, n_values + 1, n_rows) / n_values * scale).astype("f4")
    counts = rng.integers(0, 4, n_rows) if is_weighted else None
    if is_weighted:
        counts[:2] += 1
    copies = scores if counts is None else np.repeat(scores, counts)
    last = int(rng.integers(1, n_rows))
    field = scored_by(scores, [last, n_rows - last], counts)
    n = len(copies)
    assert field.n_rows == n
    for wanted in range(1, n):
        threshold, n_high = highest(field, wanted)
        assert np.count_nonzero(copies >= threshold) == n_high
        score = np.partition(copies, n - wanted)[n - wanted]
        above, alike = np.count_nonzero(copies > score), np.count_nonzero(copies == score)
        assert above < wanted <= above + alike
        torn = wanted - above  # of those alike, so many would be above
        with_most = above + alike if 2 * torn >= alike else above
        other = above if with_most > above else above + alike
        fits = [size for size in (with_most, other) if 0 < size < n]
        assert n_high == (fits or [with_most])[0]


def test_a_cluster_below_the_bound_is_not_torn(coordinates_of):
    """The least size of a child would take equal rows from the larger cluster."""
    for sizes in ((40, 40, 5), (100, 3, 3), (5, 1, 60)):
        X = np.repeat([[0.0, 0.0], [1.0, 0.0], [30.0, 30.0]], sizes, axis=0)
        coordinates = coordinates_of(X)
        _, labels = cut_of(coordinates, GapSplitter())
        parts = np.split(labels, np.cumsum(sizes)[:-1])
        assert all(len(set(part.tolist())) == 1 for part in parts)
        assert set(labels.tolist()) == {0, 1}
        found, labels = cut_of(coordinates, GapSplitter(min_size=20))
        if isinstance(found, Refusal):  # rather no child than one that is torn
            told = "children of at least 20 rows would tear equal ones apart"
            assert told in found.reason
            assert sizes != (40, 40, 5)
        else:
            assert min(found.sizes) >= 20
            parts = np.split(labels, np.cumsum(sizes)[:-1])
            assert all(len(set(part.tolist())) == 1 for part in parts)


def test_what_the_sample_does_not_see(coordinates_of):
    """Three rows of thousands differ: no sample has them, and yet the node is divided."""
    X = np.zeros((6 * SAMPLE, 2))
    X[[5, 99, 4000]] = [3.0, 1.0]
    for seed in range(3):
        for sizes in (None, [50, 3000, 6 * SAMPLE - 3050]):
            _, labels = cut_of(coordinates_of(X, sizes=sizes), GapSplitter(), seed)
            rare = labels[5]
            assert np.flatnonzero(labels == rare).tolist() == [5, 99, 4000]
        refused, _ = cut_of(coordinates_of(X), GapSplitter(min_size=50), seed)
        assert "children of at least 50 rows would tear equal ones apart" in refused.reason
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = np.tile(rng.standard_normal(3), (SAMPLE * rng.integers(1, 3), 1))
        far = int(rng.integers(len(X)))
        X[far] += 1.0
        _, labels = cut_of(coordinates_of(X), GapSplitter(), seed)
        assert np.bincount(labels).min() == 1
        assert np.count_nonzero(labels == labels[far]) == 1


# ---- samples ----


class Recording:
    """A splitter that keeps the samples it is given, by the seeds of their nodes."""

    def __init__(self, splitter):
        self.splitter, self.min_size, self.samples = splitter, splitter.min_size, {}

    def find(self, sample, n_rows, seed):
        self.samples[seed] = sample
        return self.splitter.find(sample, n_rows, seed)

    def bounds(self, n_rows):
        return self.splitter.bounds(n_rows)


def samples_of(coordinates, paths, splitter, seed):
    """Return what the planes of some nodes are sought on."""
    recording = Recording(splitter)
    field = Field(coordinates, recording, Run(seed))
    for depth in range(max(map(len, paths)) + 1):
        field.seek([*product(range(2), repeat=depth)])
    return [recording.samples[node_seed(seed, path)] for path in paths]


def test_samples_do_not_depend_on_the_cut_into_blocks(coordinates_of):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8 * SAMPLE, 3))
    found = []
    for sizes in (None, [1, 8 * SAMPLE - 1], [400] * 20):
        paths = [(0, 0), (0, 1), (1, 0)]
        found.append(samples_of(coordinates_of(X, sizes=sizes), paths, GapSplitter(), 3))
    for samples in found:
        assert all(0.85 * SAMPLE < len(sample) <= SAMPLE for sample in samples)
        for one, other in zip(samples, found[0], strict=True):
            np.testing.assert_array_equal(one, other)


def test_samples_are_rows_of_their_node(coordinates_of, values_of):
    """Each once, all if they are few, and of everywhere in it."""
    X = np.random.default_rng(0).standard_normal((4 * SAMPLE, 3))
    coordinates = coordinates_of(X, sizes=[SAMPLE] * 4)
    splitter, paths = GapSplitter((0.0, 2.0), min_size=10), [(0, 0), (0, 1), (1, 0), (1, 1)]
    samples = samples_of(coordinates, paths, splitter, 0)
    field = Field(coordinates, splitter, Run())
    field.seek([()])
    field.seek([(0,), (1,)])
    labels = np.concatenate(coordinates.blocks.engine.gather(field.labels(paths)))
    Z = values_of(coordinates.values, coordinates)
    for leaf, sample in enumerate(samples):
        own = {row.tobytes() for row in Z[labels == leaf]}
        drawn = [row.tobytes() for row in sample]
        assert len(set(drawn)) == len(drawn)
        assert 0.85 * min(len(own), SAMPLE) < len(drawn) <= SAMPLE
        assert len(drawn) == len(own) or len(own) > SAMPLE
        assert set(drawn) <= own
        if len(own) > SAMPLE:
            spread = Z[labels == leaf].std(axis=0)[:-1]
            away = sample.mean(axis=0)[:-1] - Z[labels == leaf].mean(axis=0)[:-1]
            assert (np.abs(away) < 5.0 * spread / np.sqrt(SAMPLE)).all()


# ---- many nodes ----


class Watched:
    """A field that says how it was asked."""

    def __init__(self, field, looks_ahead):
        self.field, self.looks_ahead, self.n_rows = field, looks_ahead, field.n_rows
        self.rounds = []

    def seek(self, paths):
        self.rounds.append([*paths])
        return self.field.seek(paths)

    def apply(self, *told):
        return self.field.apply(*told)


def grown(coordinates, looks_ahead, gather=2, splitter=None, **limits):
    run = Run(3)
    field = Field(coordinates, splitter or GapSplitter(), run)
    ground = Watched(field, looks_ahead)
    tree = grow_on(ground, branching=2, stop=StoppingRule(**limits), run=run, gather=gather)
    labels = field.labels([tree.lineage(leaf)[0] for leaf in tree.leaves])
    own = np.concatenate(coordinates.blocks.engine.gather(labels))
    return tree.freeze(order=np.argsort(own, kind="stable")), ground.rounds


def told(tree):
    names = ("order", "start", "stop", "parents", "birth", "score", "objective")
    return [getattr(tree, name).tobytes() for name in names], tree.notes, tree.info


def test_rounds_grow_the_same_tree(coordinates_of, data):
    rng = np.random.default_rng(0)
    sets = {**data, "pairs": np.repeat(rng.standard_normal((40, 3)), 5, axis=0)}
    for X in sets.values():
        coordinates = coordinates_of(X, sizes=[60, len(X) - 60])
        for limits in (
            {"n_leaves": 2},
            {"n_leaves": 16},
            {"n_leaves": 30},
            {"max_leaf_size": 20},
            {"max_depth": 3},
            {"max_depth": 2, "gather": 3},
            {"n_leaves": 12, "max_leaf_size": 30},
            {"n_leaves": 20, "splitter": GapSplitter(min_size=12)},
        ):
            (one, single), (other, rounds) = (
                grown(coordinates, ahead, **limits) for ahead in (False, True)
            )
            assert told(one) == told(other)
            needed = [path for some in single for path in some]
            tried = [path for some in rounds for path in some]
            assert len(set(tried)) == len(tried)
            assert set(needed) <= set(tried)
            assert len(tried) - len(needed) <= len(needed)
            assert len(rounds) <= len(single)
            if "gather" not in limits:
                assert len(rounds) <= one.height + 3


def test_rounds_are_few_where_the_tree_is_large(coordinates_of):
    X = np.random.default_rng(0).standard_normal((6000, 4))
    coordinates = coordinates_of(X)
    (one, single), (other, rounds) = (
        grown(coordinates, ahead, n_leaves=100) for ahead in (False, True)
    )
    assert told(one) == told(other)
    assert len(single) == 99
    assert len(rounds) <= one.height + 3


def test_the_leaves_of_a_tree_have_its_rows(coordinates_of, data, grown_on, values_of):
    """Also where nodes below them were tried, and where rows take no part."""
    rng = np.random.default_rng(0)
    for X in data.values():
        for counts in (None, rng.integers(0, 3, len(X))):
            coordinates = coordinates_of(X, counts=counts)
            leafing = grown_on(coordinates, 11)
            tree, labels = leafing.tree, values_of(leafing.labels, coordinates)
            own = np.ones(len(X), dtype=int) if counts is None else counts
            assert ((labels == -1) == (own == 0)).all()
            there = labels >= 0
            sizes = np.bincount(labels[there], weights=own[there])
            assert sizes.tolist() == [tree.size(leaf) for leaf in tree.leaves]
            assert leafing.counts.tolist() == sizes.tolist()


@pytest.mark.parametrize("name", ["_move", "_count_sides"])
def test_an_interrupt_leaves_all_rows_in_a_leaf(coordinates_of, data, monkeypatch, name):
    """Wherever a sweep is interrupted, what was grown before can be finished."""
    coordinates = coordinates_of(data["cloud"], sizes=[100, 200])
    work, run = getattr(_field, name), Run()
    for at in range(1, 11):
        calls = []

        def interrupted(*entries, at=at, calls=calls, **shared):
            calls.append(at)
            if len(calls) == at:
                raise KeyboardInterrupt
            return work(*entries, **shared)

        field = Field(coordinates, GapSplitter(), run)
        with monkeypatch.context() as patch:
            patch.setattr(_field, name, interrupted)
            with pytest.warns(InterruptedFitWarning):
                tree = grow_on(field, branching=2, stop=StoppingRule(20), run=run)
        labels = field.labels([tree.lineage(leaf)[0] for leaf in tree.leaves])
        own = np.concatenate(coordinates.blocks.engine.gather(labels))
        sizes = [tree.size(leaf) for leaf in tree.leaves]
        assert np.bincount(own, minlength=tree.n_leaves).tolist() == sizes
