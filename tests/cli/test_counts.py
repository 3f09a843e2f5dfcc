"""The commands on a model that holds counts, not rows."""

import json

import pytest

from taxarbor import Taxonomy
from taxarbor.taxonomy._edit import drop_rows


@pytest.fixture
def counts(folder):
    taxonomy = drop_rows(Taxonomy.load(folder / "model.taxarbor"))
    taxonomy.save(folder / "counts.taxarbor")
    return taxonomy


def test_what_needs_no_rows_is_the_same(run, counts, terminal):
    for command in (
        ("show",),
        ("show", "--json"),
        ("show", "--clusters", "3"),
        *(("export", "--to", kind) for kind in ("newick", "dot", "linkage", "csv")),
    ):
        name, *options = command
        whole = run(name, "model.taxarbor", *options)
        told = run(name, "counts.taxarbor", *options)
        assert (told.exit_code, told.stderr) == (0, "")
        assert told.stdout.replace("counts.taxarbor", "model.taxarbor") == whole.stdout
    terminal()
    told = run("show", "counts.taxarbor")
    assert "all" in told.stdout
    assert "120 rows" in told.stdout


def test_export_as_json(run, counts):
    told = run("export", "counts.taxarbor", "--to", "json")
    assert json.loads(told.stdout)["order"] is None


def test_rows_are_explained(run, counts, folder):
    told, whole = (
        run("explain", name, "customers.csv", "--json")
        for name in ("counts.taxarbor", "model.taxarbor")
    )
    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["nodes"] == json.loads(whole.stdout)["nodes"]
    told = run("report", "counts.taxarbor", "customers.csv", "-o", "page.html")
    assert told.exit_code == 0, told.stderr
    assert (folder / "page.html").stat().st_size > 10_000
