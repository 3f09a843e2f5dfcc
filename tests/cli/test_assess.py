"""``taxarbor assess``."""

from dataclasses import replace

import numpy as np

from taxarbor import HMMC, TableEncoder, Taxarbor, Taxonomy
from taxarbor.tables import read_table
from tests.cli.conftest import COLUMNS

ASSESS = ("assess", "model.taxarbor", "customers.csv", "--refits", 4)


def test_a_number_of_clusters_is_suggested(run, folder):
    result = run(*ASSESS)
    taxonomy = Taxonomy.load(folder / "model.taxarbor")
    stability = taxonomy.stability
    assert stability.describe(1) in result.stdout
    assert stability.describe_left_out() in result.stdout
    assert "--clusters 4" in result.stdout
    assert (stability.n_refits, stability.suggested) == (4, 4)
    assert taxonomy.feature_names == ("age", "spend", "visits", "items")


def test_json_and_another_file(run_json, refuse, folder):
    before = (folder / "model.taxarbor").read_bytes()
    document = run_json(*ASSESS, "-o", "new.taxarbor", "--jobs", 2)
    assert (folder / "model.taxarbor").read_bytes() == before
    stability = Taxonomy.load(folder / "new.taxarbor").stability
    assert document["suggested"] == stability.suggested == 4
    for name in ("n_recovered", "n_separated", "is_stable"):
        assert [node[name] for node in document["nodes"]] == getattr(stability, name).tolist()
    assert document["left_out"] == stability.left_out[0]
    assert document["curve"]["stability"] == stability.curve.stability.tolist()
    refuse("--force", *ASSESS, "-o", "new.taxarbor")


def test_a_pruned_model_of_another_method(run_json, folder):
    X = read_table(folder / "customers.csv", columns=COLUMNS).X
    model = HMMC(6, encoder=TableEncoder(scale="standard"), random_state=0).fit(X)
    model.taxonomy_.prune(4).save(folder / "cut.taxarbor")
    assert run_json("assess", "cut.taxarbor", "customers.csv", "--refits", 3)["suggested"] == 4
    assert Taxonomy.load(folder / "cut.taxarbor").stability.n_refits == 3


def test_rows_without_clusters(run_json, folder):
    X = np.random.default_rng(0).standard_normal((80, 3))
    np.save(folder / "noise.npy", X)
    Taxarbor(3, random_state=0).fit(X).taxonomy_.save(folder / "noise.taxarbor")
    document = run_json("assess", "noise.taxarbor", "noise.npy", "--refits", 4)
    assert document["suggested"] == 1
    assert document["verdict"].startswith("no clusters")


def test_bad_input(refuse, folder):
    lines = (folder / "customers.csv").read_text(encoding="utf-8").splitlines()
    (folder / "few.csv").write_text("\n".join(lines[:9]), encoding="utf-8")
    refuse("8 rows", "assess", "model.taxarbor", "few.csv")
    taxonomy = Taxonomy.load(folder / "model.taxarbor")
    unknown = taxonomy.made_by | {"unknown": 1}
    for made_by, words in ((None, "parameters"), (unknown, "'unknown'")):
        replace(taxonomy, made_by=made_by).save(folder / "model.taxarbor")
        refuse(words, *ASSESS)
