"""Rows that were drawn, divided by planes: one node, and the nodes of many rounds."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxarbor._run import Run, node_seed
from taxarbor.grow import StoppingRule, grow_on
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.refine import _field
from taxarbor.refine._clusters import n_held
from taxarbor.refine._field import Cut, Field, _sent_down, grow_leaves
from taxarbor.split import GapSplitter, Refusal
from taxarbor.split._gap import SAMPLE
from taxarbor.sweep import _copies

KINDS = ("dense", "csr")
SPLITTERS = {"usual": GapSplitter(), "free": GapSplitter((0.0, 2.0), n_init=2)}


@pytest.fixture(params=SPLITTERS)
def splitter(request):
    return SPLITTERS[request.param]


def field_of(coordinates, splitter, run):
    """Return all rows, drawn as a fit draws them."""
    copies = coordinates.copies
    drawn = coordinates.blocks.engine.sweep(
        _copies.draw,
        *(coordinates.values, [None] * len(copies.first), copies.counts, copies.first),
        keys=np.array([node_seed(run.seed, ())], dtype="u8"),
        bounds=_copies.limits(np.array([copies.n]), copies.n),
    )
    return Field(drawn.stacked()[np.argsort(drawn.hashes)], copies.n, splitter, run)


def labels_of(tree, field, coordinates):
    """Return the leaf of each row."""
    cuts = [field.cuts[tree.lineage(node)[0]] for node in tree.inner]
    labels = _sent_down(tree, cuts, coordinates).labels
    return np.concatenate(coordinates.blocks.engine.gather(labels))


def cut_of(coordinates, splitter, seed=0):
    """Return how the root is divided, and the side of each row."""
    field = field_of(coordinates, splitter, Run(seed))
    (found,) = field.seek([()])
    if isinstance(found, Refusal):
        return found, None
    tree = HierarchyBuilder(field.n_rows)
    field.apply(tree, 0, (), found)
    return found, labels_of(tree, field, coordinates)


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
            field = field_of(coordinates_of(X, kind), splitter, run)
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


class Wanting:
    """A splitter that wants so many rows on the higher side."""

    min_size = 1

    def __init__(self, wanted):
        self.wanted = wanted

    def bounds(self, n_drawn, n_rows):
        return self.wanted, self.wanted


@settings(max_examples=200)
@given(
    n_rows=st.integers(2, 60),
    scale=st.sampled_from([1e-40, 1e-3, 1.0, 3e7, 1e38]),
    n_values=st.sampled_from([1, 3, 10, 10**6]),
    seed=st.integers(0, 2**31),
)
def test_bounds_are_found_exactly(n_rows, scale, n_values, seed):
    """Rows of equal scores stay together, where most of them would be."""
    rng = np.random.default_rng(seed)
    scores = (rng.integers(-n_values, n_values + 1, n_rows) / n_values * scale).astype("f4")
    for wanted in range(1, n_rows):
        field = Field(np.zeros((n_rows, 1), "f4"), n_rows, Wanting(wanted), Run())
        n_high = np.count_nonzero(scores >= field._threshold(scores, n_rows))
        score = np.sort(scores)[n_rows - wanted]
        above, alike = np.count_nonzero(scores > score), np.count_nonzero(scores == score)
        assert above < wanted <= above + alike
        torn = wanted - above  # of those alike, so many would be above
        with_most = above + alike if 2 * torn >= alike else above
        other = above if with_most > above else above + alike
        fits = [size for size in (with_most, other) if 0 < size < n_rows]
        if np.count_nonzero(scores >= 0.0) != wanted:
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

    def bounds(self, n_drawn, n_rows):
        return self.splitter.bounds(n_drawn, n_rows)


def samples_of(coordinates, paths, splitter, seed):
    """Return what the planes of some nodes are sought on."""
    recording = Recording(splitter)
    field = field_of(coordinates, recording, Run(seed))
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
    field = field_of(coordinates, splitter, Run())
    tree = grow_on(field, branching=2, stop=StoppingRule(max_depth=2), run=Run())
    assert [tree.lineage(leaf)[0] for leaf in tree.leaves] == paths
    labels = labels_of(tree, field, coordinates)
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

    looks_ahead = True

    def __init__(self, field):
        self.field, self.n_rows, self.rounds = field, field.n_rows, []

    def seek(self, paths):
        self.rounds.append([*paths])
        return self.field.seek(paths)

    def apply(self, *told):
        return self.field.apply(*told)


def grown(coordinates, width, gather=2, splitter=None, **limits):
    run = Run(3, width=width)
    field = field_of(coordinates, splitter or GapSplitter(), run)
    ground = Watched(field)
    tree = grow_on(ground, branching=2, stop=StoppingRule(**limits), run=run, gather=gather)
    own = labels_of(tree, field, coordinates)
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
            one, single = grown(coordinates, 1, **limits)
            needed = [path for some in single for path in some]
            assert max(map(len, single)) <= 2
            for width in (2, 4, 1000):
                other, rounds = grown(coordinates, width, **limits)
                assert told(one) == told(other)
                tried = [path for some in rounds for path in some]
                assert len(set(tried)) == len(tried)
                assert set(needed) <= set(tried)
                assert len(rounds) <= len(single)
                if width == 2:
                    assert len(tried) <= 1.5 * len(needed) + 2
                if width == 1000 and "gather" not in limits:
                    assert len(rounds) <= one.height + 3


def test_rounds_are_few_where_the_tree_is_large(coordinates_of):
    X = np.random.default_rng(0).standard_normal((6000, 4))
    coordinates = coordinates_of(X)
    (one, single), (other, rounds) = (
        grown(coordinates, width, n_leaves=100) for width in (1, 1000)
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


# ---- where not all rows are drawn ----


@pytest.fixture
def few_drawn(monkeypatch):
    monkeypatch.setattr(_field, "FEWEST", 3000)


def test_a_part_of_the_rows_stands_for_all(coordinates_of, few_drawn, values_of):
    """Sizes are those of all rows, whatever blocks these lie in; far clusters are found."""
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.arange(12_000) % 3)
    X = rng.standard_normal((12_000, 3)) + 40.0 * np.eye(3)[truth]
    found = []
    for sizes in (None, [5000, 7000], [1000] * 12):
        coordinates = coordinates_of(X, sizes=sizes)
        leafing = grow_leaves(coordinates, GapSplitter(), StoppingRule(3), 1)
        labels = values_of(leafing.labels, coordinates)
        assert is_same(labels, truth)
        assert leafing.counts.tolist() == np.bincount(labels).tolist()
        assert [leafing.tree.size(leaf) for leaf in leafing.tree.leaves] == [*leafing.counts]
        expected = [coordinates.array[labels == leaf].astype("f8").sum(0) for leaf in range(3)]
        np.testing.assert_allclose(leafing.sums[:, :-1], expected, rtol=1e-9, atol=1e-9)
        found.append((labels.tobytes(), leafing.sums.tobytes()))
    assert len(set(found)) == 1


def test_sizes_hold_for_all_rows(coordinates_of, few_drawn):
    """Not only for those that were drawn."""
    coordinates = coordinates_of(np.random.default_rng(0).standard_normal((12_000, 3)))
    for least in (100, 700):
        splitter = GapSplitter((0.0, 2.0), min_size=least)
        found = grow_leaves(coordinates, splitter, StoppingRule(12_000 // least), 0)
        assert found.counts.min() >= least
        assert found.n_leaves > 4
        assert found.counts.sum() == 12_000
        assert found.tree.n_leaves == found.n_leaves
    for most in (3000, 4500):
        stop = StoppingRule(max_leaf_size=most)
        found = grow_leaves(coordinates, GapSplitter(), stop, 0)
        assert found.counts.max() <= most
        assert found.n_leaves < 3 * 12_000 / most


def test_leaves_that_seemed_smaller_are_grown_again(coordinates_of, few_drawn, monkeypatch):
    coordinates = coordinates_of(np.random.default_rng(0).standard_normal((12_000, 3)))
    tried = []
    grow = _field._Grow.__call__

    def too_small(self, drawn, run):
        tried.append(self.stop.max_leaf_size)
        return grow(self, drawn, run)

    monkeypatch.setattr(_field._Grow, "__call__", too_small)
    monkeypatch.setattr(_field, "MARGIN", 0.999)
    stop = StoppingRule(max_leaf_size=3000)
    for seed in range(20):
        found = grow_leaves(coordinates, GapSplitter(), stop, seed)
        assert found.counts.max() <= 3000
    assert len(tried) > 20


def test_what_is_said_of_rows_that_were_not_drawn(coordinates_of, few_drawn):
    X = np.repeat(np.random.default_rng(0).standard_normal((3, 2)), 4000, axis=0)
    found = grow_leaves(coordinates_of(X), GapSplitter((0.0, 2.0)), StoppingRule(9), 0)
    assert found.counts.tolist() == [4000] * 3
    for leaf in found.tree.leaves:
        assert "rows are equal, or nearly so, going by " in found.tree.note(leaf)


def test_growth_ends_where_sizes_cannot_be_told(coordinates_of, monkeypatch):
    """Two rows of which one was drawn seem to be one, however small leaves are to be."""
    monkeypatch.setattr(_field, "FEWEST", 1000)
    monkeypatch.setattr(_field, "SAMPLE", 20)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1300, 3))
    X[:40] = np.repeat(30.0 * rng.standard_normal((20, 3)), 2, axis=0)
    stop = StoppingRule(40, max_leaf_size=1)
    found = grow_leaves(coordinates_of(X), GapSplitter((0.0, 2.0)), stop, 0)
    assert found.n_leaves == 40
    assert found.counts.sum() == 1300


def test_a_leaf_that_was_undone_says_why(coordinates_of, monkeypatch):
    monkeypatch.setattr(_field, "FEWEST", 600)
    monkeypatch.setattr(_field, "SAMPLE", 20)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 5)) + 4.0 * rng.integers(0, 5, (6000, 1))
    splitter = GapSplitter((0.0, 2.0), min_size=60)
    tree = grow_leaves(coordinates_of(X), splitter, StoppingRule(100), 0).tree
    assert any(
        "a child would have fewer than 60 rows" in tree.note(leaf) for leaf in tree.leaves
    )
    assert min(tree.size(leaf) for leaf in tree.leaves) >= 60


def test_how_many_rows_are_drawn():
    def drawn(n_rows, gather=2, **stop):
        return _field.n_drawn(n_rows, StoppingRule(**stop), gather)

    assert drawn(50_000, n_leaves=2) >= 50_000
    assert drawn(10**7, n_leaves=10) == 100_000
    assert drawn(10**7, n_leaves=400) == 400_000
    assert drawn(10**9, n_leaves=10**5) == 10**6
    assert drawn(10**7, max_leaf_size=10**5) == 100_000
    assert drawn(10**7, max_leaf_size=500) == 10**6
    assert (
        drawn(10**7, max_leaf_size=5) >= 10**7
    )  # or it could not be told how large leaves are
    assert drawn(10**7, max_depth=50, gather=10**20) == 10**6


def test_how_many_rows_growth_holds():
    """More leaves are grown than asked for, but for a greatest depth; of all rows, at most."""
    assert n_held(10**7, 2, StoppingRule(64)) == 2 * 128_000
    assert n_held(10**7, 2, StoppingRule(max_depth=7)) == 2 * 128_000
    assert n_held(7000, 2, StoppingRule(64)) == 2 * 7000
