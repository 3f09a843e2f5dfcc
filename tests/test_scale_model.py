"""The benchmark of scale: its planted tree, its trees of rows, and its cost model."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taxarbor._run import Run
from taxarbor.sweep import LocalEngine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
scale_model = pytest.importorskip("scale_model")
scale_data = pytest.importorskip("scale_data")
scale_contest = pytest.importorskip("scale_contest")
sys.path.pop(0)


def column_sums(rows: np.ndarray) -> np.ndarray:
    return rows.sum(axis=0)


def coordinates(rows: np.ndarray) -> tuple[np.ndarray, int]:
    return rows[:, :3] + 1.0, len(rows)


def fit(X: np.ndarray, n_blocks: int) -> list:
    engine = LocalEngine(Run())
    with scale_model.traced(LocalEngine, X) as steps:
        blocks = np.array_split(X, n_blocks)
        engine.sweep(column_sums, blocks)
        kept, _ = engine.keep(coordinates, blocks)
        engine.sweep(column_sums, kept)
        engine.sweep(np.sum, [np.ones(len(block)) for block in blocks])
    return steps


def test_steps_are_told_apart() -> None:
    X = np.random.default_rng(0).standard_normal((1000, 20))
    steps = fit(X, 4)
    assert [step.reads for step in steps] == ["data", "data", "coordinates", "rows"]
    assert [step.makes for step in steps] == [False, True, False, False]
    assert [step.width for step in steps] == [20, 20, 3, 1]
    assert {step.n_rows for step in steps} == {1000}
    assert steps[0].found > 3 * steps[0].total  # a sum in each block


def test_tracing_ends() -> None:
    before = LocalEngine.sweep, LocalEngine.keep
    fit(np.ones((10, 5)), 2)
    assert (LocalEngine.sweep, LocalEngine.keep) == before


STEP = scale_model.Step("work", "data", False, False, 1000, 10, 50, 1.0, 1.0, 800, 80, 100)
COSTS = scale_model.Costs(1e-9, 1e-10, 1e-9, 1e-9, 2.0, 0.01, 1e-3, 0.0)


@pytest.mark.parametrize(
    ("n_blocks", "keeps", "n_tasks"), [(1, False, 2), (8, True, 25), (65, False, 68)]
)
def test_tasks_are_counted_as_dask_makes_them(n_blocks: int, keeps: bool, n_tasks: int) -> None:
    assert scale_model.n_tasks(replace(STEP, keeps=keeps), n_blocks) == n_tasks


def test_sums_grow_with_the_blocks_and_samples_do_not() -> None:
    assert STEP.bytes_found(100, 50) == 8000
    sample = replace(STEP, total=800)
    assert sample.bytes_found(100, 50) == 800
    assert sample.bytes_found(100, 100) == 1600


def test_slopes_find_the_costs_of_a_row() -> None:
    traces = []
    for n in (1000, 2000, 5000):
        busy = n * 50 * 3e-9
        traces.append([replace(STEP, n_rows=n, busy=busy, seconds=busy)])
    totals = [trace[0].seconds + 2.0 for trace in traces]
    found = scale_model.slopes(traces, totals)
    assert found["data"] == pytest.approx(3e-9)
    assert found["client"] == pytest.approx(2.0)
    assert found["coordinates"] == 0.0


def test_prediction_adds_up() -> None:
    said = scale_model.predict(
        COSTS, [STEP], 10**6, 50, cluster=scale_model.Cluster(4), block_rows=10**5
    )
    assert said.working == pytest.approx(3 * 10**5 * 50 * 1e-9)  # ten blocks, four at a time
    assert said.scheduling == pytest.approx(0.01 + 11 * 1e-3)
    parts = said.working + said.scheduling + said.sending + said.client
    assert said.seconds == pytest.approx(parts)


def test_more_workers_never_take_longer_to_work() -> None:
    times = [
        scale_model.predict(
            COSTS, [STEP], 10**8, 50, cluster=scale_model.Cluster(w), block_rows=10**5
        ).working
        for w in (1, 2, 8, 64)
    ]
    assert times == sorted(times, reverse=True)


def test_replayed_steps_wait() -> None:
    engine = LocalEngine(Run())
    took = scale_model.replay(engine, [STEP, replace(STEP, keeps=True)], 3, [0.01, 0.02])
    assert took >= 3 * (0.01 + 0.02)


def test_planted_rows_are_the_beginning_of_more(tmp_path: Path) -> None:
    few, more = (scale_data.Table(tmp_path, "planted", n) for n in (500, 1500))
    assert few.write(parquet=False) is None
    assert more.write(parquet=False) is None
    np.testing.assert_array_equal(np.load(few.array), np.load(more.array)[:500])
    np.testing.assert_array_equal(np.load(few.classes), np.load(more.classes)[:500])


def test_planted_classes_are_the_leaves_of_a_binary_tree() -> None:
    source = scale_data.planted()
    assert len(source.classes) == 64
    assert source.truth.n_leaves == 64
    assert len(set(source.truth.ancestors_of(source.classes, 3))) == 8


def test_trees_are_built_again_over_rows() -> None:
    # The root is 10; its left child has the leaves 1 and 2, its right child is the leaf 0.
    splits, leaves = [(10, (11, 12)), (11, (13, 14))], [12, 13, 14]
    labels = np.array([0, 1, 2, 1, 0])
    tree = scale_contest.rebuilt(labels, splits, leaves)
    assert tree.n_leaves == 3
    assert scale_contest._rand(tree.labels, labels) == 1.0
    np.testing.assert_array_equal(tree.cut(2) == tree.cut(2)[0], labels == 0)


def test_a_leaf_without_rows_is_left_out() -> None:
    splits, leaves = [(10, (11, 12)), (11, (13, 14))], [12, 13, 14]
    tree = scale_contest.rebuilt(np.array([0, 1, 1]), splits, leaves)
    assert tree.n_leaves == 2


def test_perfect_clusters_agree_perfectly(tmp_path: Path) -> None:
    table = scale_data.Table(tmp_path, "planted", 3000)
    table.write(parquet=False)
    labels = np.load(table.classes).astype(np.int64)
    splits = [
        (2**d + k, (2 ** (d + 1) + 2 * k, 2 ** (d + 1) + 2 * k + 1))
        for d in range(6)
        for k in range(2**d)
    ]
    outcome = scale_contest.Outcome(labels=labels, splits=splits, leaves=range(64, 128))
    found = scale_contest.agreement(table, outcome)
    names = ("classes", "2 groups", "8 groups", "32 groups", "tree: dendrogram_purity")
    assert [found[name] for name in names] == pytest.approx([1.0] * 5)
