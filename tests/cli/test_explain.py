"""``taxarbor explain``."""

from types import SimpleNamespace

import numpy as np
import pytest

from taxarbor import Taxonomy
from taxarbor.cli._render import draw_tree, say_node
from taxarbor.exchange import from_labels
from taxarbor.explain import explain
from taxarbor.tables import read_table
from tests.cli.conftest import COLUMNS

BOTH = ("explain", "model.taxarbor", "customers.csv")
ID = ("--id-column", "id")


@pytest.fixture
def why(folder):
    table = read_table(folder / "customers.csv", columns=COLUMNS)
    taxonomy = Taxonomy.load(folder / "model.taxarbor")
    return explain(taxonomy, table.X, row_names=table.row_names)


def test_all_nodes(run, why):
    result = run(*BOTH, *ID)
    assert (result.exit_code, result.stderr) == (0, "")
    header, _, *lines = result.stdout.splitlines()
    columns = "node cluster rows name what stands out typical rows at the border"
    assert " ".join(header.split()) == columns
    assert run(*BOTH).stdout == result.stdout  # ids need not be pointed at
    assert len(lines) == 11
    for node, line in enumerate(lines):
        values = why.node(node, n_examples=3)
        assert values["name"] in line
        assert values["typical"][0]["name"] in line
        assert values["borderline"][0]["name"] in line
        assert all(one["words"] in line for one in values["standout"][:3])


def test_all_nodes_in_json(run_json, why):
    result = run_json(*BOTH, *ID, "--top", 2)
    assert result["notes"] == []
    assert result["nodes"] == why.to_dict(n_top=2, n_examples=2)["nodes"]


def test_a_node(run, run_json, why):
    result = run(*BOTH, *ID, "--node", "1")
    assert result.exit_code == 0
    values = why.node(1)
    assert result.stdout.startswith(f"node 1: {values['name']}\n")
    assert "mean of the rest" in result.stdout
    assert "within all rows\n" in result.stdout
    assert "divided by " in result.stdout
    assert "What stands out, against all rows:" in result.stdout
    for kind, measure in (
        ("typical", "distance"),
        ("extreme", "margin"),
        ("borderline", "margin"),
    ):
        first = values[kind][0]
        assert f": {first['name']} ({first[measure]:.2f})" in result.stdout
    assert run_json(*BOTH, *ID, "--node", "1") == why.node(1, n_top=5) | {"notes": []}


def test_a_cluster_is_a_node(run, run_json, why):
    leaf = int(why.taxonomy.tree.leaves[2])
    assert run_json(*BOTH, "--node", "c2")["node"] == leaf
    assert run_json(*BOTH, "--node", str(leaf))["cluster"] == 2
    assert f"node {leaf}, c2: " in run(*BOTH, "--node", "C2").stdout
    assert "node 0: all rows" in run(*BOTH, "--node", "0").stdout


def test_a_row_by_name_or_number(run, run_json, why):
    for row in ("C007", "7"):
        document = run_json(*BOTH, *ID, "--row", row)
        assert document == why.row(7) | {"notes": []}
        result = run(*BOTH, *ID, "--row", row)
        assert f"C007  c{document['cluster']}" in result.stdout
        assert all(step["child_name"] in result.stdout for step in document["steps"])
        assert "Margin: 1 is usual" in result.stdout


def test_new_rows(run, run_json, folder, why):
    lines = (folder / "customers.csv").read_text(encoding="utf-8").splitlines()
    (folder / "new.csv").write_text("\n".join([lines[0], *lines[5:8]]), encoding="utf-8")
    rows = run_json(*BOTH, *ID, "--new", "new.csv")["rows"]
    assert [row["name"] for row in rows] == ["C004", "C005", "C006"]
    for number, row in enumerate(rows):
        known = why.row(number + 4)
        assert row["cluster"] == known["cluster"]
        for step, expected in zip(row["steps"], known["steps"], strict=True):
            assert step["child"] == expected["child"]
            assert np.isclose(step["margin"], expected["margin"])
    result = run(*BOTH, *ID, "--new", "new.csv")
    assert all(name in result.stdout for name in ("C004", "C005", "C006"))
    assert rows[0]["steps"][0]["why"] in result.stdout


def test_what_stands_out_is_drawn(run, why, monkeypatch):
    result = run(*BOTH, "--node", "c1").stdout
    assert "What stands out, against all rows:" in result
    values = why.node(int(why.taxonomy.tree.leaves[1]))
    for one in values["standout"][:5]:
        (line,) = [line for line in result.splitlines() if f" {one['effect']:+.2f} " in line]
        assert line.startswith(one["words"])
        drawn = [word for word in line.split() if set(word) <= set("▁▂▃▄▅▆▇█")]
        assert [len(word) for word in drawn] == [len(one["counts"])] * 2
    monkeypatch.setattr(
        "taxarbor.cli._render.stdout", lambda: SimpleNamespace(encoding="cp1252")
    )
    assert "█" not in run(*BOTH, "--node", "c1").stdout


def test_rows_without_an_id_are_numbered(run_json, edit):
    edit("new.csv", ("C003", " "))
    rows = run_json(*BOTH, *ID, "--new", "new.csv")
    assert rows["notes"] == ["1 id is empty"]
    assert rows["rows"][3]["name"] == "row 3"


def test_rows_in_another_order_are_noted(run, run_json, folder):
    header, *lines = (folder / "customers.csv").read_text(encoding="utf-8").splitlines()
    mixed = [lines[i] for i in np.random.default_rng(0).permutation(len(lines))]
    (folder / "mixed.csv").write_text("\n".join([header, *mixed]), encoding="utf-8")
    result = run("explain", "model.taxarbor", "mixed.csv")
    assert result.exit_code == 0
    assert result.stderr.startswith("taxarbor: note: the model would put only ")
    assert run_json("explain", "model.taxarbor", "mixed.csv")["notes"]


def test_names_are_no_markup(run, edit, terminal):
    edit("odd.csv", *((f"C{row:03d}", f"[red]{row}[/blue]") for row in range(120)))
    terminal(250)
    for options in ((), ("--node", "c0"), ("--row", "3")):
        result = run("explain", "model.taxarbor", "odd.csv", *ID, *options)
        assert result.exit_code == 0
        assert "[/blue]" in result.stdout


def test_a_tree_without_rules(run, folder):
    from_labels(np.arange(120) % 4).save(folder / "m")
    result = run("explain", "m", "customers.csv")
    assert result.exit_code == 0
    assert "spend" in result.stdout


def test_bad_input_is_one_line(refuse, folder):
    few = "\n".join((folder / "customers.csv").read_text(encoding="utf-8").splitlines()[:9])
    (folder / "few.csv").write_text(few, encoding="utf-8")
    result = "has 8 rows, and the model was fitted on 120"
    refuse(result, "explain", "model.taxarbor", "few.csv")
    refuse("nodes are numbered 0 to 10", *BOTH, "--node", "11")
    refuse("clusters c0 to c5", *BOTH, "--node", "c6")
    refuse("there is no node '-1'", *BOTH, "--node=-1")
    refuse("there is no node ''", *BOTH, "--node", "")
    np.save(folder / "x.npy", np.arange(480.0).reshape(120, 4))
    nameless = ("explain", "model.taxarbor", "x.npy", "--row", "C001")
    refuse("does not hold the rows", *nameless)
    refuse("no row is called '120', and numbers go from 0 to 119", *BOTH, *ID, "--row", "120")
    refuse("30 rows are called 'senior'", *BOTH, "--id-column", "class", "--row", "senior")
    refuse("one of --node", *BOTH, "--node", "1", "--row", "1")
    refuse("standard input", "explain", "model.taxarbor", "-", "--new", "-", stdin=b"x")
    refuse("nowhere.csv: No such file", *BOTH, "--new", "nowhere.csv")


def test_the_terminal_says_where_splits_are_decided(three_nodes, capsys):
    taxonomy, X = three_nodes
    why = explain(taxonomy, X)
    assert "its rule chooses among 3 nodes" in str(draw_tree(taxonomy, max_nodes=9).label)
    for node, words in (
        (0, "divided by 2 features, decided at node 0, among 3 nodes\n"),
        (1, "divided by 2 features, decided at node 0, among 3 nodes\n"),
        (2, "divided by 2 features\n"),
    ):
        say_node(why, why.node(node))
        assert words in capsys.readouterr().out
