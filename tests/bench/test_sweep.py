import math

import pytest

from taxarbor.bench import Setup
from taxarbor.bench._plan import SWEPT, plan_sweep
from taxarbor.bench._select import spread_out
from taxarbor.bench._sweep import describe_sweep, sweep_panels

SLOW = {"SC", "HSC", "HSC-D"}


@pytest.fixture
def setup(tmp_path, made):
    for name in ("one", "two"):
        made.data(tmp_path, name)
    return Setup(tmp_path, n_seeds=3)


def results(setup, made, make):
    return spread_out(made.fill(setup.folder, plan_sweep(setup), make).read(), setup)


def value(job):
    """A number that tells the shape; seeds differ by an eighth."""
    return job.n_clusters / 100 + job.branching / 1000 + job.seed / 8


def test_panels(setup, made):
    jobs = results(setup, made, lambda job: made.outcome(shortest_path=value(job)))
    panels = sweep_panels(jobs, setup, "shortest_path")
    assert [(panel.dataset, panel.axis) for panel in panels] == [
        ("one", "F"),
        ("two", "F"),
        ("one", "K"),
        ("two", "K"),
    ]
    clusters, children = panels[0], panels[2]
    assert clusters.ticks == ("1 x", "1.5 x", "2 x")
    assert children.ticks == ("2", "3", "4", "5")
    assert tuple(clusters.lines) == SWEPT
    assert tuple(children.lines) == ("HKM", "HSC", "HKM-D", "HSC-D", "HMMC")
    for name, means in clusters.lines.items():
        n_seeds = 1 if name in SLOW else 2  # though the table has three
        middle = (n_seeds - 1) / 16
        assert [one.mean for one in means] == pytest.approx(
            [n / 100 + 0.002 + middle for n in (4, 6, 8)]
        )
        assert [one.spread for one in means] == pytest.approx([middle] * 3)
        assert [one.n_values for one in means] == [n_seeds] * 3
    for name, means in children.lines.items():
        middle = 0.0 if name in SLOW else 1 / 16
        assert [one.mean for one in means] == pytest.approx(
            [0.04 + n / 1000 + middle for n in (2, 3, 4, 5)]
        )


def test_tables(setup, made, markdown):
    jobs = results(setup, made, lambda job: made.outcome(shortest_path=value(job)))
    told = list(describe_sweep(jobs, setup, "shortest_path"))
    assert [text.split("\n")[0] for text in told] == ["**one**", "**two**"] * 2
    ((heading, _, *lines),) = markdown.check(told[2])
    assert heading == ["method", "K = 2", "K = 3", "K = 4", "K = 5"]
    assert len(lines) == 5


def test_what_is_missing_is_a_gap(setup, made):
    def make(job):
        return None if job.method == "HSC" or job.branching == 4 else made.outcome()

    panel = sweep_panels(results(setup, made, make), setup, "shortest_path")[2]
    assert [math.isnan(one.mean) for one in panel.lines["HMMC"]] == [False, False, True, False]
    assert all(math.isnan(one.mean) for one in panel.lines["HSC"])


def test_without_a_true_tree_there_are_no_panels(setup, made):
    jobs = results(setup, made, lambda _: made.outcome(truth=False))
    assert not sweep_panels(jobs, setup, "shortest_path")
    assert not list(describe_sweep(jobs, setup, "shortest_path"))
    assert sweep_panels(jobs, setup, "rand")
