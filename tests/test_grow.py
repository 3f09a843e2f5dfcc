"""The growth loop, with splitters that only pretend."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from taxarbor._fit_context import ignore
from taxarbor._types import SolveInfo, Status
from taxarbor.grow import Run, StoppingRule, grow, grow_tree
from taxarbor.rows import as_rows
from taxarbor.split import MaxMarginSplitter, Refusal, Regularizer, Split
from taxarbor.tree import LinearRule
from tests.tree.conftest import assert_same

INFO = SolveInfo(Status.CONVERGED, 1, 1.0, (1.0,))


def random_score(task):
    return float(task.rng().random())


@dataclass
class Halver:
    """Cuts the rows into equal runs; remembers what it was asked."""

    score: object = random_score
    least: int = 2
    tasks: list = field(default_factory=list)

    def split(self, task):
        self.tasks.append(task)
        n, K = task.rows.n_rows, task.n_children
        if n < max(self.least, K):
            return Refusal(f"{n} rows are enough")
        rule = LinearRule(np.arange(float(K))[:, None], np.zeros(1))
        score = self.score(task)
        return Split(np.arange(n) * K // n, rule, score, -score, INFO)

    @property
    def paths(self):
        return [task.path for task in self.tasks]


@pytest.fixture
def rows():
    return as_rows(np.arange(240.0)[:, None])


def grow_with(rows, splitter, *, branching=2, seed=0, observer=ignore, pool=None, **limits):
    run, stop = Run(seed, observer, pool), StoppingRule(**limits)
    return grow(rows, splitter, branching=branching, stop=stop, run=run).freeze()


# ---- best first ----


def test_the_best_candidate_is_applied(rows):
    for branching, seed in product((2, 3, 4), range(4)):
        tree = grow_with(rows, Halver(), branching=branching, seed=seed, n_leaves=25)
        born = dict(zip(tree.birth[1:].tolist(), tree.parents[1:].tolist(), strict=True))
        assert sorted(born) == list(range(1, len(born) + 1))
        split_at = {node: step for step, node in born.items()}
        for step, node in born.items():
            waiting = [
                other
                for other in range(tree.n_nodes)
                if tree.birth[other] < step <= split_at.get(other, step)
            ]
            assert node in waiting
            assert tree.score[node] == np.nanmax(tree.score[waiting])


def test_equal_extreme_and_infinite_scores(rows):
    for score in (1.0, np.inf):  # the older node first
        tree = grow_with(rows, Halver(score=lambda task, score=score: score), n_leaves=6)
        assert [int(parent) for parent in tree.parents[1::2]] == [0, 1, 2, 3, 4]
    last = Halver(score=lambda task: float(sum(task.path) == len(task.path)))
    assert grow_with(rows, last, n_leaves=6).height == 5  # a comb


# ---- limits ----


def test_depth_counts_as_it_does_when_pairs_are_merged():
    """A split of K children is made of K - 1 pairs, which are together one level deep."""
    for branching, seed in product((2, 3, 5), range(6)):
        rng = np.random.default_rng(seed)

        def divide(tree, node, rng=rng):
            labels = np.arange(tree.size(node)) % 2
            return Split(labels, None, float(rng.integers(5, 20)), 0.0, INFO)

        options = {"stop": StoppingRule(max_depth=2), "run": Run(seed)}
        tree = grow_tree(500, divide, branching=2, max_children=branching, **options)
        assert tree.n_leaves == branching**2


def test_sizes_and_depths(rows):
    splitter = Halver()
    tree = grow_with(rows, splitter, max_leaf_size=30)
    assert tree.sizes[tree.leaves].tolist() == [30] * 8
    assert all(task.rows.n_rows > 30 for task in splitter.tasks)
    for limits, depths in (
        ({"max_depth": 3}, [3] * 8),
        ({"max_depth": 1}, [1] * 2),
        ({"max_depth": 3, "max_leaf_size": 60}, [2] * 4),
        ({"max_leaf_size": 240, "n_leaves": 9}, [0]),
        ({"max_leaf_size": 239, "n_leaves": 9}, [1] * 2),
    ):
        tree = grow_with(rows, Halver(), **limits)
        assert tree.depth[tree.leaves].tolist() == depths
    assert grow_with(rows, Halver(), max_depth=3, max_leaf_size=60, n_leaves=3).n_leaves == 3


def test_tasks_carry_where_they_are(rows):
    splitter = Halver()
    tree = grow_with(rows, splitter, branching=3, n_leaves=13, seed=5)
    for task in splitter.tasks:
        assert (task.n_children, task.seed) == (3, 5)
        np.testing.assert_array_equal(task.origin, rows.center)
        nodes = [0]
        for child in task.path:
            nodes.append(tree.children(nodes[-1])[child])
        assert task.rows.n_rows == tree.sizes[nodes[-1]]
        assert [*map(id, task.lineage)] == [id(tree.rules[node]) for node in nodes[:-1]]


def test_refusals_are_noted(rows):
    tree = grow_with(rows, Halver(least=100), n_leaves=10)
    assert tree.n_leaves == 4
    assert [tree.notes[leaf] for leaf in tree.leaves] == ["60 rows are enough"] * 4
    assert np.isnan(tree.score[tree.leaves]).all()
    assert all(tree.notes[node] == "" for node in range(tree.n_nodes) if tree.rules[node])
    nothing = grow_with(rows, Halver(least=1000), n_leaves=10)
    assert (nothing.n_leaves, nothing.notes) == (1, ("240 rows are enough",))


def test_each_leaf_is_tried_once_and_recorded(rows):
    splitter = Halver()
    tree = grow_with(rows, splitter, n_leaves=12)
    assert len(set(splitter.paths)) == len(splitter.paths)
    # All but the children of the last split, which were never candidates.
    assert len(splitter.paths) == tree.n_nodes - 2
    assert splitter.paths[0] == ()
    tried = ~np.isnan(tree.score)
    assert np.count_nonzero(tried) == tree.n_nodes - 2
    np.testing.assert_array_equal(tree.objective[tried], -tree.score[tried])
    assert all((tree.info[node] is INFO) == tried[node] for node in range(tree.n_nodes))


# ---- observers ----


def test_observers_see_growth(rows):
    seen = []
    tree = grow_with(rows, Halver(), n_leaves=6, observer=lambda *sizes: seen.append(sizes))
    leaves = [n_leaves for n_leaves, _ in seen]
    assert leaves == sorted(leaves)
    assert (leaves[0], leaves[-1]) == (1, tree.n_leaves)
    assert {max_leaves for _, max_leaves in seen} == {6}
    grow_with(rows, Halver(), max_depth=2, observer=lambda *sizes: seen.append(sizes))
    assert seen[-1][1] == 0  # no limit


# ---- the same tree, however it is run ----


class Backwards:
    """A pool that begins with the last task."""

    def map(self, function, items):
        return [function(item) for item in reversed(list(items))][::-1]


def margins(kind="group+exclusive", **options):
    return MaxMarginSplitter(Regularizer(kind, 0.02, 0.02, True), (0.3, 1.7), **options)


def lifted(n_rows, n_threads=1):
    X = np.random.default_rng(0).normal(size=(n_rows, 4))
    X[:, -1] = 10.0
    return as_rows(X, n_threads=n_threads)


def test_the_tree_does_not_depend_on_how_splits_are_run():
    for splitter in (Halver(), margins(n_init=2), margins(center="data")):
        for branching in (2, 3):
            options = {"branching": branching, "n_leaves": 9}
            plain = grow_with(lifted(300), splitter, **options)
            assert plain.n_leaves == 9
            with ThreadPoolExecutor(3) as pool:
                for rows in (lifted(300), lifted(300, n_threads=2)):
                    assert_same(plain, grow_with(rows, splitter, pool=pool, **options))
            assert_same(plain, grow_with(lifted(300), splitter, pool=Backwards(), **options))


def numbers(tasks):
    return {task.path: task.rng().random(3).tobytes() for task in tasks}


def test_random_numbers_depend_on_the_path_alone(rows):
    """Another order of growth, another size: each path draws what it drew before."""
    small, large = Halver(), Halver(score=lambda task: -len(task.path))
    grow_with(rows, small, n_leaves=8, seed=3)
    grow_with(rows, large, n_leaves=30, seed=3)
    one, two = numbers(small.tasks), numbers(large.tasks)
    shared = one.keys() & two.keys()
    assert len(shared) > 3
    assert all(one[path] == two[path] for path in shared)
    assert len(set(two.values())) == len(two)
    other = Halver()
    grow_with(rows, other, n_leaves=8, seed=4)
    assert not set(numbers(other.tasks).values()) & set(one.values())
