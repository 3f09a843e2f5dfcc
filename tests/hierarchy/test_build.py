import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxarbor._types import SolveInfo, Status
from taxarbor.hierarchy import HierarchyBuilder, LinearRule, Placement

TWO = LinearRule(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.zeros(2))
INFO = SolveInfo(Status.CONVERGED, 1, 2.0, ())


@settings(deadline=None)
@given(labels=st.permutations([0, 0, 0, 1, 1, 2, 2]))
def test_a_split_is_a_stable_partition(labels):
    builder = HierarchyBuilder(7)
    children = builder.add_split(0, labels, LinearRule(np.ones((3, 1)), np.zeros(1)))
    assert children == (1, 2, 3)
    for label, child in enumerate(children):
        assert builder.rows(child).tolist() == [i for i in range(7) if labels[i] == label]
        assert builder.depth(child) == 1
    assert builder.n_leaves == 3


def test_labels_follow_the_rows_of_the_node():
    builder = HierarchyBuilder(4)
    _, right = builder.add_split(0, np.array([1, 0, 1, 1], dtype="uint64"), TWO)
    assert builder.rows(right).tolist() == [0, 2, 3]
    a, b = builder.add_split(right, [1, 1, 0], TWO)
    assert builder.rows(a).tolist() == [3]
    assert builder.rows(b).tolist() == [0, 2]
    assert builder.depth(b) == 2
    assert builder.rows(right).tolist() == [3, 0, 2]
    assert builder.rows(0).tolist() == [1, 3, 0, 2]


def test_rows_are_a_copy():
    builder = HierarchyBuilder(3)
    before = builder.rows(0)
    builder.add_split(0, [1, 1, 0], TWO)
    assert before.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "3 integers"),
        ([[0, 1, 1]], "3 integers"),
        ([0.0, 1.0, 1.0], "3 integers"),
        ([True, False, True], "3 integers"),
        ([0, 0, 0], "child 1 would be empty"),
        ([1, 1, 1], "child 0 would be empty"),
        ([0, 1, 2], "0 to 2"),
        ([0, 1, 300], "0 to 300"),
        ([-1, 0, 1], "-1 to 1"),
    ],
)
def test_bad_labels_change_nothing(labels, message):
    builder = HierarchyBuilder(3)
    with pytest.raises(ValueError, match=message):
        builder.add_split(0, labels, TWO)
    assert builder.n_nodes == builder.n_leaves == 1
    assert builder.freeze().n_leaves == 1


def test_bad_rules_and_nodes_are_refused():
    builder = HierarchyBuilder(3, ["a", "b"])
    with pytest.raises(ValueError, match="2 feature names"):
        builder.add_split(0, [0, 1, 1], LinearRule(np.ones((2, 3)), np.zeros(3)))
    builder.add_split(0, [0, 1, 1], TWO)
    with pytest.raises(ValueError, match="one kind"):
        builder.add_split(2, [0, 1], LinearRule(TWO.weights.astype("f4"), np.zeros(2, "f4")))
    with pytest.raises(ValueError, match="split before"):
        builder.add_split(0, [0, 1, 1], TWO)
    with pytest.raises(ValueError, match="split before"):
        builder.refuse(0, "why not")
    for node in (-1, 3):
        with pytest.raises(IndexError, match="ids run from 0 to 2"):
            builder.rows(node)
    with pytest.raises(ValueError, match="one row at least"):
        HierarchyBuilder(0)


@settings(deadline=None)
@given(labels=st.permutations([0, 0, 0, 1, 1, 2, 2]))
def test_labels_alone_make_a_split(labels):
    builder = HierarchyBuilder(7, ["a"])
    assert builder.add_split(0, labels) == (1, 2, 3)
    assert builder.add_split(1, [1, 0, 1]) == (4, 5)
    tree = builder.freeze()
    assert tree.rules == (None,) * 6
    assert tree.cut(3).tolist() == labels
    for node in (0, 1):
        with pytest.raises(ValueError, match="split before"):
            builder.add_split(node, [0] * 7)
        with pytest.raises(ValueError, match="split before"):
            builder.refuse(node, "why not")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0, 0], "child 1 would be empty"),
        ([1, 1, 1], "child 0 would be empty"),
        ([0, 2, 2], "child 1 would be empty"),
        ([0, 1, 3], "labels must be 0 to 2, as the node has 3 rows, got 0 to 3"),
        ([0, 1, 10**12], "0 to 1000000000000"),
        ([-1, 0, 1], "-1 to 1"),
        ([0, 1], "3 integers"),
    ],
)
def test_bad_labels_alone_change_nothing(labels, message):
    builder = HierarchyBuilder(3)
    with pytest.raises(ValueError, match=message):
        builder.add_split(0, labels)
    assert builder.freeze().n_leaves == 1


@pytest.mark.parametrize("label", [0, 1, 2])
def test_a_row_cannot_be_split(label):
    with pytest.raises(ValueError, match=r"would be empty|labels must be 0 to 1"):
        HierarchyBuilder(1).add_split(0, [label])


def test_rules_are_for_all_splits_or_none():
    for first, then, message in ((None, TWO, "had none, now"), (TWO, None, "had one, now")):
        builder = HierarchyBuilder(3)
        builder.add_split(0, [0, 1, 1], first)
        with pytest.raises(ValueError, match=f"all splits have a rule or none.*{message}"):
            builder.add_split(2, [0, 1], then)
        assert builder.n_leaves == 2
        builder.add_split(2, [0, 1], first)
        assert builder.freeze().n_leaves == 3


def test_what_is_recorded_is_frozen():
    builder = HierarchyBuilder(3)
    builder.record(0, score=1.5, objective=2.5, info=INFO)
    builder.refuse(0, "not yet")
    builder.add_split(0, [0, 1, 1], TWO)
    builder.record(2, score=0.5, objective=0.25, info=None)
    builder.refuse(2, "too small")
    tree = builder.freeze()
    np.testing.assert_array_equal(tree.score, [1.5, np.nan, 0.5])
    np.testing.assert_array_equal(tree.objective, [2.5, np.nan, 0.25])
    assert tree.info == (INFO, None, None)
    assert tree.notes == ("", "", "too small")
    assert tree.birth.tolist() == [0, 1, 1]


def test_fidelity_is_frozen():
    builder = HierarchyBuilder(4)
    builder.add_split(0, [0, 1, 1, 1], TWO, fidelity=np.float32(0.75))
    builder.add_split(2, [0, 1, 1], TWO)
    builder.add_split(4, [0, 1], TWO, fidelity=1)
    tree = builder.freeze()
    np.testing.assert_array_equal(tree.fidelity, [0.75, *[np.nan] * 3, 1.0, *[np.nan] * 2])


@pytest.mark.parametrize(
    ("rule", "fidelity", "message"),
    [
        (TWO, 1.5, "from 0 to 1, or NaN, got 1.5"),
        (TWO, -0.5, "from 0 to 1, or NaN, got -0.5"),
        (TWO, np.inf, "from 0 to 1, or NaN, got inf"),
        (None, 0.5, "without a rule there is no fidelity, got 0.5"),
    ],
)
def test_a_bad_fidelity_changes_nothing(rule, fidelity, message):
    builder = HierarchyBuilder(3)
    with pytest.raises(ValueError, match=message):
        builder.add_split(0, [1, 0, 1], rule, fidelity=fidelity)
    assert builder.n_nodes == 1
    assert builder.rows(0).tolist() == [0, 1, 2]


@pytest.mark.parametrize("rule", [TWO, None])
def test_a_placement_is_given_when_the_leaves_are_known(rule):
    builder = HierarchyBuilder(3)
    builder.add_split(0, [0, 1, 1], rule)
    placement = Placement(TWO, [2, 1])
    tree = builder.freeze(placement)
    assert tree.placement is placement
    assert tree.predict([[-1.0, 0.0], [1.0, 0.0]]).tolist() == [0, 1]
    assert builder.freeze().placement is None
    builder.add_split(2, [0, 1], rule)
    with pytest.raises(ValueError, match="must send rows to leaves"):
        builder.freeze(placement)


def test_the_builder_goes_on_after_a_freeze():
    builder = HierarchyBuilder(3)
    builder.add_split(0, [0, 1, 1], TWO)
    before = builder.freeze()
    builder.add_split(2, [1, 0], TWO)
    assert before.labels.tolist() == [0, 1, 1]
    assert builder.freeze().labels.tolist() == [0, 2, 1]


def test_many_rows_and_children():
    n_rows, K = 100_000, 300
    labels = np.arange(n_rows) % K
    builder = HierarchyBuilder(n_rows)
    builder.add_split(0, labels, LinearRule(np.ones((K, 1)), np.zeros(1)))
    np.testing.assert_array_equal(builder.freeze().labels, labels)
