"""The benchmark of scale: its planted tree, its trees of rows, and its cost model."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

sys.path.insert(0, str(Path(__file__).parents[1]))
scale_model = pytest.importorskip("scale_model")
scale_data = pytest.importorskip("scale_data")
scale_contest = pytest.importorskip("scale_contest")
sys.path.pop(0)


COSTS = scale_model.Costs(client=2.0, draw=1e-9, route=1e-9, latency=0.01, task=1e-3)


def predict(n_rows=10**6, n_features=50, n_workers=4, block_rows=10**5, costs=COSTS):
    cluster = scale_model.Cluster(n_workers, storage=float("inf"))
    return scale_model.predict(
        costs, n_rows, n_features, cluster=cluster, block_rows=block_rows
    )


def test_tasks_are_counted() -> None:
    # Read and take, read and route, and one to get the sizes of each.
    assert scale_model.n_tasks(1, 10**5) == 2 + 2 + 1
    assert scale_model.n_tasks(8, 10**5) == 16 + 16 + 8
    assert scale_model.n_tasks(65, 10**5) == 130 + 130 + 65
    assert scale_model.n_tasks(10**6, 100) == 2 * 100 + 3 * 10**6


def test_prediction_adds_up() -> None:
    prediction = predict()
    assert prediction.routing == pytest.approx(
        3 * 10**5 * 50 * 1e-9
    )  # ten blocks, four at a time
    assert prediction.scheduling == pytest.approx(0.02 + (20 + 20 + 10) * 1e-3)
    assert prediction.client == pytest.approx(2.0 + 1e-3)
    assert prediction.reading == 0.0
    parts = prediction.routing + prediction.scheduling + prediction.sending + prediction.client
    assert prediction.seconds == pytest.approx(parts)
    slow = predict(costs=replace(COSTS, read=1e-9))
    assert slow.reading == pytest.approx(2 * prediction.routing)  # twice


def test_blocks_without_sampled_rows_are_not_read_for_the_sample() -> None:
    assert scale_model.n_sampled_blocks(10, 100_000) == pytest.approx(10.0)
    assert scale_model.n_sampled_blocks(10**9, 100_000) == pytest.approx(100_000, rel=1e-3)


def test_what_is_sent_does_not_grow_with_the_rows_of_a_block() -> None:
    few, many = predict(10**6, block_rows=10**5), predict(10**9, block_rows=10**8)
    assert few.n_sent == many.n_sent


def test_more_workers_never_take_longer() -> None:
    times = [predict(10**8, n_workers=w).seconds for w in (1, 2, 8, 64)]
    assert times == sorted(times, reverse=True)


def test_a_line_through_times() -> None:
    n_rows = [10**6, 2 * 10**6, 5 * 10**6]
    client, row = scale_model.fit_line(n_rows, [2.0 + 3e-7 * n for n in n_rows])
    assert (client, row) == (pytest.approx(2.0), pytest.approx(3e-7))


def test_planted_rows_are_the_beginning_of_more(tmp_path: Path) -> None:
    few, more = (scale_data.Table(tmp_path, "planted", n) for n in (500, 1500))
    assert few.write(parquet=False) is None
    assert more.write(parquet=False) is None
    np.testing.assert_array_equal(np.load(few.array), np.load(more.array)[:500])
    np.testing.assert_array_equal(np.load(few.classes), np.load(more.classes)[:500])


def test_planted_classes_are_the_leaves_of_a_binary_tree() -> None:
    source = scale_data.planted()
    assert len(source.classes) == 64
    assert len(source.truth.names) == 64
    assert len(set(source.truth.ancestors_of(source.classes, 3))) == 8


def test_trees_are_built_again_over_rows() -> None:
    # The root is 10; its left child has the leaves 1 and 2, its right child is the leaf 0.
    splits, leaves = [(10, (11, 12)), (11, (13, 14))], [12, 13, 14]
    labels = np.array([0, 1, 2, 1, 0])
    tree = scale_contest.rebuild_tree(labels, splits, leaves)
    assert tree.n_leaves == 3
    assert adjusted_rand_score(tree.labels, labels) == 1.0
    np.testing.assert_array_equal(tree.cut(2) == tree.cut(2)[0], labels == 0)


def test_a_leaf_without_rows_is_left_out() -> None:
    splits, leaves = [(10, (11, 12)), (11, (13, 14))], [12, 13, 14]
    tree = scale_contest.rebuild_tree(np.array([0, 1, 1]), splits, leaves)
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
    scores = scale_contest.agreement(table, outcome)
    names = ("classes", "2 groups", "8 groups", "32 groups", "tree: dendrogram_purity")
    assert [scores[name] for name in names] == pytest.approx([1.0] * 5)
