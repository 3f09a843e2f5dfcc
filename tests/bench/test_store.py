import math

import numpy as np
import pytest

from taxarbor._errors import FileFormatError
from taxarbor.bench import Store, _store
from taxarbor.bench._jobs import Job, Outcome
from taxarbor.bench._store import COLUMNS

TRICKY = (
    '{"alpha": 0.5, "balance": [0.9, 1.1]}',
    '{"note": "a \\"quote\\", a comma"}',
)
NAMES = ("animals", "löwen 🦁", 'a "b", c', "two\nlines", "123", "1e5", "nan", "", "True")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.csv"


def measures_of(store, job):
    found = store.read()
    for field in Job._fields:
        found = found[found[field] == getattr(job, field)]
    return dict(zip(found["measure"], found["value"], strict=True))


def test_rows_come_back(path, made):
    jobs = [made.job(dataset=name, settings=text) for name in NAMES for text in TRICKY]
    outcomes = [made.outcome(0.25 * n, rand=n / 7) for n in range(len(jobs))]
    store = Store(path)
    for job, outcome in zip(jobs, outcomes, strict=True):
        store.add(job, outcome)
    for again in (store, Store(path)):
        assert again.known() == set(jobs)
        found = again.read()
        assert tuple(found.columns) == COLUMNS
        assert len(found) == sum(len(outcome.measures) for outcome in outcomes)
        for job, outcome in zip(jobs, outcomes, strict=True):
            assert measures_of(again, job) == outcome.measures  # to the last bit
        assert set(found["seconds"]) == {outcome.seconds for outcome in outcomes}
        assert set(found["status"]) == {"done"}


def test_a_new_file_has_no_results(tmp_path):
    store = Store(tmp_path / "a" / "b" / "results.csv")
    assert store.known() == set()
    assert tuple(store.read().columns) == COLUMNS
    assert not len(store.read())


def test_a_measure_may_be_missing(path, made):
    store = Store(path)
    store.add(made.job(), made.outcome(rand=math.nan))
    assert math.isnan(measures_of(store, made.job())["rand"])
    assert store.known() == {made.job()}


@pytest.mark.parametrize("status", ["timed out", "failed: the process died", 'failed: a,\n"b"'])
def test_what_failed_is_told_and_tried_again(path, made, status):
    store = Store(path)
    store.add(made.job(), made.outcome(status=status))
    store.add(made.job(seed=1), Outcome(status, math.nan, math.nan, {}))
    store.add(made.job(seed=2), made.outcome(2.5))
    store = Store(path)
    assert store.known() == {made.job(seed=2)}
    found = store.read()
    assert found["status"].tolist()[:2] == [" ".join(status.split())] * 2
    assert found["seconds"].sum() == 1.0 + 2.5 * (len(found) - 2)


def test_what_failed_and_then_did_not_is_done(path, made):
    store = Store(path)
    store.add(made.job(), made.outcome(status="timed out"))
    store.add(made.job(seed=1), made.outcome())
    store.add(made.job(), made.outcome(rand=0.25))
    assert store.known() == {made.job(), made.job(seed=1)}
    assert set(store.read()["status"]) == {"done"}
    assert measures_of(store, made.job())["rand"] == 0.25
    assert "" not in measures_of(store, made.job())


def test_numbers_of_any_kind_are_written_as_numbers(path, made):
    store = Store(path)
    kinds = {
        "rand": np.float64(0.1),
        "adjusted_rand": np.float32(0.5),
        "height": 3,
        "n_leaves": True,
    }
    store.add(made.job(), made.outcome(**kinds))
    found = measures_of(store, made.job())
    assert {key: found[key] for key in kinds} == kinds


def test_of_a_job_that_was_run_twice_the_last_counts(path, made):
    store = Store(path)
    for rand in (0.25, 0.75):
        store.add(made.job(), made.outcome(rand=rand))
    assert measures_of(store, made.job())["rand"] == 0.75
    assert len(store.read()) == len(made.outcome().measures)


@pytest.mark.parametrize("status", ["done", 'failed: of ö,\n🦁 "and" more'])
def test_a_torn_record_loses_no_other(path, made, status):
    """Cut at every byte of the last record; the rest is there, and can be added to."""
    others = made.job(settings=TRICKY[0]), made.job(dataset=NAMES[3], seed=1)
    last = made.job(dataset="löwen 🦁\n", settings=TRICKY[1], seed=2)
    store = Store(path)
    for job in others:
        store.add(job, made.outcome())
    before = path.stat().st_size
    measures = {"height": 5.0, "rand": 0.375, "zero_weights": 0.5} if status == "done" else {}
    store.add(last, Outcome(status, 1.0, 1.0, measures))
    whole = path.read_bytes()
    for size in range(before, len(whole)):
        path.write_bytes(whole[:size])
        assert Store(path).known() == {*others}, size
        assert path.read_bytes().endswith(b"\n")
    path.write_bytes(whole)
    assert Store(path).known() == {*others} | ({last} if status == "done" else set())
    assert path.read_bytes() == whole


def test_after_a_torn_record_the_job_is_added_again(path, made):
    """Cut after each line: some measures are there, some are not."""
    store = Store(path)
    store.add(made.job(), made.outcome(rand=0.125))
    before = path.stat().st_size
    store.add(made.job(seed=1), made.outcome(1.0, rand=0.25, height=3.0))
    whole = path.read_bytes()
    ends = [n + 1 for n in range(before, len(whole) - 1) if whole[n : n + 1] == b"\n"]
    assert len(ends) == len(made.outcome().measures) - 1
    for end in ends:
        path.write_bytes(whole[:end])
        torn = Store(path)
        assert torn.known() == {made.job()}
        assert not measures_of(torn, made.job(seed=1))
        again = made.outcome(2.0, rand=0.75)
        torn.add(made.job(seed=1), again)
        assert torn.known() == {made.job(), made.job(seed=1)}
        assert measures_of(torn, made.job(seed=1)) == again.measures
        assert measures_of(torn, made.job())["rand"] == 0.125
        found = torn.read()
        assert set(found[found["seed"] == 1]["seconds"]) == {2.0}


def test_a_torn_heading_is_written_anew(path, made):
    Store(path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        Store(path)
        assert path.read_bytes() == whole
    store = Store(path)
    store.add(made.job(), made.outcome())
    assert store.known() == {made.job()}


def test_measures_may_come_in_any_order(path, made):
    outcome = made.outcome()
    backwards = dict(reversed(outcome.measures.items()))
    store = Store(path)
    store.add(made.job(), Outcome("done", 1.0, 1.0, backwards))
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rstrip().rfind(b"\n") + 1])
    assert Store(path).known() == set()
    path.write_bytes(whole)
    assert Store(path).known() == {made.job()}


@pytest.mark.parametrize("digest", ["another", "123456789012", "1234e5678901"])
def test_results_of_other_code_do_not_count(path, made, monkeypatch, digest):
    store = Store(path)
    store.add(made.job(), made.outcome(rand=0.25))
    ours = _store.code_digest()
    monkeypatch.setattr(_store, "code_digest", lambda: digest)
    assert store.known() == set()
    store.add(made.job(), made.outcome(rand=0.75))
    assert store.known() == {made.job()}
    found = store.read()
    assert set(found["code"]) == {ours, digest}
    monkeypatch.undo()
    assert store.known() == {made.job()}
    assert found[(found["measure"] == "rand") & (found["code"] == ours)]["value"].item() == 0.25


@pytest.mark.parametrize(
    "foreign", ["a,b\n1,2\n", "hello", ",".join([*COLUMNS, "more"]) + "\n", "\n", "\xff\xfe"]
)
def test_a_foreign_file_is_refused_and_left_alone(path, foreign):
    path.write_bytes(foreign.encode("latin-1"))
    with pytest.raises(FileFormatError, match="not a results file of this version"):
        Store(path)
    assert path.read_bytes() == foreign.encode("latin-1")
