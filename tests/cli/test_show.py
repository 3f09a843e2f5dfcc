"""``taxarbor show``."""

import re

import pytest

from taxarbor import Hierarchy

CODES = re.compile(r"\x1b\[[\d;]*m")


def test_plain_text_in_a_pipe(run, folder):
    told = run("show", "model.taxarbor")
    tree = Hierarchy.load(folder / "model.taxarbor")
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout == tree.to_text() + "\n"
    told = run("show", "model.taxarbor", "--depth", 1, "--top", 1)
    assert told.stdout == tree.to_text(1, 1) + "\n"


def test_a_tree_on_a_terminal(run, folder, terminal):
    terminal()
    told = run("show", "model.taxarbor")
    lines = CODES.sub("", told.stdout).splitlines()
    tree = Hierarchy.load(folder / "model.taxarbor")
    assert lines[0] == "all  120 rows"
    assert len(lines) == tree.n_nodes
    assert lines[1].startswith(f"├── {tree.reasons(1)[0]}")
    assert "\x1b[34m+" in told.stdout  # blue
    assert "\x1b[31m-" in told.stdout  # red
    assert all(f"c{label}" in told.stdout for label in range(6))


def test_levels_on_a_terminal(run, terminal):
    terminal()
    lines = CODES.sub("", run("show", "model.taxarbor", "--depth", 1).stdout).splitlines()
    assert len(lines) == 3
    assert any(line.endswith(" groups") for line in lines)


def test_no_color(run, terminal, monkeypatch):
    terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in run("show", "model.taxarbor").stdout


@pytest.mark.parametrize("depth", [None, 0, 1])
def test_json_is_flat(run_json, folder, depth):
    tree = Hierarchy.load(folder / "model.taxarbor")
    options = [] if depth is None else ["--depth", depth]
    found = run_json("show", "model.taxarbor", *options)["nodes"]
    nodes, root = {node["node"]: node for node in found}, found[0]
    most = tree.height if depth is None else depth
    assert list(nodes) == [n for n in range(tree.n_nodes) if tree.depth[n] <= most]
    assert (root["n_rows"], root["n_groups"], root["cluster"]) == (120, 6, None)
    for number, node in nodes.items():
        assert node["parent"] == tree.parent(number)
        assert node["children"] == list(tree.children(number))
        assert node["n_rows"] == len(tree.rows(number))
        assert [r["feature"] for r in node["reasons"]] == [r.name for r in tree.reasons(number)]


def test_a_deep_tree(run, run_json, folder):
    n_rows = 3000
    merges = [[n_rows + i - 1 if i else 0, i + 1, i + 1.0, i + 2] for i in range(n_rows - 1)]
    Hierarchy.from_linkage(merges).save(folder / "deep")
    told = run("show", "deep")
    assert told.exit_code == 0
    assert told.stdout.count("\n") == 2 * n_rows - 1
    assert len(run_json("show", "deep")["nodes"]) == 2 * n_rows - 1


def test_bad_input_is_one_line(refused, folder):
    refused("nowhere: No such file", "show", "nowhere")
    refused("not a taxarbor hierarchy", "show", "customers.csv")
    data = (folder / "model.taxarbor").read_bytes()
    (folder / "half").write_bytes(data[: len(data) // 2])
    refused("damaged", "show", "half")
