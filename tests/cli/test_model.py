"""``taxarbor show`` and ``export``."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from taxarbor import Taxonomy
from taxarbor.exchange import from_labels, from_linkage, to_dot, to_json, to_newick
from taxarbor.tree.edit_tree import drop_rows

FIRST = "120 rows, 6 clusters"
CODES = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture
def taxonomy(folder):
    return Taxonomy.load(folder / "model.taxarbor")


def test_plain_text_in_a_pipe(run, taxonomy):
    result = run("show", "model.taxarbor")
    assert result.stderr == ""
    assert result.stdout == f"{FIRST}\n{taxonomy.to_text()}\n"
    result = run("show", "model.taxarbor", "--depth", 1, "--top", 1)
    assert result.stdout == f"{FIRST}\n{taxonomy.to_text(1, 1)}\n"


def test_a_tree_on_a_terminal(run, taxonomy, terminal, monkeypatch):
    terminal()
    result = run("show", "model.taxarbor")
    first, *lines = CODES.sub("", result.stdout).splitlines()
    assert (first, lines[0]) == (FIRST, "node 0: 120 rows")
    assert len(lines) == taxonomy.tree.n_nodes
    assert lines[1].startswith("├── node 1: ")
    assert str(taxonomy.reasons(1)[0]) in lines[1]
    assert "\x1b[34mhigher" in result.stdout  # blue
    assert "\x1b[31mitems at most" in result.stdout  # red
    assert all(f"c{label}" in result.stdout for label in range(6))
    lines = CODES.sub("", run("show", "model.taxarbor", "--depth", 1).stdout).splitlines()
    assert len(lines) == 4
    assert any(" clusters" in line for line in lines[1:])
    terminal(200)
    run("assess", "model.taxarbor", "customers.csv", "--refits", 2)
    text = CODES.sub("", run("show", "model.taxarbor").stdout)
    stability = Taxonomy.load("model.taxarbor").stability
    for node in range(1, taxonomy.tree.n_nodes):
        assert f"({stability.describe(node)})" in text
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in run("show", "model.taxarbor").stdout


def test_rules_that_choose_among_several_nodes(run, folder, terminal, three_nodes):
    three_nodes[0].save(folder / "m")
    terminal(200)
    assert "its rule chooses among 3 nodes" in CODES.sub("", run("show", "m").stdout)


def test_json_is_flat(run_json, taxonomy):
    tree = taxonomy.tree
    for depth in (None, 0, 1):
        options = [] if depth is None else ["--depth", depth]
        nodes = run_json("show", "model.taxarbor", *options)["nodes"]
        limit = tree.height if depth is None else depth
        expected = [node for node in range(tree.n_nodes) if tree.depth[node] <= limit]
        assert [node["node"] for node in nodes] == expected
        assert (nodes[0]["n_rows"], nodes[0]["leaf"]) == (120, -1)
        for node in nodes:
            number = node["node"]
            assert node["parent"] == tree.parents[number]
            assert node["n_rows"] == len(tree.rows(number))
            assert node["top_features"] == ", ".join(map(str, taxonomy.reasons(number, 3)))


def test_a_deep_tree(run, run_json, folder):
    n_rows = 3000
    merges = [[n_rows + i - 1 if i else 0, i + 1, i + 1.0, i + 2] for i in range(n_rows - 1)]
    from_linkage(merges).save(folder / "deep")
    assert run("show", "deep").stdout.count("\n") == 2 * n_rows
    assert len(run_json("show", "deep")["nodes"]) == 2 * n_rows - 1


def test_bad_models_are_refused(refuse, folder):
    data = (folder / "model.taxarbor").read_bytes()
    (folder / "half").write_bytes(data[: len(data) // 2])
    for command in (["show"], ["show", "--clusters", 2], ["export", "--to", "json"]):
        for name in ("nowhere", "customers.csv", "half"):
            refuse(name, command[0], name, *command[1:])


def test_export_to_standard_output(run, taxonomy):
    formats = ("json", "newick", "dot", "csv")
    text = {kind: run("export", "model.taxarbor", "--to", kind).stdout for kind in formats}
    assert text["json"] == to_json(taxonomy) + "\n"
    assert text["newick"] == to_newick(taxonomy) + "\n"
    assert text["dot"] == to_dot(taxonomy)
    nodes = [*csv.DictReader(io.StringIO(text["csv"]))]
    assert [int(node["n_rows"]) for node in nodes] == taxonomy.tree.sizes.tolist()


def test_the_format_of_an_output(run, run_json, refuse, folder):
    for name, kind in (
        *(("t.json", "json"), ("t.nwk", "newick"), ("t.NEWICK", "newick")),
        *(("t.dot", "dot"), ("t.gv", "dot"), ("t.csv", "csv")),
    ):
        assert run("export", "model.taxarbor", "-o", name).stdout == f"{kind} -> {name}\n"
        text = (folder / name).read_text(encoding="utf-8")
        assert text == run("export", "model.taxarbor", "--to", kind).stdout
        assert run_json("export", "model.taxarbor", "--to", kind)["text"] == text
    document = run_json("export", "model.taxarbor", "--to", "dot", "-o", "t.csv", "--force")
    assert (document["format"], document["output"]) == ("dot", "t.csv")
    refuse("--to", "export", "model.taxarbor")
    refuse("--to", "export", "model.taxarbor", "-o", "t.xyz")
    refuse("--to", "export", "model.taxarbor", "--to", "xml")
    refuse("t.nwk", "export", "model.taxarbor", "-o", "t.nwk")
    refuse("leave it out", "export", "model.taxarbor", "--to", "dot", "-o", "-")


def test_facts_of_the_model(run, run_json, taxonomy, folder):
    model = run_json("show", "model.taxarbor")["model"]
    assert (model["n_rows"], model["n_features"], model["n_clusters"]) == (120, 4, 6)
    assert model["height"] == taxonomy.tree.height
    assert model["feature_names"] == list(taxonomy.feature_names)
    assert model["made_by"]["estimator"] == "Taxarbor"
    assert model["can_predict"] is True
    from_labels([0, 1, 0, 1]).save(folder / "m")
    model = run_json("show", "m")["model"]
    assert model["can_predict"] is False
    assert model["n_features"] is model["made_by"] is None
    assert run("show", "m").stdout.startswith("4 rows, 2 clusters\n")


def test_fewer_clusters(run, run_json, refuse, taxonomy):
    coarse, few = taxonomy.prune(3), ("--clusters", 3)
    assert run("show", "model.taxarbor", *few).stdout.endswith(f"{coarse.to_text()}\n")
    assert run_json("show", "model.taxarbor", *few)["model"]["n_clusters"] == 3
    result = run("export", "model.taxarbor", "--to", "newick", *few)
    assert result.stdout == to_newick(coarse) + "\n"
    document = run_json("predict", "model.taxarbor", "customers.csv", *few)
    assert (document["n_clusters"], document["labels"]) == (3, taxonomy.cut(3).tolist())
    for command in (["show"], ["export", "--to", "dot"], ["predict", "customers.csv"]):
        name, *options = command
        refuse("--clusters", name, "model.taxarbor", *options, "--clusters", 7)


def test_a_model_of_counts(run, run_json, taxonomy, folder):
    """As of rows that were read in blocks."""
    replace(taxonomy, tree=drop_rows(taxonomy.tree)).save(folder / "counts.taxarbor")
    for name, *options in (
        *(("show",), ("show", "--json"), ("show", "--clusters", "3")),
        *(("export", "--to", kind) for kind in ("newick", "dot", "csv")),
    ):
        result = run(name, "counts.taxarbor", *options)
        assert result.stderr == ""
        assert result.stdout == run(name, "model.taxarbor", *options).stdout
    assert json.loads(run("export", "counts.taxarbor", "--to", "json").stdout)["order"] is None
    nodes = run_json("explain", "counts.taxarbor", "customers.csv")["nodes"]
    assert nodes == run_json("explain", "model.taxarbor", "customers.csv")["nodes"]
    run("report", "counts.taxarbor", "customers.csv", "-o", "page.html")
    assert (folder / "page.html").stat().st_size > 10_000
