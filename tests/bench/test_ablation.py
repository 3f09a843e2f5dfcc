import json
from collections import Counter
from inspect import signature

import pytest

from taxarbor import HMMC
from taxarbor.bench import METHODS, PARTS, Setup
from taxarbor.bench._ablation import (
    GROUPS,
    OURS,
    RIVALS,
    all_datasets,
    n_clusters_of,
    plan_defaults,
)
from taxarbor.bench._methods import find_method
from taxarbor.refine import Coordinates, fit_leaves
from taxarbor.split import LiftedSplitter

SEVEN = ["Ward", "AL", "HKM", "HKM-D", "HKM-D, 10 starts", "BKM", "KM+Ward"]


@pytest.fixture
def folder(tmp_path, made):
    made.data(tmp_path, "one", X_other=made.blobs()[0])
    made.data(tmp_path, "awa_attr", feature_names=made.blobs()[0][0].astype(str))
    made.data(tmp_path, "tiny_vehicle15", X_sift=made.blobs()[0])
    return tmp_path


def test_all_data_and_the_other_rows_of_the_experiment(folder):
    found = all_datasets(Setup(folder))
    assert found == ["awa_attr", "one", "tiny_vehicle15", "tiny_vehicle15/X_sift"]
    assert all_datasets(Setup(None)) == ["animals"]


def test_rivals_and_ours():
    assert [row.told for row in RIVALS] == SEVEN
    assert all(find_method(row.method).family != "ours" for row in RIVALS)
    assert all(row.method == "HMMC" for row in OURS)
    assert OURS[0].settings == {}
    before = {"refine": False, "n_init": 1, "balance": 0.3, "alpha": 0.003, "beta": 0.003}
    assert OURS[2].settings == before


def test_each_group_begins_with_the_default_and_changes_it():
    told = [row.told for group in GROUPS for row in group.rows if "(default)" in row.told]
    assert told == [group.rows[0].told for group in GROUPS]
    for group in GROUPS:
        first, *others = group.rows
        assert (first.method, first.settings) == ("HMMC", {})
        assert len({row.told for row in group.rows}) == len(group.rows)
        assert all(row.settings for row in others)
    usual = signature(HMMC).parameters
    assert told[1] == f"{usual['n_init'].default} (default)"
    assert told[4] == f"balance {usual['balance'].default} (default)"


def test_no_variant_is_the_default_under_another_name():
    usual = {
        name: one.default
        for owner in (HMMC, fit_leaves, LiftedSplitter)
        for name, one in signature(owner).parameters.items()
        if name != "starts"
    }
    usual["n_coordinates"] = signature(Coordinates.of).parameters["size"].default
    for group in GROUPS:
        for row in group.rows[1:]:
            if row.method == "variant":
                ((name, value),) = row.settings.items()
                assert name == "starts" or usual[name] != value, row.told


def test_every_row_is_planned_once_for_each_seed(folder):
    setup = Setup(folder, n_seeds=3)
    jobs = list(plan_defaults(setup))
    assert len(set(jobs)) == len(jobs)
    assert {(job.branching, job.scaling, job.max_rows) for job in jobs} == {(2, "none", 0)}
    planned = Counter(
        (job.dataset, job.method, job.settings, job.n_clusters)
        for job in jobs
        if job.dataset == "one"
    )
    for row in (*RIVALS, *OURS, *(row for group in GROUPS for row in group.rows)):
        key = ("one", row.method, json.dumps(row.settings, sort_keys=True), 4)
        assert planned[key] == (3 if find_method(row.method).is_random else 1)
    read = {job.settings for job in jobs if "max_features" in job.settings}
    assert len(read) == 3
    assert {job.dataset for job in jobs if job.settings in read} == {"awa_attr"}


def test_leaves_are_chosen_for_fewer_and_more_clusters(folder):
    (group,) = (group for group in GROUPS if len(group.multiples) > 1)
    jobs = list(plan_defaults(Setup(folder, n_seeds=1)))
    for row in group.rows:
        settings = json.dumps(row.settings)
        found = {
            job.n_clusters
            for job in jobs
            if (job.method, job.settings) == (row.method, settings)
        }
        assert found == {2, 4, 8}
    assert n_clusters_of(Setup(folder, max_rows=12), "one", 0.5) == 2  # of two classes


def test_it_is_no_part_of_the_papers_experiment(folder):
    setup = Setup(folder, n_seeds=1, strengths=(1.0,))
    assert PARTS["defaults"] is plan_defaults
    rest = {job.method for part in PARTS if part != "defaults" for job in PARTS[part](setup)}
    assert rest == set(METHODS)
