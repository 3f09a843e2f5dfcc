"""``taxarbor show`` and ``export``."""

import csv
import io
import re

import numpy as np
import pytest

from taxarbor import Taxonomy
from taxarbor.exchange import (
    from_labels,
    from_linkage,
    to_dot,
    to_json,
    to_linkage,
    to_newick,
)

KINDS = ("json", "newick", "dot", "linkage", "csv")
FIRST = "120 rows, 4 features, 6 clusters, made by Taxarbor"
CODES = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture
def taxonomy(folder):
    return Taxonomy.load(folder / "model.taxarbor")


def test_plain_text_in_a_pipe(run, taxonomy):
    result = run("show", "model.taxarbor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{FIRST}\n{taxonomy.to_text()}\n"
    result = run("show", "model.taxarbor", "--depth", 1, "--top", 1)
    assert result.stdout == f"{FIRST}\n{taxonomy.to_text(1, 1)}\n"


def test_a_tree_on_a_terminal(run, taxonomy, terminal, monkeypatch):
    terminal()
    result = run("show", "model.taxarbor")
    first, *lines = CODES.sub("", result.stdout).splitlines()
    assert (first, lines[0]) == (FIRST, "all  120 rows")
    assert len(lines) == taxonomy.tree.n_nodes
    assert lines[1].startswith(f"├── {taxonomy.reasons(1)[0]}")
    assert "\x1b[34mhigher" in result.stdout  # blue
    assert "\x1b[31mitems at most" in result.stdout  # red
    assert all(f"c{label}" in result.stdout for label in range(6))
    lines = CODES.sub("", run("show", "model.taxarbor", "--depth", 1).stdout).splitlines()
    assert len(lines) == 4
    assert any(line.endswith(" clusters") for line in lines)
    terminal(200)
    assert run("assess", "model.taxarbor", "customers.csv", "--refits", 2).exit_code == 0
    result = run("show", "model.taxarbor").stdout
    assert CODES.sub("", result).count("came back in") == taxonomy.tree.n_nodes - 1
    assert "\x1b[2m  (came back in 2 of 2 refits)" in result
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in run("show", "model.taxarbor").stdout


def test_json_is_flat(run_json, taxonomy):
    for depth in (None, 0, 1):
        options = [] if depth is None else ["--depth", depth]
        found = run_json("show", "model.taxarbor", *options)["nodes"]
        nodes, root = {node["node"]: node for node in found}, found[0]
        most = taxonomy.tree.height if depth is None else depth
        assert list(nodes) == [
            n for n in range(taxonomy.tree.n_nodes) if taxonomy.tree.depth[n] <= most
        ]
        assert (root["n_rows"], root["n_clusters"], root["cluster"]) == (120, 6, None)
        for number, node in nodes.items():
            assert node["parent"] == taxonomy.tree.parent(number)
            assert node["children"] == list(taxonomy.tree.children(number))
            assert node["n_rows"] == len(taxonomy.tree.rows(number))
            reasons = [reason.name for reason in taxonomy.reasons(number)]
            assert [reason["feature"] for reason in node["reasons"]] == reasons


def test_a_deep_tree(run, run_json, folder):
    n_rows = 3000
    merges = [[n_rows + i - 1 if i else 0, i + 1, i + 1.0, i + 2] for i in range(n_rows - 1)]
    from_linkage(merges).save(folder / "deep")
    result = run("show", "deep")
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 2 * n_rows
    assert len(run_json("show", "deep")["nodes"]) == 2 * n_rows - 1


def test_bad_models_are_refused_in_one_line(refuse, folder):
    data = (folder / "model.taxarbor").read_bytes()
    (folder / "half").write_bytes(data[: len(data) // 2])
    for command in (["show"], ["show", "--clusters", 2], ["export", "--to", "json"]):
        refuse("nowhere: No such file", command[0], "nowhere", *command[1:])
        refuse("not a taxarbor taxonomy", command[0], "customers.csv", *command[1:])
        refuse("damaged", command[0], "half", *command[1:])


def test_export_of_each_kind_on_standard_output(run, taxonomy):
    text = {kind: run("export", "model.taxarbor", "--to", kind).stdout for kind in KINDS}
    assert text["json"] == to_json(taxonomy) + "\n"
    assert text["newick"] == to_newick(taxonomy) + "\n"
    assert text["dot"] == to_dot(taxonomy)
    lines = list(csv.reader(io.StringIO(text["linkage"])))
    assert lines[0] == ["a", "b", "height", "size"]
    assert np.array_equal(np.array(lines[1:], dtype=float), to_linkage(taxonomy))
    nodes = list(csv.DictReader(io.StringIO(text["csv"])))
    assert [int(node["n_rows"]) for node in nodes] == taxonomy.tree.sizes.tolist()


def test_the_name_tells_the_kind(run, run_json, folder):
    for name, kind in (
        *(("t.json", "json"), ("t.nwk", "newick"), ("t.NEWICK", "newick")),
        *(("t.dot", "dot"), ("t.gv", "dot"), ("t.csv", "csv")),
    ):
        result = run("export", "model.taxarbor", "-o", name)
        assert (result.exit_code, result.stdout) == (0, f"{kind} -> {name}\n")
        text = (folder / name).read_text(encoding="utf-8")
        assert text == run("export", "model.taxarbor", "--to", kind).stdout
        assert run_json("export", "model.taxarbor", "--to", kind)["text"] == text


def test_to_wins_over_the_name_and_a_dash_is_standard_output(run, run_json, folder):
    result = run_json("export", "model.taxarbor", "--to", "linkage", "-o", "t.csv")
    assert result == {"format": "linkage", "output": "t.csv"}
    assert (folder / "t.csv").read_text(encoding="utf-8").startswith("a,b,height,size\n")
    for command in (
        ("export", "model.taxarbor", "--to", "dot"),
        ("predict", "model.taxarbor", "customers.csv"),
    ):
        result = run(*command, "-o", "-")
        assert result.stdout == run(*command).stdout != ""
    assert not (folder / "-").exists()


def test_export_refuses_in_one_line(refuse, folder):
    (folder / "t.nwk").write_text("mine", encoding="utf-8")
    refuse("--to", "export", "model.taxarbor")
    refuse("t.xyz does not tell", "export", "model.taxarbor", "-o", "t.xyz")
    refuse("there already", "export", "model.taxarbor", "-o", "t.nwk")
    from_labels([0, 0]).save(folder / "one")
    refuse("a linkage needs two leaves at least", "export", "one", "--to", "linkage")
    refuse("Invalid value for '--to'", "export", "model.taxarbor", "--to", "xml")


def test_show_has_the_facts_of_the_model(run, run_json, taxonomy, folder):
    result = run_json("show", "model.taxarbor")["model"]
    assert (result["n_rows"], result["n_features"], result["n_clusters"]) == (120, 4, 6)
    assert result["height"] == taxonomy.tree.height
    assert result["feature_names"] == list(taxonomy.feature_names)
    assert result["made_by"]["estimator"] == "Taxarbor"
    assert result["places_new_rows"] is True
    assert result["median_features_per_split"] >= 1.0
    from_labels([0, 1, 0, 1]).save(folder / "m")
    result = run_json("show", "m")["model"]
    assert result["places_new_rows"] is False
    assert result["n_features"] is result["made_by"] is None
    assert result["median_features_per_split"] is None
    assert run("show", "m").stdout.startswith("4 rows, 2 clusters\n")


def test_fewer_clusters(run, run_json, refuse, taxonomy):
    coarse, few = taxonomy.prune(3), ("--clusters", 3)
    assert run("show", "model.taxarbor", *few).stdout.endswith(f"{coarse.to_text()}\n")
    assert run_json("show", "model.taxarbor", *few)["model"]["n_clusters"] == 3
    result = run("export", "model.taxarbor", "--to", "newick", *few)
    assert result.stdout == to_newick(coarse) + "\n"
    result = run_json("predict", "model.taxarbor", "customers.csv", *few)
    assert (result["n_clusters"], result["labels"]) == (3, taxonomy.cut(3).tolist())
    for command in (["show"], ["export", "--to", "dot"]):
        name, *options = command
        most = "--clusters must be at most 6"
        refuse(most, name, "model.taxarbor", *options, "--clusters", 7)
        refuse("Invalid value for '--clusters'", name, "model.taxarbor", "--clusters", 0)
