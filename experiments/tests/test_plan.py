import math
from collections import Counter

import pytest

from taxarbor.bench import METHODS, PARTS, Setup
from taxarbor.bench._plan import (
    SPARSE,
    SWEPT,
    full_strength,
    plan_sparsity,
    plan_sweep,
    plan_table,
    plan_tree,
    sweep_datasets,
    sweep_shapes,
    tree_dataset,
)
from taxarbor.bench._published import STAND_INS

GRID_SIZES = {"HMMC": 25, "MMC": 5, "HMMC-G": 5, "HMMC-E": 5, "HMMC-1": 5, "HMMC-2": 5}
DETERMINISTIC = {"SL", "AL", "CL", "Ward"}
WITHOUT_DEFAULTS = {"SC", "SL", "AL", "CL", "Ward", "BKM", "HSC", "HSC-D"}  # the grid is that


@pytest.fixture
def folder(tmp_path, made):
    for name in ("one", "two"):
        made.data(tmp_path, name)
    return tmp_path


def test_the_table_has_every_method_with_its_grid_and_defaults(folder):
    jobs = list(plan_table(Setup(folder, n_seeds=3)))
    assert len(set(jobs)) == len(jobs)
    assert {(job.n_clusters, job.branching, job.scaling, job.max_rows) for job in jobs} == {
        (4, 2, "none", 0)
    }
    for dataset in ("one", "two"):
        here = [job for job in jobs if job.dataset == dataset]
        for name in METHODS:
            mine = [job for job in here if job.method == name]
            n_settings = GRID_SIZES.get(name, 1) + (name not in WITHOUT_DEFAULTS)
            n_seeds = 1 if name in DETERMINISTIC else 3
            assert len({job.settings for job in mine}) == n_settings
            assert Counter(job.seed for job in mine) == dict.fromkeys(
                range(n_seeds), n_settings
            )
            assert any(job.settings == "{}" for job in mine)


def test_a_quick_setup_has_fewer_settings(folder):
    setup = Setup.quick(folder, "unit")
    jobs = list(plan_table(setup))
    assert {(job.seed, job.max_rows, job.scaling) for job in jobs} == {(0, 1000, "unit")}
    count = Counter(job.method for job in jobs if job.dataset == "one")
    assert (count["HMMC"], count["HMMC-E"], count["KM"], count["AL"]) == (10, 4, 2, 1)


def test_the_number_of_clusters_is_that_of_classes_left(tmp_path, made):
    made.data(tmp_path, "some")
    setup = Setup(tmp_path, max_rows=12)  # every second row: two classes of four
    assert {job.n_clusters for job in plan_table(setup)} == {2}


def test_sweeps_share_the_tables_jobs(folder):
    setup = Setup(folder, n_seeds=3)
    table, sweep = set(plan_table(setup)), list(plan_sweep(setup))
    assert len(set(sweep)) == len(sweep)
    shared = {job for job in sweep if (job.n_clusters, job.branching) == (4, 2)}
    assert shared
    assert shared < table
    assert {job.method for job in shared} == set(SWEPT)
    assert {(job.n_clusters, job.branching) for job in sweep} == {
        *((n, 2) for n in (4, 6, 8)),
        *((4, n) for n in (3, 4, 5)),
    }
    for name in SWEPT:
        seeds = {job.seed for job in sweep if job.method == name}
        assert seeds == ({0} if name in {"SC", "HSC", "HSC-D"} else {0, 1})


def test_only_methods_that_branch_have_more_children(folder):
    sweep = list(plan_sweep(Setup(folder)))
    wide = {job.method for job in sweep if job.branching > 2}
    assert wide == {"HKM", "HSC", "HKM-D", "HSC-D", "HMMC"}
    for method in METHODS.values():
        n_shapes = len(set(sweep_shapes(method, 10)))
        assert n_shapes == (6 if method.branches else 3)


def test_multiples_are_rounded_down():
    assert [n for n, _ in sweep_shapes(METHODS["KM"], 15)] == [15, 22, 30]
    assert all(n == math.floor(n) for n, _ in sweep_shapes(METHODS["KM"], 7))


@pytest.mark.parametrize("strengths", [(1.0,), (1e-4, 1e-2, 1.0), (1e-4, 1e-3, 1e-2, 0.1, 1.0)])
def test_sparsity_and_tree_are_parts_of_the_table(folder, strengths):
    setup = Setup(folder, n_seeds=2, strengths=strengths)
    table = set(plan_table(setup))
    sparse, tree = list(plan_sparsity(setup)), list(plan_tree(setup))
    assert set(sparse) <= table
    assert set(tree) <= table
    assert len(sparse) == 2 * len(SPARSE) * 2  # data sets, variants, seeds
    assert len(tree) == len(strengths) ** 2
    assert {job.seed for job in tree} == {0}


@pytest.mark.parametrize("name", SPARSE)
def test_full_strength(name):
    settings = full_strength(METHODS[name])
    assert {settings[key] for key in ("alpha", "beta") if key in settings} == {1.0}
    assert settings in METHODS[name].grid


@pytest.mark.parametrize("setup", [Setup(None), Setup.quick(None)])
def test_no_part_asks_twice(setup):
    for plan in PARTS.values():
        jobs = list(plan(setup))
        assert len(set(jobs)) == len(jobs)
        assert {job.dataset for job in jobs} == {"animals"}


def test_stand_ins_come_first_and_others_stay_out(tmp_path, made):
    for name in ("zoo", "awa_pca", "awa_attr", "tiny_vehicle15"):
        made.data(tmp_path, name, X_sift=made.blobs()[0])
    setup = Setup(tmp_path)
    found = setup.datasets()
    assert found[:3] == ["awa_attr", "awa_pca", "tiny_vehicle15/X_sift"]
    assert set(found[3:]) == {"awa_attr/X_sift", "awa_pca/X_sift", "tiny_vehicle15"}
    assert sweep_datasets(setup) == found[:3]
    assert set(found[:3]) < set(STAND_INS)


def test_without_stand_ins_all_data_is_used(folder):
    assert Setup(folder).datasets() == ["one", "two"] == sweep_datasets(Setup(folder))


def test_the_tree_is_of_data_with_named_features_if_any(tmp_path, made):
    made.data(tmp_path, "one")
    assert tree_dataset(Setup(tmp_path)) == "one"
    made.data(tmp_path, "two", feature_names=made.blobs()[0][0].astype(str))
    assert tree_dataset(Setup(tmp_path)) == "two"
