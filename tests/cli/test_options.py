"""Options that say what a table holds, in all commands: names, values, sheets, layers."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor import Taxonomy
from tests.cli.conftest import COLUMNS, are_kinds
from tests.sources.places import write_h5ad

N = 120
KINDS = np.arange(N) % 4
WORDS = (("good", "cheap"), ("slow", "broken"), ("blue", "heavy"), ("loud", "bass"))
REPORT, ASSESS = ["report", "-o", "r.html", "--force"], ["assess", "--refits", 1]
USES = ["predict"], ["explain"], REPORT, ASSESS


@pytest.fixture
def files(folder):
    """Tables of the same rows in many formats, some of them without names of columns."""
    rng = np.random.default_rng(0)
    table = pd.read_csv("customers.csv")[[*COLUMNS]]
    X = table.to_numpy()
    table["score"] = np.where(rng.random(N) < 0.2, -999, KINDS)
    table["review"] = [" ".join(rng.permutation(WORDS[kind] * 3)) for kind in KINDS]
    table.insert(0, "id", [f"R{row}" for row in range(N)])
    table.to_csv("d.csv", index=False)
    with pd.ExcelWriter("d.xlsx") as file:
        pd.DataFrame({"note": ["see data"]}).to_excel(file, sheet_name="info", index=False)
        table.to_excel(file, sheet_name="data", index=False)
    np.savetxt("bare.csv", X, delimiter=",")
    np.save("a.npy", X)
    sparse.save_npz("s.npz", sparse.csr_array(X))
    (folder / "words.txt").write_text("one\ntwo\n\nthree\nfour\n", encoding="utf-8")
    (folder / "short.txt").write_text("one\n", encoding="utf-8")
    names, cells = ["g0", "g1", "g2", "g3"], [f"cell {i}" for i in range(N)]
    layers, raw = {"scaled": (X / 100).astype("f4")}, (X.astype("f4"), names)
    write_h5ad("c.h5ad", rng.poisson(3, (N, 4)).astype("f4"), names, layers, raw, cells)
    return folder


@pytest.fixture
def use(run, run_json, files):
    """Fit, and use the model with the same file in all commands; return its labels."""

    def use(data, *options, sheet=()):
        run("fit", data, "-k", 4, "-o", "m", "--force", *options, *sheet)
        labels = Taxonomy.load("m").tree.labels.tolist()
        assert run_json("predict", "m", data, *sheet)["labels"] == labels
        for command, *others in USES:
            run(command, "m", data, *others, *sheet)
        return Taxonomy.load("m").feature_names

    return use


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("data", ["bare.csv", "a.npy", "s.npz"])
def test_columns_without_names(use, data):
    assert use(data) == ("x0", "x1", "x2", "x3")
    assert use(data, "--exclude", "x1") == ("x0", "x2", "x3")
    assert use(data, "--names", "words.txt") == ("one", "two", "three", "four")
    assert use(data, "--names", "words.txt", "--exclude", "two,one") == ("three", "four")


def test_columns_are_excluded(use):
    assert use("d.csv", "--exclude", "id, review,score") == COLUMNS


def test_bad_names(refuse, files):
    fit = ("fit", "a.npy", "-o", "x")
    refuse("--exclude names 'x9'", *fit, "--exclude", "x1,x9")
    refuse("--exclude leaves no column", *fit, "--exclude", "x0,x1,x2,x3")
    refuse("--names must hold 4", *fit, "--names", "short.txt")
    refuse("--names must be a text", *fit, "--names", "a.npy")
    refuse("none.txt: No such file", *fit, "--names", "none.txt")
    refuse("--names is for", "fit", "d.csv", "-o", "x", "--names", "words.txt")
    refuse("--text names 'nothing'", "fit", "d.csv", "-o", "x", "--text", "nothing")
    refuse("--layer is for h5ad", "fit", "d.csv", "-o", "x", "--layer", "scaled")
    refuse("--layer is 'none'", "fit", "c.h5ad", "-o", "x", "--layer", "none")
    refuse("--sheet is for", "fit", "d.csv", "-o", "x", "--sheet", "data")
    refuse("'nowhere'", "fit", "d.xlsx", "-o", "x", "--sheet", "nowhere")


def test_numbers_that_stand_for_missing_values(run_json, use):
    options = ("-k", 4, "-o", "m", "--force")
    document = run_json("fit", "d.csv", *options)
    assert any("[--missing -999]" in note for note in document["notes"])
    assert "score" in use("d.csv", "--missing", "-999,unknown")
    document = run_json("fit", "d.csv", *options, "--missing", "-999")
    assert not any("[--missing" in note for note in document["notes"])
    assert any("most in score" in note for note in document["notes"])


def test_texts(run_json, use):
    names = use("d.csv", "--columns", "review", "--text", "review")
    assert any("broken" in name for name in names)
    assert are_kinds(run_json("predict", "m", "d.csv")["labels"])


def test_categories(use):
    assert any(name.startswith("x3 = ") for name in use("bare.csv", "--categories", "x3"))


def test_options_of_notes_do_what_they_say(run_json, folder):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"order_no": 7 * rng.permutation(300), "a": rng.normal(size=300)})
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(300), "h")
    table["at"], table["level"] = days.strftime("%Y-%m-%dT%H:%M:%SZ"), [*"LMH"] * 100
    table["level"] = table["level"].map({"L": "low", "M": "medium", "H": "high"})
    table["state"] = rng.choice(["Ohio", "Utah"], 300)
    table.loc[0, "state"] = "Maine"
    table["text"] = [f"the {one} came late {row}" for row, one in enumerate(table["level"])]
    table.to_csv("t.csv", index=False)

    def fit(*options):
        run_json("fit", "t.csv", "-k", 3, "-o", "m", "--force", *options)
        return Taxonomy.load(folder / "m").columns

    columns = fit()
    kinds = {column.label: column.kind for column in columns}
    dates = {f"at {part}": part for part in ("weekday", "hour")}
    assert kinds == {"a": "number", "level": "ordered", "state": "category"} | dates
    notes = " ".join(note.for_shell for note in columns.notes)
    for option in ("--exclude at", "--categories level", "--categories state", "--text text"):
        assert f"[{option}]" in notes, option
    assert "order_no" not in columns.feature_names
    assert "order_no" in fit("--numbers", "order_no").feature_names
    assert "level = low" in fit("--categories", "level").feature_names
    assert "state = Maine" in fit("--categories", "state").feature_names
    assert 'has "low" in text' in fit("--text", "text").feature_names


def test_a_sheet(use, refuse):
    assert use("d.xlsx", "--exclude", "review,score", sheet=("--sheet", "data")) == COLUMNS
    refuse("'other'", "report", "m", "d.xlsx", "-o", "other.html", "--sheet", "other")


@pytest.mark.parametrize("layer", ["scaled", "raw"])
def test_a_layer(run_json, use, layer):
    assert use("c.h5ad", "--layer", layer) == ("g0", "g1", "g2", "g3")
    assert are_kinds(run_json("predict", "m", "c.h5ad")["labels"])


def test_standard_input(run, files):
    data = (files / "d.csv").read_bytes()
    options = ("--missing", "-999", "--text", "review", "--exclude", "items")
    run("fit", "-", "-k", 4, "-o", "m", *options, stdin=data)
    for command, *others in USES:
        assert run(command, "m", "-", *others, stdin=data).exit_code == 0
