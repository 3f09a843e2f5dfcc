"""``taxarbor info``."""

import os
import platform

import joblib
import numpy as np
import sklearn

import taxarbor
from taxarbor import Hierarchy


def test_a_model(run, run_json, folder):
    tree = Hierarchy.load(folder / "model.taxarbor")
    told = run_json("info", "model.taxarbor")
    assert told["model"] == "model.taxarbor"
    assert (told["n_rows"], told["n_features"], told["n_groups"]) == (120, 4, 6)
    assert told["height"] == tree.height
    assert told["feature_names"] == list(tree.feature_names)
    assert told["format_version"] >= 3
    assert told["places_new_rows"] is True
    assert told["mean_fidelity"] == np.nanmean(tree.fidelity)
    assert told["median_features_per_split"] >= 1.0
    lines = run("info", "model.taxarbor").stdout.splitlines()
    assert "rows                120" in lines
    assert "places new rows     yes" in lines


def test_a_tree_of_labels_alone(run, run_json, folder):
    Hierarchy.from_labels([0, 1, 0, 1]).save(folder / "m")
    told = run_json("info", "m")
    assert told["places_new_rows"] is False
    assert told["n_features"] is told["mean_fidelity"] is None
    assert told["median_features_per_split"] is None
    assert "features            not known" in run("info", "m").stdout


def test_what_is_installed(run, run_json):
    told = run_json("info")
    assert told["taxarbor"] == taxarbor.__version__
    assert told["python"] == platform.python_version()
    assert told["numpy"] == np.__version__
    assert told["scikit-learn"] == sklearn.__version__
    assert 1 <= told["processors"] == joblib.cpu_count() <= os.cpu_count()
    assert {"io", "plot", "cli"} <= told["extras"].keys()
    assert told["extras"]["cli"].keys() == {"typer", "rich"}
    lines = run("info").stdout.splitlines()
    assert f"taxarbor      {taxarbor.__version__}" in lines
    assert not any("missing" in line for line in lines)


def test_what_is_missing(run, monkeypatch):
    monkeypatch.setattr("taxarbor.cli._info._version", lambda name: None)
    assert "matplotlib missing: pip install 'taxarbor[plot]'" in run("info").stdout


def test_bad_input_is_one_line(refused):
    refused("No such file", "info", "nowhere")
    refused("not a taxarbor hierarchy", "info", "customers.csv")
