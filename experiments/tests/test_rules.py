"""What rules cost: which fits, and what the page says of them."""

from dataclasses import replace

import pytest

from experiments import rules
from experiments.defaults import BKM, CLUSTERS, DEFAULT, KM, Scores
from experiments.methods import find_method
from experiments.plan import Setup
from experiments.rules import ROWS, WEAK, WITH_RULES, plan_rules, weak_datasets, write_rules
from experiments.run import run_jobs
from experiments.tables import done_jobs

NAMES = ["one", "two"]


@pytest.fixture
def setup(tmp_path, made, monkeypatch):
    monkeypatch.setattr(rules, "WEAK", ((3, 4, 2.0),))
    folder = tmp_path / "data"
    folder.mkdir()
    for name in NAMES:
        made.data(folder, name)
    return Setup(folder, n_seeds=2)


def outcome(made, **ours):
    """Return results in which all is one half, but for what Taxarbor has."""

    def make(job):
        is_ours = (job.method, job.settings) == ("Taxarbor", '{"sample": "half"}')
        better = 0.1 * job.seed if is_ours else 0.0
        reading = {"mean_features": 9.0, "path_features": 40.0}
        reading |= {"n_rules": 3.0, "short_rules": 2.0}
        values = made.outcome().measures
        values |= {f"new_{name}": value for name, value in values.items()}
        values |= {key: value + better for key, value in (ours if is_ours else {}).items()}
        has_rules = find_method(job.method).family == "ours" and job.method != "variant"
        return made.outcome(**values, **(reading if has_rules else {}))

    return make


def test_half_of_the_rows_is_fitted(setup, monkeypatch):
    jobs = list(plan_rules(setup))
    assert len(set(jobs)) == len(jobs)
    assert all('"sample": "half"' in job.settings for job in jobs)
    real = [job for job in jobs if job.dataset in NAMES]
    assert {job.max_rows for job in real} == {6000}
    assert {job.seed for job in real if job.method == "Ward"} == {0, 1}  # of other halves
    drawn = [job for job in jobs if job not in real]
    assert {(job.dataset, job.max_rows, job.seed) for job in drawn} == {("planted/3/4/2", 0, 0)}
    assert [job.method for job in drawn] == ["Taxarbor", "BKM", "KM"]
    quick = Setup.quick(setup.folder)
    assert {job.max_rows for job in plan_rules(quick)} == {1000}
    monkeypatch.setattr(rules, "WEAK", WEAK)
    assert len(weak_datasets(setup)) == 4
    assert weak_datasets(quick) == ["planted/256/50/0.5"]


def test_means_and_differences(tmp_path, setup, made):
    ours = {"new_adjusted_rand": 0.6, "adjusted_rand": 0.7, "new_adjusted_path_sharing": 0.2}
    store = made.fill(tmp_path, plan_rules(setup), outcome(made, **ours))
    few = replace(setup, max_rows=6000)
    scores = Scores.of(done_jobs(store.read(), few), few)
    assert scores.over_all(DEFAULT, "new_adjusted_rand") == pytest.approx((0.65, 0.05, 2))
    assert scores.over_all(CLUSTERS, "new_adjusted_rand") == pytest.approx((0.5, 0.0, 2))
    found = scores.difference(DEFAULT, BKM, "new_adjusted_rand")
    assert found == pytest.approx((0.15, 0.05, 2))
    more = scores._replace(datasets=(*NAMES, "three"))
    with pytest.raises(ValueError, match="three"):
        more.over_all(DEFAULT, "new_adjusted_rand")
    page = tmp_path / "rules.md"
    assert write_rules(store, setup, page) == [page]
    text = page.read_text("utf-8")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Held-out rows",
        "## Number of features",
        "## Training rows",
        "## Many weak features",
    ]
    means, differences, *_, reading, everywhere, fitted, drawn = made.tables(text)
    assert [line[0] for line in means[2:]] == [row.label for row in ROWS]
    assert means[2][3] == "65.0 ± 5.0"
    assert means[-1] == ["KM", "-", "-", "50.0 ± 0.0", "50.0 ± 0.0", "-"]
    assert {tuple(line[2:4]) for line in differences[2:-1]} == {("-25.0 ± 5.0", "+15.0 ± 5.0")}
    assert differences[-1][1:4] == ["-", "-", "+15.0 ± 5.0"]
    assert [line[0] for line in reading[2:]] == [row.label for row in WITH_RULES]
    assert reading[2][1:] == ["9.0 ± 0.0", "40.0 ± 0.0", "3.0 ± 0.0", "2.0 ± 0.0"]
    assert reading[-1][1:] == ["-"] * 4
    assert everywhere[2][:3] == ["one", "5", "9.0 ± 0.0"]
    assert fitted[2][3] == "75.0 ± 5.0"
    assert drawn[2] == ["3", "4", "2", "60.0 (70.0)", *["50.0 (50.0)"] * 2, *["1.0"] * 3]
    assert f"{len(list(plan_rules(setup)))} fits" in text
    assert KM.label in text


def test_a_page_without_results(tmp_path, setup, made):
    text = write_rules(made.fill(tmp_path, []), setup, tmp_path / "page.md")[0].read_text(
        "utf-8"
    )
    assert "There are no results." in text


@pytest.mark.long
def test_a_small_one_from_real_fits(tmp_path, setup):
    setup = replace(setup, n_seeds=1)
    store = run_jobs(plan_rules(setup), setup.folder, tmp_path / "out", n_workers=2)
    assert set(store.read()["status"]) == {"done"}
    text = write_rules(store, setup, tmp_path / "page.md")[0].read_text("utf-8")
    assert "nan" not in text
