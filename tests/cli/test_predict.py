"""``taxarbor predict``."""

import numpy as np
import pytest

from taxarbor import Hierarchy
from taxarbor.data import read_table


@pytest.fixture
def labels(folder):
    return Hierarchy.load(folder / "model.taxarbor").labels.tolist()


def test_labels_on_standard_output(run, labels):
    told = run("predict", "model.taxarbor", "customers.csv")
    assert (told.exit_code, told.stderr) == (0, "")
    header, *rows = told.stdout.splitlines()
    assert header == "row,cluster"
    assert rows == [f"{row},{label}" for row, label in enumerate(labels)]


def test_ids_and_a_file(run, folder, labels):
    told = run("predict", "model.taxarbor", "customers.csv", "--id-column", "id", "-o", "l.csv")
    assert (told.exit_code, told.stdout) == (0, "120 rows -> l.csv\n")
    lines = (folder / "l.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["id,cluster", f"C000,{labels[0]}"]
    assert len(lines) == 121


def test_tabs(run, folder, labels):
    assert run("predict", "model.taxarbor", "customers.csv", "-o", "l.tsv").exit_code == 0
    lines = (folder / "l.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[1] == f"0\t{labels[0]}"


def test_a_dash_is_standard_output(run, folder):
    told = run("predict", "model.taxarbor", "customers.csv", "-o", "-")
    assert told.stdout == run("predict", "model.taxarbor", "customers.csv").stdout
    assert not (folder / "-").exists()


def test_odd_ids_are_noted_and_written_as_they_are(run, run_json, folder):
    text = (folder / "customers.csv").read_text(encoding="utf-8")
    for number in (3, 4, 5, 6):
        text = text.replace(f"C00{number}", "" if number < 5 else "C001")
    text = text.replace("C008", "C007")
    (folder / "odd.csv").write_text(text, encoding="utf-8")
    told = run("predict", "model.taxarbor", "odd.csv", "--id-column", "id")
    assert told.stderr == (
        "taxarbor: note: 2 ids are empty\ntaxarbor: note: ids repeat: 'C001' and 1 more\n"
    )
    assert told.stdout.splitlines()[4].startswith(",")
    notes = run_json("predict", "model.taxarbor", "odd.csv", "--id-column", "id")["notes"]
    assert len(notes) == 2


def test_no_option_is_advised_that_is_not_there(run, folder):
    text = (folder / "customers.csv").read_text(encoding="utf-8").splitlines()
    cells = text[1].split(",")
    text[1] = ",".join([cells[0], "", *cells[2:]])
    (folder / "holes.csv").write_text("\n".join(text), encoding="utf-8")
    for command in (["predict"], ["explain"], ["score", "--label-column", "class"]):
        told = run(command[0], "model.taxarbor", "holes.csv", *command[1:])
        assert told.exit_code == 2
        assert told.stderr.endswith("line 2; fill them, or leave these rows out\n")


def test_json(run_json, labels):
    told = run_json("predict", "model.taxarbor", "customers.csv", "--id-column", "id")
    assert told["labels"] == labels
    assert told["rows"][:2] == ["C000", "C001"]
    assert (told["output"], told["n_groups"]) == (None, 6)
    assert run_json("predict", "model.taxarbor", "customers.csv")["rows"] is None


def test_columns_are_found_by_name(run_json, folder, labels):
    lines = (folder / "customers.csv").read_text(encoding="utf-8").splitlines()
    swapped = [",".join(["0", *reversed(line.split(","))]) for line in lines]
    swapped[0] = "new" + swapped[0][1:]
    (folder / "new.csv").write_text("\n".join(swapped), encoding="utf-8")
    assert run_json("predict", "model.taxarbor", "new.csv")["labels"] == labels


@pytest.mark.parametrize("name", ["new.npy", "new.npz"])
def test_columns_without_names_are_taken_in_order(run_json, refused, folder, labels, name):
    X = read_table(folder / "customers.csv").X
    save = np.save if name.endswith("npy") else np.savez
    save(folder / name, X)
    assert run_json("predict", "model.taxarbor", name)["labels"] == labels
    data = (folder / name).read_bytes()
    assert run_json("predict", "model.taxarbor", "-", stdin=data)["labels"] == labels
    save(folder / name, X[:, :3])
    refused("3 columns without names, and the model 4", "predict", "model.taxarbor", name)


def test_a_model_without_names_takes_any(run_json, refused, folder, labels):
    X = read_table(folder / "customers.csv").X
    np.save(folder / "x.npy", X)
    run_json("fit", "x.npy", "-k", 6, "-o", "m")
    columns = "age,spend,visits,items\n"
    text = columns + "\n".join(",".join(map(str, row)) for row in X.tolist())
    (folder / "new.csv").write_text(text, encoding="utf-8")
    assert run_json("predict", "m", "new.csv")["labels"] == labels
    np.save(folder / "x.npy", X[:, :2])
    refused("2 features", "predict", "m", "x.npy")


def test_standard_input(run_json, folder, labels):
    data = (folder / "customers.csv").read_bytes()
    assert run_json("predict", "model.taxarbor", "-", stdin=data)["labels"] == labels


def test_bad_input_is_one_line(refused, folder):
    (folder / "new.csv").write_text("age,spend\n1,2\n", encoding="utf-8")
    (folder / "there.csv").write_text("mine", encoding="utf-8")
    refused("no column called 'visits', 'items'", "predict", "model.taxarbor", "new.csv")
    refused("standard input has no", "predict", "model.taxarbor", "-", stdin=b"age,x\n1,2\n")
    refused("nowhere: No such file", "predict", "nowhere", "customers.csv")
    refused("not a taxarbor hierarchy", "predict", "customers.csv", "customers.csv")
    same = ("predict", "model.taxarbor", "customers.csv")
    refused("there already", *same, "-o", "there.csv")
    refused("read and written", *same, "-o", "customers.csv", "--force")
    refused("labels are written as", *same, "-o", "labels.npy")
    refused("did you mean 'id'", *same, "--id-column", "idd")


def test_a_tree_without_rules_places_nothing(refused, folder):
    Hierarchy.from_labels([0, 1, 0, 1]).save(folder / "m")
    refused("no rules to place new rows by", "predict", "m", "customers.csv")
