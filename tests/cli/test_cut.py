"""``taxarbor cut``."""

import pytest

from taxarbor import Hierarchy


@pytest.fixture
def tree(folder):
    return Hierarchy.load(folder / "model.taxarbor")


def test_labels_on_standard_output(run, tree):
    told = run("cut", "model.taxarbor", "-k", 3)
    assert (told.exit_code, told.stderr) == (0, "")
    labels = tree.cut(3).tolist()
    assert told.stdout.splitlines() == [
        "row,cluster",
        *(f"{row},{label}" for row, label in enumerate(labels)),
    ]


def test_by_depth_with_names(run, folder, tree):
    names = ("--data", "customers.csv", "--id-column", "id")
    told = run("cut", "model.taxarbor", "--depth", 1, *names, "-o", "labels.csv")
    assert (told.exit_code, told.stdout) == (0, "2 groups -> labels.csv\n")
    lines = (folder / "labels.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["id,cluster", f"C000,{tree.cut(depth=1)[0]}"]


def test_a_smaller_model(run, folder, tree):
    told = run("cut", "model.taxarbor", "-k", 3, "-o", "coarse.taxarbor")
    assert (told.exit_code, told.stdout) == (0, "3 groups -> coarse.taxarbor\n")
    coarse = Hierarchy.load(folder / "coarse.taxarbor")
    assert (coarse.labels == tree.cut(3)).all()
    assert coarse.feature_names == tree.feature_names


def test_a_dash_is_standard_output(run, folder):
    told = run("cut", "model.taxarbor", "-k", 3, "-o", "-")
    assert told.stdout == run("cut", "model.taxarbor", "-k", 3).stdout
    assert not (folder / "-").exists()


def test_json(run_json, folder, tree):
    told = run_json("cut", "model.taxarbor", "-k", 2, "--data", "customers.csv")
    assert told["labels"] == tree.cut(2).tolist()
    assert (told["n_groups"], told["rows"], told["output"]) == (2, None, None)
    told = run_json("cut", "model.taxarbor", "-k", 2, "-o", "coarse.taxarbor")
    assert told["output"] == "coarse.taxarbor"
    assert (folder / "coarse.taxarbor").exists()


def test_bad_input_is_one_line(refused):
    told = "-k must be between 1 and the number of leaves, 6, got 7"
    refused(f"taxarbor: {told}", "cut", "model.taxarbor", "-k", 7)
    refused("--depth must be 0 or more", "cut", "model.taxarbor", "--depth", -1)
    refused("either -k or --depth", "cut", "model.taxarbor")
    refused("either -k or --depth", "cut", "model.taxarbor", "-k", 2, "--depth", 1)
    refused("give both", "cut", "model.taxarbor", "-k", 2, "--id-column", "id")
    refused("labels are written as", "cut", "model.taxarbor", "-k", 2, "-o", "x.npy")
    refused("read and written", "cut", "model.taxarbor", "-k", 2, "-o", "model.taxarbor")
    refused("No such file", "cut", "nowhere", "-k", 2)
