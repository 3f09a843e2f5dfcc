"""Against the same choices made by loops over the jobs."""

import math
import statistics

import numpy as np
import pytest

from taxarbor.bench import METHODS, Setup
from taxarbor.bench._jobs import write_settings
from taxarbor.bench._plan import plan_sweep, plan_table
from taxarbor.bench._select import choose, chosen_settings, spread_out, summarise

SETUP = Setup(None, n_seeds=3)


def at(**strengths):
    """Return the settings of HMMC's grid with these strengths."""
    (found,) = (
        write_settings(one)
        for one in METHODS["HMMC"].grid
        if all(one[key] == value for key, value in strengths.items())
    )
    return found


@pytest.fixture
def results(tmp_path, made):
    """Random numbers, rounded so that there are ties; the jobs in random order."""
    rng = np.random.default_rng(0)
    jobs = rng.permutation(np.array([*plan_table(SETUP), *plan_sweep(SETUP)], dtype=object))
    jobs = [made.job()._make(one) for one in jobs]
    scores = {job: (round(float(rng.random()), 1), float(rng.random())) for job in jobs}
    store = made.fill(
        tmp_path,
        jobs,
        lambda job: made.outcome(rand=scores[job][0], adjusted_rand=scores[job][1]),
    )
    return spread_out(store.read(), SETUP), scores


def test_one_line_per_job(results):
    jobs, scores = results
    assert len(jobs) == len(scores)
    for line in jobs.to_dict("records"):
        key = tuple(line[field] for field in next(iter(scores))._fields)
        assert (line["rand"], line["adjusted_rand"]) == scores[key]


@pytest.mark.parametrize("method", ["KM", "AL", "HMMC", "HMMC-E"])
@pytest.mark.parametrize(("measure", "place"), [("rand", 0), ("adjusted_rand", 1)])
def test_best_for_each_seed(results, method, measure, place):
    jobs, scores = results
    here = jobs[(jobs["n_clusters"] == 10) & (jobs["branching"] == 2)]
    allowed = {write_settings(one) for one in METHODS[method].grid}
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


def test_best_of_every_shape(results):
    jobs, _ = results
    found = choose(jobs, "HMMC", "best", "rand")
    shapes = found[["n_clusters", "branching", "seed"]].drop_duplicates()
    # Three seeds of the table; two of each other shape.
    assert len(found) == len(shapes) == 3 + 2 * 5


def test_default_is_the_method_as_it_comes(results):
    jobs, scores = results
    found = choose(jobs, "HMMC", "default", "rand")
    expected = [values[0] for job, values in scores.items() if job[3:5] == ("HMMC", "{}")]
    assert sorted(found["rand"]) == sorted(expected)
    assert len(expected) == 3
    assert set(choose(jobs, "KM", "best", "rand")["settings"]) == {'{"n_init": 10}'}


def test_other_settings_do_not_count(tmp_path, made):
    jobs = [made.job(settings=at(alpha=1.0, beta=1.0)), made.job(settings='{"alpha": 9.0}')]
    store = made.fill(tmp_path, jobs, lambda job: made.outcome(rand=len(job.settings) == 14))
    found = choose(spread_out(store.read(), SETUP), "HMMC", "best", "rand")
    assert found["rand"].tolist() == [0.0]


def test_a_missing_value_is_never_best(tmp_path, made):
    low, high = at(alpha=1.0, beta=1.0), at(alpha=1.0, beta=0.1)
    jobs = [made.job(settings=low), made.job(settings=high), made.job(settings=high, seed=1)]
    store = made.fill(
        tmp_path,
        jobs,
        lambda job: made.outcome(rand=0.25 if job.settings == low else math.nan),
    )
    found = choose(spread_out(store.read(), SETUP), "HMMC", "best", "rand")
    assert found["settings"].tolist() == [low]
    assert summarise(found, "rand") == (0.25, 0.0, 1)


def test_without_results(tmp_path, made):
    empty = spread_out(made.fill(tmp_path, []).read(), SETUP)
    assert not len(empty)
    for protocol in ("best", "default"):
        found = choose(empty, "HMMC", protocol, "rand")
        assert not len(found)
        told = summarise(found, "rand")
        assert math.isnan(told.mean)
        assert told.n_values == 0


def test_without_a_true_tree(tmp_path, made):
    store = made.fill(tmp_path, [made.job()], lambda _: made.outcome(truth=False))
    jobs = spread_out(store.read(), SETUP)
    assert "shortest_path" not in jobs.columns
    assert not len(choose(jobs, "HMMC", "best", "shortest_path"))
    assert math.isnan(summarise(jobs, "shortest_path").mean)


def test_only_this_setup_counts(tmp_path, made):
    others = [{"scaling": "unit"}, {"max_rows": 9}, {"seed": 3}]
    jobs = [made.job(), *(made.job(**one) for one in others), made.job(seed=2)]
    store = made.fill(tmp_path, jobs)
    store.add(made.job(seed=1), made.outcome(status="timed out"))
    assert spread_out(store.read(), SETUP)["seed"].tolist() == [0, 2]


def test_settings_in_words():
    assert chosen_settings({"settings": at(alpha=0.01, beta=1.0)}) == "alpha=0.01, beta=1"
    assert chosen_settings({"settings": "{}"}) == "defaults"
