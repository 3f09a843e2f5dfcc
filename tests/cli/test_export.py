"""``taxarbor export``."""

import csv
import io

import numpy as np
import pytest

from taxarbor import Hierarchy

KINDS = ("json", "newick", "dot", "linkage", "csv")


@pytest.fixture
def tree(folder):
    return Hierarchy.load(folder / "model.taxarbor")


def test_each_kind_on_standard_output(run, tree):
    text = {kind: run("export", "model.taxarbor", "--to", kind).stdout for kind in KINDS}
    assert (Hierarchy.from_json(text["json"]).labels == tree.labels).all()
    assert text["newick"] == tree.to_newick() + "\n"
    assert text["dot"] == tree.to_dot()
    lines = list(csv.reader(io.StringIO(text["linkage"])))
    assert lines[0] == ["a", "b", "height", "size"]
    assert np.array_equal(np.array(lines[1:], dtype=float), tree.to_linkage())
    nodes = list(csv.DictReader(io.StringIO(text["csv"])))
    assert [int(node["n_rows"]) for node in nodes] == tree.n_rows.tolist()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("t.json", "json"),
        ("t.nwk", "newick"),
        ("t.NEWICK", "newick"),
        ("t.dot", "dot"),
        ("t.gv", "dot"),
        ("t.csv", "csv"),
    ],
)
def test_the_name_tells_the_kind(run, run_json, folder, name, kind):
    told = run("export", "model.taxarbor", "-o", name)
    assert (told.exit_code, told.stdout) == (0, f"{kind} -> {name}\n")
    text = (folder / name).read_text(encoding="utf-8")
    assert text == run("export", "model.taxarbor", "--to", kind).stdout
    assert run_json("export", "model.taxarbor", "--to", kind)["text"] == text


def test_a_dash_is_standard_output(run, folder):
    told = run("export", "model.taxarbor", "--to", "dot", "-o", "-")
    assert told.stdout == run("export", "model.taxarbor", "--to", "dot").stdout
    assert not (folder / "-").exists()


def test_to_wins_over_the_name(run_json, folder):
    told = run_json("export", "model.taxarbor", "--to", "linkage", "-o", "t.csv")
    assert told == {"format": "linkage", "output": "t.csv"}
    assert (folder / "t.csv").read_text(encoding="utf-8").startswith("a,b,height,size\n")


def test_bad_input_is_one_line(refused, folder):
    (folder / "t.nwk").write_text("mine", encoding="utf-8")
    refused("--to", "export", "model.taxarbor")
    refused("t.xyz does not tell", "export", "model.taxarbor", "-o", "t.xyz")
    refused("there already", "export", "model.taxarbor", "-o", "t.nwk")
    refused("No such file", "export", "nowhere", "--to", "json")
    Hierarchy.from_labels([0, 0]).save(folder / "one")
    refused("two leaves at least", "export", "one", "--to", "linkage")


def test_an_unknown_kind(run):
    assert run("export", "model.taxarbor", "--to", "xml").exit_code == 2
