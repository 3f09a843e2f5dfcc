"""``taxarbor explain``."""

import numpy as np
import pytest

from taxarbor import Taxonomy
from taxarbor.exchange import from_labels
from taxarbor.explain import explain
from taxarbor.tables import read_table
from tests.cli.conftest import COLUMNS

EXPLAIN = ("explain", "model.taxarbor", "customers.csv")
ID = ("--id-column", "id")


@pytest.fixture
def explanation(folder):
    table = read_table(folder / "customers.csv", columns=COLUMNS)
    return explain(Taxonomy.load(folder / "model.taxarbor"), table.X, row_names=table.row_names)


def test_all_nodes(run, run_json, explanation):
    result = run(*EXPLAIN, *ID)
    assert result.stderr == ""
    _, _, *lines = result.stdout.splitlines()
    assert run(*EXPLAIN).stdout == result.stdout  # the column of ids is detected
    nodes = [explanation.node(node, n_top=2, n_examples=2) for node in range(11)]
    assert run_json(*EXPLAIN, *ID, "--top", 2) == {"nodes": nodes, "notes": []}
    assert len(lines) == len(nodes) == 11
    for node, line in zip(nodes, lines, strict=True):
        assert node["name"] in line
        assert node["typical"][0]["name"] in line
        assert node["borderline"][0]["name"] in line
        assert all(one["words"] in line for one in node["distinctive_features"])


def test_a_node(run, run_json, explanation):
    result = run(*EXPLAIN, *ID, "--node", "1")
    node = explanation.node(1)
    assert result.stdout.startswith(f"node 1: {node['name']}, {node['n_rows']} rows\n")
    for feature in (*node["features"], *node["distinctive_features"][:5]):
        assert feature["words"] in result.stdout
    for kind in ("typical", "extreme", "borderline"):
        assert f"{kind.capitalize()} rows:" in result.stdout
        assert node[kind][0]["name"] in result.stdout
    document = run_json(*EXPLAIN, *ID, "--node", "1")
    assert document == explanation.node(1, n_top=5) | {"notes": []}


def test_a_cluster_is_a_node(run, run_json, explanation):
    leaf = int(explanation.taxonomy.tree.leaves[2])
    assert run_json(*EXPLAIN, "--node", "c2")["node"] == leaf
    assert run_json(*EXPLAIN, "--node", str(leaf))["cluster"] == 2
    assert f"node {leaf}, c2: " in run(*EXPLAIN, "--node", "C2").stdout
    assert "node 0: all rows" in run(*EXPLAIN, "--node", "0").stdout


def test_a_row_by_name_or_number(run, run_json, explanation):
    for row in ("C007", "7"):
        document = run_json(*EXPLAIN, *ID, "--row", row)
        cluster = explanation.taxonomy.tree.labels[7]
        expected = {"row": 7, "name": "C007", "cluster": cluster, "notes": []}
        assert document == expected | {"steps": explanation.rows(7).to_dict("records")}
        result = run(*EXPLAIN, *ID, "--row", row)
        assert result.stdout.startswith(f"C007 is in c{cluster}\n")
        assert all(step["child_name"] in result.stdout for step in document["steps"])


def test_rows_in_another_order_are_noted(run_json, folder):
    header, *lines = (folder / "customers.csv").read_text(encoding="utf-8").splitlines()
    mixed = [lines[i] for i in np.random.default_rng(0).permutation(len(lines))]
    (folder / "mixed.csv").write_text("\n".join([header, *mixed]), encoding="utf-8")
    for command in (["explain"], ["report", "-o", "r.html"]):
        document = run_json(command[0], "model.taxarbor", "mixed.csv", *command[1:])
        assert "order" in document["notes"][0]


def test_names_are_no_markup(run, edit, terminal):
    edit("odd.csv", *((f"C{row:03d}", f"[red]{row}[/blue]") for row in range(120)))
    terminal(250)
    for options in ((), ("--node", "c0"), ("--row", "3")):
        assert "[/blue]" in run("explain", "model.taxarbor", "odd.csv", *ID, *options).stdout


def test_a_tree_without_rules(run, folder):
    from_labels(np.arange(120) % 4).save(folder / "m")
    read_table(folder / "customers.csv", columns=COLUMNS).X.to_csv("numbers.csv", index=False)
    assert "spend" in run("explain", "m", "numbers.csv").stdout


def test_bad_input(refuse, folder):
    few = "\n".join((folder / "customers.csv").read_text(encoding="utf-8").splitlines()[:9])
    (folder / "few.csv").write_text(few, encoding="utf-8")
    refuse("8", "explain", "model.taxarbor", "few.csv")
    for node in ("11", "c6", "-1", "", "c"):
        refuse("--node must be", *EXPLAIN, f"--node={node}")
    for row in ("120", "nobody"):
        refuse("0 to 119", *EXPLAIN, *ID, "--row", row)
    refuse("30 rows", *EXPLAIN, "--id-column", "class", "--row", "senior")
    refuse("--node", *EXPLAIN, "--node", "1", "--row", "1")
    refuse("nowhere.csv: No such file", "explain", "model.taxarbor", "nowhere.csv")
