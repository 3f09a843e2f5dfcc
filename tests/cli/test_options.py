"""Options that say what a table holds, in all commands: names, values, sheets, layers."""

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor import Taxonomy

N = 120
KINDS = np.arange(N) % 4
WORDS = (("good", "cheap"), ("slow", "broken"), ("blue", "heavy"), ("loud", "bass"))


@pytest.fixture
def files(folder):
    """Tables of the same rows in many formats, some of them without names of columns."""
    rng = np.random.default_rng(0)
    X = np.array([[22, 15, 9, 2], [41, 52, 4, 9], [70, 33, 1, 4], [45, 95, 21, 30]])[KINDS]
    X = (X + rng.normal(size=(N, 4))).round(2)
    table = pd.DataFrame(X, columns=["age", "spend", "visits", "items"])
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
    with h5py.File("c.h5ad", "w") as file:
        names = {"var": [f"g{j}" for j in range(4)], "obs": [f"cell {i}" for i in range(N)]}
        for name, index in (*names.items(), ("raw/var", names["var"])):
            group = file.create_group(name)
            group.attrs["_index"] = "_index"
            group["_index"] = np.array(index, dtype=object)
        file["X"] = rng.poisson(3, (N, 4)).astype("f4")
        file["layers/scaled"], file["raw/X"] = (X / 100).astype("f4"), X.astype("f4")
    return folder


@pytest.fixture
def use(run, run_json, files):
    """Fit, and use the model with the same file in all commands; return its labels."""

    def use(data, *options, sheet=()):
        fitted = run("fit", data, "-k", 4, "-o", "m", "--force", *options, *sheet)
        assert fitted.exit_code == 0, fitted.output
        labels = Taxonomy.load("m").tree.labels.tolist()
        assert run_json("predict", "m", data, *sheet)["labels"] == labels
        for command in (
            ("explain", "m", data),
            ("report", "m", data, "-o", "r.html", "--force"),
            ("assess", "m", data, "--refits", 1),
        ):
            result = run(*command, *sheet)
            assert result.exit_code == 0, result.output
        return Taxonomy.load("m").feature_names

    return use


def agree(labels):
    return len({*zip(labels, KINDS.tolist(), strict=True)}) == 4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("data", ["bare.csv", "a.npy", "s.npz"])
def test_columns_without_names(use, data):
    assert use(data) == ("x0", "x1", "x2", "x3")
    assert use(data, "--exclude", "x1") == ("x0", "x2", "x3")
    assert use(data, "--names", "words.txt") == ("one", "two", "three", "four")
    assert use(data, "--names", "words.txt", "--exclude", "two,one") == ("three", "four")


def test_columns_are_excluded(use):
    names = use("d.csv", "--exclude", "id, review,score")
    assert names == ("age", "spend", "visits", "items")


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
    assert agree(run_json("predict", "m", "d.csv")["labels"])


def test_categories(use):
    names = use("bare.csv", "--categories", "x3")
    assert any(name.startswith("x3 = ") for name in names)


def test_a_sheet(use, refuse):
    names = use("d.xlsx", "--exclude", "review,score", sheet=("--sheet", "data"))
    assert names == ("age", "spend", "visits", "items")
    refuse("1 row", "report", "m", "d.xlsx", "-o", "other.html")


@pytest.mark.parametrize("layer", ["scaled", "raw"])
def test_a_layer(run_json, use, layer):
    assert use("c.h5ad", "--layer", layer) == ("g0", "g1", "g2", "g3")
    assert agree(run_json("predict", "m", "c.h5ad")["labels"])


def test_standard_input(run, files):
    data = (files / "d.csv").read_bytes()
    options = ("--missing", "-999", "--text", "review", "--exclude", "items")
    assert run("fit", "-", "-k", 4, "-o", "m", *options, stdin=data).exit_code == 0
    for command in (
        ("predict", "m", "-"),
        ("explain", "m", "-"),
        ("report", "m", "-", "-o", "r.html"),
        ("assess", "m", "-", "--refits", 1),
    ):
        result = run(*command, stdin=data)
        assert result.exit_code == 0, result.output


def test_lines_that_are_too_short_are_noted(run_json, files):
    text = "a,b,c\n1,2,3\n2,3\n5,1,1\n4\n7,8,9\n"
    (files / "short.csv").write_text(text, encoding="utf-8")
    notes = run_json("fit", "short.csv", "-k", 2, "-o", "m")["notes"]
    assert "2 lines have too few cells, first line 3" in notes[0]


def test_a_seed_is_named(refuse, files):
    for seed in (-1, 2**32):
        refuse("--seed", "fit", "d.csv", "-o", "x", "--seed", seed)
