"""``taxarbor assess``."""

import json
from dataclasses import replace

import numpy as np

from taxarbor import Taxarbor, Taxonomy

ASSESS = ("assess", "model.taxarbor", "customers.csv", "--refits", "4")


def test_assess_suggests_a_number_of_clusters(run, folder):
    done = run(*ASSESS)
    assert done.exit_code == 0, done.output
    assert "came back in 4 of 4 refits" in done.output
    assert "The finest stable cut has 4 clusters." in done.output
    assert "% of the rows left out go where the tree fitted with them puts them." in done.output
    taxonomy = Taxonomy.load(folder / "model.taxarbor")
    assert taxonomy.stability.n_refits == 4
    assert taxonomy.feature_names == ["age", "spend", "visits", "items"]
    assert "--clusters 4" in done.output
    small = taxonomy.prune(4)
    assert small.tree.n_leaves == small.stability.suggested == 4


def test_json_and_another_file(run, folder):
    before = (folder / "model.taxarbor").read_bytes()
    done = run(*ASSESS, "-o", "new.taxarbor", "--json", "--jobs", "2")
    result = json.loads(done.output)
    assert (folder / "model.taxarbor").read_bytes() == before
    trust = Taxonomy.load(folder / "new.taxarbor").stability
    assert result["suggested"] == trust.suggested == 4
    assert [node["n_recovered"] for node in result["nodes"]] == trust.n_recovered.tolist()
    assert result["left_out"] == trust.left_out[0]
    assert [node["left_out"] for node in result["nodes"]] == trust.left_out.tolist()
    assert result["curve"]["stability"] == trust.curve.stability.tolist()
    assert result["rows"] == trust.rows.tolist()
    again = run(*ASSESS, "-o", "new.taxarbor")
    assert again.exit_code == 2
    assert "--force" in again.output


def test_fitted_by_the_command(run, folder):
    """With scaled columns, of another method, and cut since."""
    fit = ("fit", "customers.csv", "-o", "m.taxarbor", "-k", "6", "--method", "hmmc")
    assert run(*fit, "--scale", "standard").exit_code == 0
    Taxonomy.load(folder / "m.taxarbor").prune(4).save(folder / "cut.taxarbor")
    done = run("assess", "cut.taxarbor", "customers.csv", "--refits", "3", "--json")
    assert json.loads(done.output)["suggested"] == 4
    assert Taxonomy.load(folder / "cut.taxarbor").stability.n_refits == 3


def test_noise_is_told(run, folder):
    X = np.random.default_rng(0).standard_normal((80, 3))
    np.save(folder / "noise.npy", X)
    Taxarbor(3, random_state=0).fit(X).taxonomy_.save(folder / "noise.taxarbor")
    done = run("assess", "noise.taxarbor", "noise.npy", "--refits", "4")
    assert "No clusters found" in done.output
    assert "there may be none, or too few rows to tell" in done.output


def test_a_model_that_does_not_say_how_it_was_fitted(run, folder):
    taxonomy = Taxonomy.load(folder / "model.taxarbor")
    replace(taxonomy, made_by=None).save(folder / "model.taxarbor")
    done = run(*ASSESS)
    assert done.exit_code == 2
    assert "does not say how it was fitted" in done.output
