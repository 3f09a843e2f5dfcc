import itertools
import re
from collections import Counter

import numpy as np
import pytest

from taxarbor.bench import METHODS, Dataset, Setup
from taxarbor.bench._jobs import write_settings
from taxarbor.bench._plan import plan_sweep, plan_table, plan_tree
from taxarbor.bench._select import spread_out
from taxarbor.bench._tree import LAYERS, ChosenTree, describe_nodes, describe_tree, grow_tree

BEST = write_settings(
    next(one for one in METHODS["HMMC"].grid if (one["alpha"], one["beta"]) == (0.01, 0.1))
)


@pytest.fixture
def setup(tmp_path, made):
    made.data(tmp_path, "some", feature_names=np.array(["a", "b*", "<i>", "$d$", "e\ne"]))
    return Setup(tmp_path, n_seeds=2)


def results(setup, made, measure, plan=plan_table, **more):
    def make(job):
        is_best = job.settings == BEST and job.seed == 0 and job.n_clusters == 4
        return made.outcome(**{measure: 0.9 if is_best else 0.1 + 0.8 * job.seed}, **more)

    return spread_out(made.fill(setup.folder, plan(setup), make).read(), setup)


def test_the_best_tree_of_the_first_seed_is_grown_again(setup, made):
    chosen = grow_tree(results(setup, made, "shortest_path"), setup)
    X, _ = made.blobs()
    settings = {"alpha": 0.01, "beta": 0.1, "units": "raw", "balance": [0.9, 1.1]}
    greedy = {"refine": False, "n_init": 1, "center": "data"}
    expected = METHODS["HMMC"].fit(X, 4, 2, 0, {**settings, **greedy})
    assert np.array_equal(chosen.tree.cut(4), expected.cut(4))
    assert np.array_equal(chosen.tree.depth, expected.depth)
    assert chosen.told == "HMMC on some, alpha=0.01, beta=0.1"
    assert chosen.measure == "SP"


def test_without_a_true_tree_the_rand_index_chooses(tmp_path, made):
    made.data(tmp_path, "some", truth=False)
    setup = Setup(tmp_path, n_seeds=1)
    chosen = grow_tree(results(setup, made, "rand", plan_tree, truth=False), setup)
    assert chosen.told == "HMMC on some, alpha=0.01, beta=0.1"
    assert chosen.measure == "RI"


def test_without_results_there_is_no_tree(setup, made):
    assert grow_tree(spread_out(made.fill(setup.folder, []).read(), setup), setup) is None


def test_other_shapes_are_not_chosen(setup, made):
    jobs = results(setup, made, "shortest_path", plan_sweep)
    wide = jobs[(jobs["n_clusters"] != 4) | (jobs["branching"] != 2)]
    assert len(wide)
    assert grow_tree(wide, setup) is None


def test_a_node_says_what_is_in_it_and_why(setup, made):
    chosen = grow_tree(results(setup, made, "shortest_path"), setup)
    describe = describe_nodes(chosen)
    tree, y = chosen.tree, chosen.data.y
    for node in range(tree.n_nodes):
        (size, style), *rest = describe(node)
        rows = tree.rows(node)
        assert (size, style) == (f"{len(rows)} rows", "title")
        counts = Counter(y[rows].tolist())
        classes = [text for text, style in rest if style == "plain"]
        expected = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3]
        assert classes == [f"{name}  {count}" for name, count in expected]
        features = [text for text, style in rest if style == "plus"]
        rule = tree.rules[node]
        if rule is None:
            assert not features
            continue
        lengths = {
            name: float(np.sqrt((rule.weights[:, p] ** 2).sum()))
            for p, name in enumerate(chosen.data.feature_names)
        }
        told = [lengths[name] for name in features]
        assert told == sorted(told, reverse=True)
        assert all(told)
        rest = [lengths[name] for name in lengths if name not in features]
        assert len(features) == 3 or not any(rest)
        assert not told or max(rest, default=0.0) <= told[-1]


def test_the_first_layers_as_a_list(setup, made):
    chosen = grow_tree(results(setup, made, "shortest_path"), setup)
    lines = describe_tree(chosen).split("\n")
    depths = [(len(line) - len(line.lstrip())) // 2 for line in lines]
    expected = [int(depth) for depth in chosen.tree.depth if depth < LAYERS]
    assert sorted(depths) == sorted(expected)
    assert all(line.lstrip().startswith("- ") for line in lines)
    assert all(below <= above + 1 for above, below in itertools.pairwise(depths))
    assert lines[0].startswith("- 24 rows: ape 6, bat 6, cod 6; turns on ")


def test_deep_nodes_are_left_out_and_features_may_have_no_names(made):
    X, y = made.blobs(60)
    tree = METHODS["SL"].fit(X, 30, 2, 0, {})
    chosen = ChosenTree(tree, Dataset("some", X, y.astype(str), None, None), "", "RI")
    text = describe_tree(chosen)
    assert tree.height >= LAYERS
    assert max((len(line) - len(line.lstrip())) // 2 for line in text.split("\n")) == LAYERS - 1
    chosen = chosen._replace(tree=METHODS["HMMC"].fit(X, 4, 2, 0, {}))
    assert re.search(r"turns on x[0-4]", describe_tree(chosen))


def test_hostile_names_stay_text(tmp_path, made):
    classes = ("<img src=x>", "two\nlines", "![x](y)", "a|b")
    made.data(tmp_path, "some", truth=False, classes=classes)
    setup = Setup(tmp_path, n_seeds=1)
    text = describe_tree(grow_tree(results(setup, made, "rand", plan_tree, truth=False), setup))
    assert "<" not in text
    assert "![x](y)" not in text
    assert "two lines" in text
    assert all(line.lstrip().startswith("- ") for line in text.split("\n"))
