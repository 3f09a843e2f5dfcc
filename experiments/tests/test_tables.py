"""The choices against the same ones made by loops over the jobs; then Markdown."""

import math
import statistics

import numpy as np
import pytest

from experiments.methods import METHODS, write_settings
from experiments.plan import Setup, plan_sweep, plan_table
from experiments.tables import (
    Mean,
    choose,
    done_jobs,
    median_seconds,
    number,
    percent,
    rivals,
    score,
    seconds,
    summarise,
    table,
)

SETUP = Setup(None, n_seeds=3)


def at(**strengths):
    """Return the settings of HMMC's grid with these strengths."""
    (found,) = (
        write_settings(one)
        for one in METHODS["HMMC"].grid
        if all(one[key] == value for key, value in strengths.items())
    )
    return found


@pytest.fixture(scope="module")
def drawn(tmp_path_factory, made):
    """Random numbers, rounded so that there are ties; the jobs in random order."""
    rng = np.random.default_rng(0)
    jobs = rng.permutation(np.array([*plan_table(SETUP), *plan_sweep(SETUP)], dtype=object))
    jobs = [made.job()._make(one) for one in jobs]
    scores = {job: (round(float(rng.random()), 1), float(rng.random())) for job in jobs}
    store = made.fill(
        tmp_path_factory.mktemp("drawn"),
        jobs,
        lambda job: made.outcome(rand=scores[job][0], adjusted_rand=scores[job][1]),
    )
    return done_jobs(store.read(), SETUP), scores


def test_one_line_per_job(drawn):
    jobs, scores = drawn
    assert len(jobs) == len(scores)
    for line in jobs.to_dict("records"):
        key = tuple(line[field] for field in next(iter(scores))._fields)
        assert (line["rand"], line["adjusted_rand"]) == scores[key]


@pytest.mark.parametrize("method", ["KM", "AL", "HMMC", "HMMC-E"])
def test_best_for_each_seed(drawn, method):
    jobs, scores = drawn
    here = jobs[(jobs["n_clusters"] == 10) & (jobs["branching"] == 2)]
    allowed = {write_settings(one) for one in METHODS[method].grid}
    for place, measure in enumerate(("rand", "adjusted_rand")):
        expected = {}
        for job, values in sorted(scores.items(), key=lambda item: item[0].settings):
            is_mine = job.method == method and (job.n_clusters, job.branching) == (10, 2)
            if is_mine and job.settings in allowed:
                best = expected.get(job.seed)
                if best is None or values[place] > best[0]:  # the first of those that tie
                    expected[job.seed] = values[place], job.settings
        found = choose(here, method, "best", measure)
        assert dict(zip(found["seed"], found["settings"], strict=True)) == {
            seed: settings for seed, (_, settings) in expected.items()
        }
        values = [value for value, _ in expected.values()]
        mean = summarise(found, measure)
        assert mean.mean == pytest.approx(statistics.mean(values))
        assert mean.spread == pytest.approx(statistics.pstdev(values), abs=1e-12)
        assert mean.n_values == len(values) == (1 if method == "AL" else 3)


def test_shapes_and_defaults(drawn):
    jobs, scores = drawn
    found = choose(jobs, "HMMC", "best", "rand")
    shapes = found[["n_clusters", "branching", "seed"]].drop_duplicates()
    assert len(found) == len(shapes) == 3 + 2 * 5  # of the table; two of each other shape
    expected = [values[0] for job, values in scores.items() if job[3:5] == ("Taxarbor", "{}")]
    assert sorted(choose(jobs, "Taxarbor", "default", "rand")["rand"]) == sorted(expected)
    assert len(expected) == 3
    assert set(choose(jobs, "KM", "best", "rand")["settings"]) == {'{"n_init": 10}'}
    for method, protocol in (("HMMC", "default"), ("Taxarbor", "best")):
        assert math.isnan(score(jobs, method, protocol, "rand").mean)
        assert math.isnan(median_seconds(jobs, method, protocol))


def test_the_rivals_are_those_of_others_best_first(drawn):
    jobs, _ = drawn
    found = rivals(jobs, "default", "adjusted_rand")
    assert {METHODS[name].family for name in found} == {"flat", "bottom-up", "top-down"}
    assert len(found) == 12
    means = [one.mean for one in found.values()]
    assert means == sorted(means, reverse=True)
    bottom_up = rivals(jobs, "default", "adjusted_rand", ("bottom-up",))
    assert set(bottom_up) == {"SL", "AL", "CL", "Ward"}


def test_what_does_not_count(tmp_path, made):
    low, high = at(alpha=1.0, beta=1.0), at(alpha=1.0, beta=0.1)
    jobs = [made.job(settings=low), made.job(settings=high), made.job(settings=high, seed=1)]
    jobs += [made.job(settings='{"alpha": 9.0}')]
    jobs += [made.job("KM", **one) for one in ({"scaling": "unit"}, {"max_rows": 9})]
    jobs += [made.job("KM", seed=seed) for seed in (0, 2, 3)]

    def make(job):
        known = {low: 0.25, high: math.nan}
        return made.outcome(rand=known.get(job.settings, 1.0), height=math.nan)

    store = made.fill(tmp_path, jobs, make)
    store.add(made.job("KM", seed=1), made.outcome(status="timed out"))
    done = done_jobs(store.read(), SETUP)
    found = choose(
        done, "HMMC", "best", "rand"
    )  # neither a foreign setting nor a missing value
    assert found["settings"].tolist() == [low]
    assert summarise(found, "rand") == (0.25, 0.0, 1)
    assert sorted(done[done["method"] == "KM"]["seed"]) == [0, 2]
    assert "height" not in done.columns
    assert not len(choose(done, "HMMC", "best", "height"))


def test_without_results(tmp_path, made):
    empty = done_jobs(made.fill(tmp_path, []).read(), SETUP)
    assert not len(empty)
    for protocol in ("best", "default"):
        found = choose(empty, "HMMC", protocol, "rand")
        assert not len(found)
        assert math.isnan(summarise(found, "rand").mean)
        assert summarise(found, "rand").n_values == 0


def test_tables_and_numbers():
    assert table(["a", "b"], [["x", "**no**"]]) == "| a | b |\n| --- | --: |\n| x | **no** |"
    assert percent(Mean(0.91234, 0.0035, 5)) == "91.23 ± 0.35"
    assert percent(Mean(0.5, 0.0, 1)) == "50.00"
    assert percent(Mean(-0.012, 0.01, 2)) == "-1.20 ± 1.00"
    assert percent(Mean()) == "-"
    assert number(1234.567) == "1,234.57"
    assert number(1234.567, 0) == "1,235"
    assert number(math.nan) == "-"
    told = [seconds(value) for value in (0.01234, 12.345, 1234.5, math.nan)]
    assert told == ["0.012", "12.3", "1,234.5", "-"]
