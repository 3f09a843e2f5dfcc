from collections import Counter

import pytest

from experiments.data import SCALINGS, STAND_INS, list_datasets
from experiments.methods import METHODS
from experiments.plan import (
    SCALED,
    SPARSE,
    SWEPT,
    Setup,
    full_strength,
    plan_results,
    plan_scalings,
    plan_sparsity,
    plan_sweep,
    plan_table,
    sweep_shapes,
)

GRID_SIZES = {"HMMC": 25, "MMC": 5, "HMMC-G": 5, "HMMC-E": 5, "HMMC-1": 5, "HMMC-2": 5}
DETERMINISTIC = {"SL", "AL", "CL", "Ward"}
BOTH = {"KM", "MMC", "HKM", "HKM-D"}  # of others the grid is the default, or there is none


@pytest.fixture
def folder(tmp_path, made):
    for name in ("one", "two"):
        made.data(tmp_path, name)
    return tmp_path


def test_the_table_has_every_method_with_its_grid_and_defaults(folder):
    jobs = list(plan_table(Setup(folder, n_seeds=3)))
    assert len(set(jobs)) == len(jobs)
    shapes = {(job.n_clusters, job.branching, job.scaling, job.max_rows) for job in jobs}
    assert shapes == {(4, 2, "none", 0)}
    for dataset in ("one", "two"):
        for name in METHODS:
            own_jobs = [job for job in jobs if (job.dataset, job.method) == (dataset, name)]
            n_settings = GRID_SIZES.get(name, 1) + (name in BOTH)
            n_seeds = 1 if name in DETERMINISTIC else 3
            assert len({job.settings for job in own_jobs}) == n_settings
            seeds = Counter(job.seed for job in own_jobs)
            assert seeds == dict.fromkeys(range(n_seeds), n_settings)
            has_default = any(job.settings == "{}" for job in own_jobs)
            assert has_default == (not name.startswith("HMMC"))


def test_a_quick_setup_has_fewer_settings(folder):
    jobs = list(plan_table(Setup.quick(folder)))
    assert {(job.seed, job.max_rows, job.scaling) for job in jobs} == {(0, 1000, "none")}
    count = Counter(job.method for job in jobs if job.dataset == "one")
    assert (count["HMMC"], count["HMMC-E"], count["KM"], count["AL"]) == (9, 3, 2, 1)
    few = Setup(folder, max_rows=1)  # as many clusters as the rows that are left have classes
    assert {job.n_clusters for job in plan_table(few)} == {1}


def test_sweeps_share_the_tables_jobs(folder):
    setup = Setup(folder, n_seeds=3)
    table, sweep = set(plan_table(setup)), list(plan_sweep(setup))
    assert len(set(sweep)) == len(sweep)
    shared = {job for job in sweep if (job.n_clusters, job.branching) == (4, 2)}
    assert shared < table
    assert {job.method for job in shared} == set(SWEPT)
    assert {(job.n_clusters, job.branching) for job in sweep} == {
        *((n, 2) for n in (4, 6, 8)),
        *((4, n) for n in (3, 4, 5)),
    }
    for name in SWEPT:
        seeds = {job.seed for job in sweep if job.method == name}
        assert seeds == ({0} if name in {"SC", "HSC", "HSC-D"} else {0, 1})
    wide = {job.method for job in sweep if job.branching > 2}
    assert wide == {"HKM", "HSC", "HKM-D", "HSC-D", "HMMC"}
    for method in METHODS.values():
        assert len(set(sweep_shapes(method, 10))) == (6 if method.branches else 3)
    assert [n for n, _ in sweep_shapes(METHODS["KM"], 15)] == [15, 22, 30]  # rounded down


def test_sparsity_is_a_part_of_the_table(folder):
    for strengths in ((1.0,), (1e-4, 1e-2, 1.0), (1e-4, 1e-3, 1e-2, 0.1, 1.0)):
        setup = Setup(folder, n_seeds=2, strengths=strengths)
        sparse = list(plan_sparsity(setup))
        assert set(sparse) <= set(plan_table(setup))
        assert len(sparse) == 2 * len(SPARSE) * 2  # data sets, variants, seeds
    for name in SPARSE:
        settings = full_strength(METHODS[name])
        assert {settings[key] for key in ("alpha", "beta") if key in settings} == {1.0}
        assert settings in METHODS[name].grid


def test_the_other_scalings(folder):
    setup = Setup(folder, n_seeds=2, strengths=(1.0,))
    jobs = list(plan_scalings(setup))
    assert {job.scaling for job in jobs} == set(SCALINGS) - {"none"}
    assert {job.method for job in jobs} == set(SCALED)
    assert not set(jobs) & set(plan_table(setup))


def test_all_is_asked_for_once():
    for setup in (Setup(None), Setup.quick(None)):
        jobs = list(plan_results(setup))
        assert len(set(jobs)) == len(jobs)
        assert {job.dataset for job in jobs} == {"animals"}
        parts = (plan_table, plan_scalings, plan_sweep, plan_sparsity)
        assert set(jobs) == {job for part in parts for job in part(setup)}


def test_stand_ins_come_first_and_others_stay_out(tmp_path, folder, made):
    setup = Setup(folder)
    assert setup.datasets() == ["one", "two"] == setup.stand_ins()
    assert setup.tree_dataset() == "one"
    made.data(folder, "two", feature_names=made.blobs()[0][0].astype(str))
    assert Setup(folder, n_seeds=1, max_rows=20).tree_dataset() == "two"  # features have names
    for name in ("awa_pca", "awa_attr", "tiny_vehicle15"):
        made.data(tmp_path, name, X_sift=made.blobs()[0])
    list_datasets.cache_clear()
    datasets = Setup(tmp_path).datasets()
    assert datasets[:3] == ["awa_attr", "awa_pca", "tiny_vehicle15/X_sift"]
    assert set(datasets[3:]) == {"awa_attr/X_sift", "awa_pca/X_sift", "tiny_vehicle15"}
    assert Setup(tmp_path).stand_ins() == datasets[:3]
    assert set(datasets[:3]) < set(STAND_INS)
