"""``taxarbor predict`` and ``report``."""

from dataclasses import replace

import numpy as np
import pytest

from taxarbor import Taxonomy
from taxarbor.exchange import from_labels
from taxarbor.tables import read_table
from tests.cli.conftest import COLUMNS

PREDICT = ("predict", "model.taxarbor", "customers.csv")
REPORT = ("report", "model.taxarbor", "customers.csv")


@pytest.fixture
def table(folder):
    return read_table(folder / "customers.csv", columns=COLUMNS).X


def test_labels_on_standard_output_or_in_a_file(run, start, folder, labels):
    result = run(*PREDICT)
    assert result.stderr == ""
    header, *rows = result.stdout.splitlines()
    assert header == "id,cluster"
    assert rows == [f"C{row:03d},{label}" for row, label in enumerate(labels)]
    assert start(*PREDICT).communicate() == (result.stdout, "")
    result = run(*PREDICT, "--id-column", "class", "-o", "l.csv")
    assert result.stdout == "120 rows -> l.csv\n"
    lines = (folder / "l.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["class,cluster", f"student,{labels[0]}"]
    assert len(lines) == 121


def test_probabilities(run, run_json, folder, labels, table):
    taxonomy = Taxonomy.load(folder / "model.taxarbor")
    P = taxonomy.predict_proba(table)
    result = run(*PREDICT, "--proba")
    assert "taxarbor assess" in result.stderr  # which calibrates them
    header, *rows = (line.split(",") for line in result.stdout.splitlines())
    assert header == ["id", "cluster", "probability", *(f"c{leaf}" for leaf in range(6))]
    values = np.array([row[1:] for row in rows], dtype=float)
    assert values[:, 0].tolist() == labels
    np.testing.assert_allclose(values[:, 1], P.max(axis=1), atol=6e-5)
    np.testing.assert_allclose(values[:, 2:], P, atol=6e-5)
    np.testing.assert_allclose(run_json(*PREDICT, "--proba")["probabilities"], P, atol=1e-6)
    assert "probabilities" not in run_json(*PREDICT)
    replace(taxonomy, temperature=1.5).save(folder / "m")
    assert run("predict", "m", "customers.csv", "--proba").stderr == ""


def test_an_id_column_with_the_name_of_another(run, edit, labels):
    edit("odd.csv", ("id,", "cluster,"))
    result = run("predict", "model.taxarbor", "odd.csv", "--id-column", "cluster")
    header, first, *_ = result.stdout.splitlines()
    assert (header, first) == ("row,cluster", f"C000,{labels[0]}")


def test_json_and_standard_input(run_json, folder, labels):
    document = run_json(*PREDICT, "--id-column", "id")
    assert document["labels"] == labels
    assert document["rows"][:2] == ["C000", "C001"]
    assert (document["output"], document["n_clusters"]) == (None, 6)
    assert run_json(*PREDICT) == document
    data = (folder / "customers.csv").read_bytes()
    assert run_json("predict", "model.taxarbor", "-", stdin=data)["labels"] == labels


def test_rows_are_named_as_in_the_fit(run_json, refuse, folder, table):
    def names(*arguments):
        return run_json("predict", *arguments)["rows"]

    run_json("fit", "customers.csv", "-k", 4, "-o", "m")
    zips = [f"Z{row}" for row in range(3)]
    new = table.head(3).assign(zip=zips, city="Bern", **{"class": "family"})
    new.assign(id=["007", "8", "8"]).to_csv(folder / "new.csv", index=False)
    assert names("m", "new.csv") == ["007", "8", "8"]
    assert names("m", "new.csv", "--id-column", "zip") == zips
    new.to_csv(folder / "new.csv", index=False)
    assert names("m", "new.csv") is None
    assert names("model.taxarbor", "new.csv") is None
    new[["zip"]].to_csv(folder / "new.csv", index=False)
    refuse("new.csv lacks columns", "predict", "m", "new.csv")


def test_a_model_without_names_takes_numbers(run_json, refuse, folder, labels, table):
    np.save(folder / "x.npy", table)
    run_json("fit", "x.npy", "-k", 6, "-o", "m")
    table.to_csv(folder / "new.csv", index=False)
    assert run_json("predict", "m", "new.csv")["labels"] == labels
    data = (folder / "new.csv").read_bytes()
    assert run_json("predict", "m", "-", stdin=data)["labels"] == labels
    np.save(folder / "x.npy", table.to_numpy()[:, :2])
    refuse("2 features", "predict", "m", "x.npy")
    np.save(folder / "x.npy", table.astype(np.float32))
    run_json("fit", "x.npy", "-k", 2, "-o", "m", "--force")
    np.save(folder / "x.npy", table * 1e300)
    refuse("float32", "predict", "m", "x.npy")


def test_bad_input_of_predict(refuse, folder):
    (folder / "new.csv").write_text("age,spend\n1,2\n", encoding="utf-8")
    (folder / "old.csv").write_text("mine", encoding="utf-8")
    refuse("'visits', 'items'", "predict", "model.taxarbor", "new.csv")
    text = (folder / "customers.csv").read_text(encoding="utf-8").replace("C000,", "C000,x")
    (folder / "text.csv").write_text(text, encoding="utf-8")
    refuse("in row 0", "predict", "model.taxarbor", "text.csv")
    rows = b"age,x\n1,2\n"
    refuse("'visits', 'items'", "predict", "model.taxarbor", "-", stdin=rows)
    refuse("standard input", "predict", "model.taxarbor", "-", "--id-column", "i", stdin=rows)
    refuse("nowhere: No such file", "predict", "nowhere", "customers.csv")
    refuse("customers.csv", "predict", "customers.csv", "customers.csv")
    refuse("--force", *PREDICT, "-o", "old.csv")
    refuse("customers.csv is an input", *PREDICT, "-o", "customers.csv", "--force")
    refuse("labels.xlsx", *PREDICT, "-o", "labels.xlsx")
    refuse("labels.npy", *PREDICT, "-o", "labels.npy")
    refuse("did you mean 'id'", *PREDICT, "--id-column", "idd")
    refuse("'age'", *PREDICT, "--id-column", "age")
    np.save(folder / "new.npy", np.zeros((3, 3)))
    refuse("expecting 4 features", "predict", "model.taxarbor", "new.npy")
    from_labels([0, 1, 0, 1]).save(folder / "m")
    refuse("no rules", "predict", "m", "customers.csv")


def test_a_report_is_written(run, folder):
    options = ("--id-column", "id", "--label-column", "class", "--title", "Who <buys> what")
    result = run(*REPORT, "-o", "r.html", *options)
    assert result.stderr == ""
    assert result.stdout.startswith("report -> r.html\n")
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Who &lt;buys&gt; what" in page
    assert "C007" in page
    assert "business" in page
    run(*REPORT, "-o", "r.html", "--force")
    assert "customers</" in (folder / "r.html").read_text(encoding="utf-8")


def test_bad_input_of_report(refuse, folder, table):
    (folder / "old.html").write_text("mine", encoding="utf-8")
    refuse("did you mean 'class'", *REPORT, "-o", "r.html", "--label-column", "clas")
    refuse("--force", *REPORT, "-o", "old.html")
    refuse("an output", *REPORT, "-o", "-")
    refuse("customers.csv is an input", *REPORT, "-o", "customers.csv", "--force")
    refuse("nowhere/r.html", *REPORT, "-o", "nowhere/r.html")
    refuse("nowhere.csv", "report", "model.taxarbor", "nowhere.csv", "-o", "r.html")
    (table + 1.0).to_csv(folder / "other.csv", index=False)
    for command in (["explain"], ["report", "-o", "r.html"]):  # which compare means
        refuse("the rows", command[0], "model.taxarbor", "other.csv", *command[1:])
