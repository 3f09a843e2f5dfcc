import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot as plt

from experiments.data import Dataset, load_dataset
from experiments.figures import (
    STYLES,
    ChosenTree,
    Panel,
    describe_nodes,
    describe_sparsity,
    draw_heights,
    draw_sweep,
    draw_tree,
    grow_tree,
    sweep_panels,
    zero_shares,
)
from experiments.methods import METHODS, write_settings
from experiments.plan import SPARSE, SWEPT, Setup, plan_sparsity, plan_sweep, plan_table
from experiments.tables import Mean, of_table

HOSTILE = "a$\\frac$ <b> & |"
SLOW = {"SC", "HSC", "HSC-D"}
BEST = next(one for one in METHODS["HMMC"].grid if (one["alpha"], one["beta"]) == (0.01, 0.1))


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    assert not plt.get_fignums()


@pytest.fixture
def setup(tmp_path, made):
    for name in ("one", "a_b"):
        made.data(tmp_path, name)
    return Setup(tmp_path, n_seeds=3)


def value(job):
    """A number that tells the shape; seeds differ by an eighth."""
    return job.n_clusters / 100 + job.branching / 1000 + job.seed / 8


def test_sweep_panels(setup, made):
    jobs = made.results(
        setup, plan_sweep(setup), lambda job: made.outcome(shortest_path=value(job))
    )
    panels = sweep_panels(jobs, setup, "shortest_path")
    names = [(panel.dataset, panel.axis) for panel in panels]
    assert names == [("a_b", "F"), ("one", "F"), ("a_b", "K"), ("one", "K")]
    clusters, children = panels[0], panels[2]
    assert clusters.ticks == ("1 x", "1.5 x", "2 x")
    assert children.ticks == ("2", "3", "4", "5")
    assert tuple(clusters.lines) == SWEPT
    assert tuple(children.lines) == ("HKM", "HSC", "HKM-D", "HSC-D", "HMMC")
    for name, means in clusters.lines.items():
        n_seeds = 1 if name in SLOW else 2  # though the table has three
        middle = (n_seeds - 1) / 16
        expected = [n / 100 + 0.002 + middle for n in (4, 6, 8)]
        assert [one.mean for one in means] == pytest.approx(expected)
        assert [one.spread for one in means] == pytest.approx([middle] * 3)
        assert [one.n_values for one in means] == [n_seeds] * 3
    for name, means in children.lines.items():
        middle = 0.0 if name in SLOW else 1 / 16
        expected = [0.04 + n / 1000 + middle for n in (2, 3, 4, 5)]
        assert [one.mean for one in means] == pytest.approx(expected)

    def some(job):
        return None if job.method == "HSC" or job.branching == 4 else made.outcome()

    jobs = made.results(setup, plan_sweep(setup), some)
    panel = sweep_panels(jobs, setup, "shortest_path")[2]
    assert [math.isnan(one.mean) for one in panel.lines["HMMC"]] == [False, False, True, False]
    assert all(math.isnan(one.mean) for one in panel.lines["HSC"])


def test_only_full_strength_counts_for_sparsity(setup, made):
    wanted = set(plan_sparsity(setup))

    def make(job):
        share = SPARSE.index(job.method) / 10 + job.seed / 100 if job in wanted else 0.99
        return made.outcome(zero_weights=share)

    jobs = made.results(setup, [*plan_table(setup), *plan_sweep(setup)], make)
    shares = zero_shares(jobs, setup)
    assert list(shares) == ["a_b", "one"]
    for by_variant in shares.values():
        for n, name in enumerate(SPARSE):
            assert by_variant[name].mean == pytest.approx(n / 10 + 0.01)
            assert by_variant[name].n_values == 3
    ((heading, _, *lines),) = made.tables(describe_sparsity(shares))
    assert heading == ["zero weights, %", "a_b", "one"]
    assert [line[0] for line in lines] == list(SPARSE)
    assert lines[1][1:] == ["11.00 ± 0.82"] * 2
    empty = zero_shares(made.results(setup, []), setup)
    ((_, _, *lines),) = made.tables(describe_sparsity(empty))
    assert {cell for line in lines for cell in line[1:]} == {"-"}


@pytest.fixture
def named(tmp_path, made):
    made.data(tmp_path, "some", feature_names=np.array(["a", "b*", "<i>", "$d$", "e\ne"]))
    return Setup(tmp_path, n_seeds=2)


def grown(setup, made, plan=plan_table):
    def make(job):
        is_best = job.settings == write_settings(BEST) and job.seed == 0
        is_best &= job.n_clusters == 4
        return made.outcome(shortest_path=0.9 if is_best else 0.1 + 0.8 * job.seed)

    return made.results(setup, plan(setup), make)


def test_the_best_tree_of_the_first_seed_is_grown_again(named, made):
    chosen = grow_tree(grown(named, made), named)
    X, _ = made.blobs()
    expected = METHODS["HMMC"].fit(X, made.job(), BEST)
    assert np.array_equal(chosen.taxonomy.cut(4), expected.cut(4))
    assert np.array_equal(chosen.taxonomy.tree.depth, expected.tree.depth)
    assert chosen.title == "HMMC on some, alpha=0.01, beta=0.1"
    assert grow_tree(made.results(named, []), named) is None
    jobs = grown(named, made, plan_sweep)
    wide = jobs[(jobs["n_clusters"] != 4) | (jobs["branching"] != 2)]
    assert len(wide)
    assert grow_tree(wide, named) is None  # other shapes are not chosen


def test_a_node_says_what_is_in_it_and_why(named, made):
    chosen = grow_tree(grown(named, made), named)
    describe = describe_nodes(chosen)
    tree, y = chosen.taxonomy.tree, chosen.data.y
    for node in range(tree.n_nodes):
        size, *rest = describe(node)
        rows = tree.rows(node)
        assert size == f"{len(rows)} rows"
        counts = Counter(y[rows].tolist())
        expected = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3]
        assert rest[: len(expected)] == [f"{name}  {count}" for name, count in expected]
        features = rest[len(expected) :]
        rule = tree.rules[node]
        if rule is None:
            assert not features
            continue
        lengths = dict(
            zip(chosen.data.feature_names, np.linalg.norm(rule.weights, axis=0), strict=True)
        )
        shown = [lengths[name] for name in features]
        assert shown == sorted(shown, reverse=True)
        assert all(shown)
        others = [lengths[name] for name in lengths if name not in features]
        assert len(features) == 3 or not any(others)
        assert not shown or max(others, default=0.0) <= shown[-1]


def chosen_tree(made, names=(HOSTILE, "two\nlines", "c", "d")):
    X, y = made.blobs()
    data = Dataset(HOSTILE, X, np.array(names)[y], load_dataset("animals", None).truth, None)
    taxonomy = METHODS["HMMC"].fit(X, made.job(), {})
    return ChosenTree(taxonomy, data, f"HMMC on {HOSTILE}")


def test_features_may_have_no_names(made):
    chosen = chosen_tree(made)
    features = describe_nodes(chosen)(0)[4:]  # after its size and three classes
    assert features
    assert set(features) <= {f"x{n}" for n in range(5)}


def test_every_method_that_is_drawn_has_a_style():
    assert {*SWEPT, *SPARSE} <= set(STYLES)
    assert len(set(STYLES.values())) == len(STYLES)


def test_equal_results_make_equal_pictures(tmp_path, setup, made):
    means = {m: [Mean(0.5, 0.1, 2), Mean()] for m in SWEPT}
    panels = [
        Panel(name, axis, ("1", "2"), means) for axis in "FK" for name in ("one", HOSTILE)
    ]
    jobs = made.results(setup, plan_table(replace(setup, n_seeds=1, strengths=(1.0,))))
    tables = {name: of_table(jobs, setup, name) for name in setup.datasets()}
    tree = chosen_tree(made)
    pictures = []
    for name in ("first", "second"):
        folder = tmp_path / name / "new"
        draw_sweep(panels, "SP", folder / "sweep")
        draw_heights(tables, folder / "heights")
        draw_tree(tree, folder / "tree")
        pictures.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert sorted(pictures[0]) == ["heights.png", "sweep.png", "tree.png"]
    assert pictures[0] == pictures[1]
    assert all(data.startswith(b"\x89PNG") for data in pictures[0].values())


def test_a_figure_that_fails_is_closed(tmp_path):
    panels = [Panel("one", axis, ("1 x",), {"unknown": [Mean(0.5, 0.0, 1)]}) for axis in "FK"]
    with pytest.raises(KeyError):
        draw_sweep(panels, "SP", tmp_path / "sweep")
    assert not list(tmp_path.iterdir())
