"""``taxarbor predict`` and ``report``."""

from dataclasses import replace

import numpy as np
import pytest

from taxarbor import Taxonomy
from taxarbor.exchange import from_labels
from taxarbor.metrics import tree_scores
from taxarbor.tables import read_table
from tests.cli.conftest import COLUMNS

PREDICT = ("predict", "model.taxarbor", "customers.csv")
TRUTH = (
    '{"children": [{"children": [{"name": "student"}, {"name": "family"}]},'
    '{"children": [{"name": "senior"}, {"name": "business"}]}]}'
)
PAGE = ("report", "model.taxarbor", "customers.csv")


@pytest.fixture
def labels(folder):
    return Taxonomy.load(folder / "model.taxarbor").tree.labels.tolist()


def test_labels_on_standard_output_or_in_a_file(run, folder, labels):
    result = run(*PREDICT)
    assert (result.exit_code, result.stderr) == (0, "")
    header, *rows = result.stdout.splitlines()
    assert header == "id,cluster"
    assert rows == [f"C{row:03d},{label}" for row, label in enumerate(labels)]
    result = run(*PREDICT, "--id-column", "class", "-o", "l.csv")
    assert (result.exit_code, result.stdout) == (0, "120 rows -> l.csv\n")
    lines = (folder / "l.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["class,cluster", f"student,{labels[0]}"]
    assert len(lines) == 121
    X = read_table(folder / "customers.csv", columns=COLUMNS).X
    np.save(folder / "x.npy", X)
    assert run("predict", "model.taxarbor", "x.npy", "-o", "l.tsv").exit_code == 0
    lines = (folder / "l.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["row\tcluster", f"0\t{labels[0]}"]


def test_probabilities_of_all_clusters(run, run_json, folder, labels):
    taxonomy = Taxonomy.load(folder / "model.taxarbor")
    P = taxonomy.predict_proba(
        read_table(folder / "customers.csv", columns=taxonomy.feature_names).X
    )
    result = run(*PREDICT, "--proba")
    note = "probabilities are a rough guess until taxarbor assess measures them"
    assert result.stderr == f"taxarbor: note: {note}\n"
    header, *rows = (line.split(",") for line in result.stdout.splitlines())
    assert header == ["id", "cluster", "probability", *(f"c{leaf}" for leaf in range(6))]
    found = np.array([row[1:] for row in rows], dtype=float)
    assert found[:, 0].tolist() == labels
    np.testing.assert_allclose(found[:, 1], P.max(axis=1), atol=6e-5)
    np.testing.assert_allclose(found[:, 2:], P, atol=6e-5)
    result = run_json(*PREDICT, "--proba")
    assert result["notes"] == [note]
    np.testing.assert_allclose(result["probabilities"], P, atol=1e-6)
    assert "probabilities" not in run_json(*PREDICT)
    replace(taxonomy, temperature=1.5).save(folder / "m")
    assert run("predict", "m", "customers.csv", "--proba").stderr == ""


def test_odd_ids_are_noted_and_written_as_they_are(run, run_json, edit):
    empty, repeated = (("C003", ""), ("C004", "")), (("C005", "C001"), ("C006", "C001"))
    edit("odd.csv", *empty, *repeated, ("C008", "C007"))
    result = run("predict", "model.taxarbor", "odd.csv", "--id-column", "id")
    notes = ["2 ids are empty", "ids repeat: 'C001' and 1 more"]
    assert result.stderr == "".join(f"taxarbor: note: {note}\n" for note in notes)
    assert result.stdout.splitlines()[4].startswith(",")
    found = run_json("predict", "model.taxarbor", "odd.csv", "--id-column", "id")
    assert found["notes"] == notes


def test_no_option_is_advised_that_is_not_there(run, edit):
    edit("odd.csv", ("C000,", "C000,x"))
    for command in (["predict"], ["explain"], ["report", "-o", "r.html"]):
        result = run(command[0], "model.taxarbor", "odd.csv", *command[1:])
        assert result.exit_code == 2
        assert result.stderr.endswith("in line 2; fix it, or leave the cell empty\n")


def test_json_and_standard_input(run_json, folder, labels):
    result = run_json(*PREDICT, "--id-column", "id")
    assert result["labels"] == labels
    assert result["rows"][:2] == ["C000", "C001"]
    assert (result["output"], result["n_clusters"]) == (None, 6)
    assert run_json(*PREDICT) == result
    data = (folder / "customers.csv").read_bytes()
    assert run_json("predict", "model.taxarbor", "-", stdin=data)["labels"] == labels


def test_columns_are_found_by_name(run_json, folder, labels):
    lines = (folder / "customers.csv").read_text(encoding="utf-8").splitlines()
    swapped = [",".join(["0", *reversed(line.split(","))]) for line in lines]
    swapped[0] = "new" + swapped[0][1:]
    (folder / "new.csv").write_text("\n".join(swapped), encoding="utf-8")
    assert run_json("predict", "model.taxarbor", "new.csv")["labels"] == labels


def test_columns_without_names_are_taken_in_order(run_json, refuse, folder, labels):
    X = read_table(folder / "customers.csv", columns=COLUMNS).X
    for name, save in (("new.npy", np.save), ("new.npz", np.savez)):
        save(folder / name, X)
        assert run_json("predict", "model.taxarbor", name)["labels"] == labels
        data = (folder / name).read_bytes()
        assert run_json("predict", "model.taxarbor", "-", stdin=data)["labels"] == labels
        save(folder / name, X[["age", "spend"]])
        refuse("2 columns without names, and the model 4", "predict", "model.taxarbor", name)
        save(folder / name, X * np.inf)
        refuse("480 infinite cells", "predict", "model.taxarbor", name)


def test_a_model_without_names_takes_any(run_json, refuse, folder, labels):
    X = read_table(folder / "customers.csv", columns=COLUMNS).X.to_numpy()
    np.save(folder / "x.npy", X)
    run_json("fit", "x.npy", "-k", 6, "-o", "m")
    columns = "age,spend,visits,items\n"
    text = columns + "\n".join(",".join(map(str, row)) for row in X.tolist())
    (folder / "new.csv").write_text(text, encoding="utf-8")
    assert run_json("predict", "m", "new.csv")["labels"] == labels
    data = (folder / "new.csv").read_bytes()
    assert run_json("predict", "m", "-", stdin=data)["labels"] == labels
    np.save(folder / "x.npy", X[:, :2])
    refuse("2 features", "predict", "m", "x.npy")
    np.save(folder / "x.npy", X.astype(np.float32))
    run_json("fit", "x.npy", "-k", 2, "-o", "m", "--force")
    np.save(folder / "x.npy", X * 1e300)
    refuse("too large for float32", "predict", "m", "x.npy")


def test_predict_refuses_in_one_line(refuse, folder):
    (folder / "new.csv").write_text("age,spend\n1,2\n", encoding="utf-8")
    (folder / "there.csv").write_text("mine", encoding="utf-8")
    refuse("no column called 'visits', 'items'", "predict", "model.taxarbor", "new.csv")
    refuse("standard input has no", "predict", "model.taxarbor", "-", stdin=b"age,x\n1,2\n")
    refuse("nowhere: No such file", "predict", "nowhere", "customers.csv")
    refuse("not a taxarbor taxonomy", "predict", "customers.csv", "customers.csv")
    refuse("there already", *PREDICT, "-o", "there.csv")
    refuse("read and written", *PREDICT, "-o", "customers.csv", "--force")
    refuse("labels are written as", *PREDICT, "-o", "labels.xlsx")
    refuse("did you mean 'id'", *PREDICT, "--id-column", "idd")
    refuse(
        "--id-column must not be 'age', which the model uses", *PREDICT, "--id-column", "age"
    )
    from_labels([0, 1, 0, 1]).save(folder / "m")
    result = "made from labels alone: it has no rules for new rows"
    refuse(result, "predict", "m", "customers.csv")


@pytest.fixture
def known(folder):
    return read_table(folder / "customers.csv", label_column="class").labels


def test_a_page_is_written(run, folder):
    options = ("--id-column", "id", "--label-column", "class", "--title", "Who <buys> what")
    result = run(*PAGE, "-o", "r.html", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("report -> r.html\n")
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Who &lt;buys&gt; what" in page
    assert "C007" in page
    assert "business" in page
    assert run(*PAGE, "-o", "r.html", "--force").exit_code == 0
    assert "customers</" in (folder / "r.html").read_text(encoding="utf-8")


def test_scores_are_printed(run, run_json, folder, known):
    taxonomy = Taxonomy.load(folder / "model.taxarbor")
    classes = ("-o", "r.html", "--label-column", "class", "--force")
    expected = tree_scores(taxonomy, known)
    assert run_json(*PAGE, *classes) == {"report": "r.html", "scores": expected, "notes": []}
    lines = run(*PAGE, *classes).stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("adjusted rand ")]
    assert f" {expected['adjusted_rand']:.3f} " in line
    (folder / "t.json").write_text(TRUTH, encoding="utf-8")
    expected = tree_scores(taxonomy, known, TRUTH)
    assert run_json(*PAGE, *classes, "--truth", "t.json")["scores"] == expected
    assert "adjusted shortest path" in run(*PAGE, *classes, "--truth", "t.json").stdout
    assert run_json(*PAGE, "-o", "r.html", "--force")["scores"] is None


def test_bad_trees_of_classes_are_refused(refuse, folder):
    (folder / "bad.json").write_text('{"student":\n', encoding="utf-8")
    (folder / "utf16.json").write_text(TRUTH, encoding="utf-16")
    (folder / "few.json").write_text('[["", "student"], ["", "family"]]', encoding="utf-8")
    classes = (*PAGE, "-o", "r.html", "--label-column", "class", "--truth")
    refuse("bad.json", *classes, "bad.json")
    refuse("not leaves of the true tree", *classes, "few.json")
    refuse("nowhere.json: No such file", *classes, "nowhere.json")
    refuse("utf16.json is not text in UTF-8", *classes, "utf16.json")
    refuse("did you mean 'class'", *PAGE, "-o", "r.html", "--label-column", "clas")


def test_report_refuses_in_one_line(refuse, folder):
    (folder / "t.json").write_text(TRUTH, encoding="utf-8")
    (folder / "there.html").write_text("mine", encoding="utf-8")
    refuse("there already", *PAGE, "-o", "there.html")
    refuse("give --label-column, too", *PAGE, "-o", "r.html", "--truth", "t.json")
    refuse("name a file in place of -", *PAGE, "-o", "-")
    labels = ("--label-column", "city", "--truth", "t.json")
    refuse("3 of the 3 classes", *PAGE, "-o", "r.html", *labels)
    refuse("read and written", *PAGE, "-o", "t.json", *labels, "--force")
    refuse("no folder", *PAGE, "-o", "nowhere/r.html")
    refuse("No such file", "report", "model.taxarbor", "nowhere.csv", "-o", "r.html")


def test_other_rows_are_refused(refuse, folder):
    """The means of a model tell that it was fitted on other rows."""
    X = read_table(folder / "customers.csv", columns=COLUMNS).X
    np.save(folder / "other.npy", X + 1.0)
    for command in (["explain"], ["report", "-o", "r.html"]):
        result = "does not hold the rows that the tree was grown on"
        refuse(result, command[0], "model.taxarbor", "other.npy", *command[1:])
