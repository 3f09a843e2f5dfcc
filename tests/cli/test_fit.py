"""``taxarbor fit``."""

import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from taxarbor import TableEncoder, Taxarbor, Taxonomy
from taxarbor.exchange import to_json
from taxarbor.tables import read_table
from tests.cli.conftest import COLUMNS, lines_of

NUMBERS = ("--columns", ",".join(COLUMNS))
ROLES = ("--id-column", "id", "--label-column", "class", *NUMBERS)


def test_a_model_is_written_and_summarized(run, folder):
    result = run("fit", "customers.csv", "-k", 6, "-o", "m.taxarbor", *ROLES[:4])
    assert result.stderr.startswith("taxarbor: note: numbers are scaled")
    assert result.stderr.count("\n") == 1
    first, second, *rest = result.stdout.splitlines()
    assert first == "customers.csv: 120 rows named by 'id', 5 columns"
    assert second.startswith("6 clusters in ")
    assert rest[-1] == "model -> m.taxarbor"
    assert rest[1] == "node 0: 120 rows"
    for measure in ("adjusted rand", "adjusted mutual info", "dendrogram purity"):
        assert any(line.startswith(measure) for line in rest)
    assert not [line for line in result.stdout.splitlines() if line != line.rstrip()]
    taxonomy = Taxonomy.load(folder / "m.taxarbor")
    cities = [f"city = {city}" for city in ("Bern", "Graz", "Lund")]
    assert taxonomy.feature_names == (*COLUMNS, *cities)
    X = read_table(folder / "customers.csv", id_column="id", label_column="class").X
    expected = Taxarbor(6, encoder=TableEncoder(), random_state=0).fit(X).labels_
    assert (taxonomy.tree.labels == expected).all()


def test_json(run_json, folder):
    document = run_json("fit", "customers.csv", "-k", 6, "-o", "m.taxarbor", *ROLES)
    assert document["data"] == "customers.csv"
    assert [document[name] for name in ("n_rows", "n_features", "n_clusters")] == [120, 4, 6]
    assert document["dropped"] == []
    assert document["notes"] == []
    assert document["scores"]["dendrogram_purity"] > 0.9
    outputs = [document[name] for name in ("model", "labels", "report")]
    assert outputs == ["m.taxarbor", None, None]
    assert document["can_predict"] is True
    assert (folder / "m.taxarbor").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_options_are_parameters_of_the_estimators(run, folder):
    X = read_table(folder / "customers.csv", columns=COLUMNS).X
    for options, estimator in (
        ((), Taxarbor(8, random_state=0)),
        (("-k", 4, "--seed", 7), Taxarbor(4, random_state=7)),
        (("-k", 4, "--jobs", 2), Taxarbor(4, random_state=0, n_jobs=2)),
        (("-k", 6, "--max-features", 2), Taxarbor(6, max_features=2, random_state=0)),
        (("-k", 6, "--min-leaf-size", 25), Taxarbor(6, min_leaf_size=25, random_state=0)),
        (("-k", 4, "--noise", 0.05), Taxarbor(4, noise=0.05, random_state=0)),
        (
            ("-k", 4, "--column-weights", "age=2, spend=0.5"),
            Taxarbor(4, column_weights={"age": 2.0, "spend": 0.5}, random_state=0),
        ),
    ):
        run("fit", "customers.csv", "-o", "m", "--force", *NUMBERS, *options)
        fitted, expected = Taxonomy.load(folder / "m"), estimator.fit(X).taxonomy_
        assert fitted.made_by == expected.made_by | {"id_column": "id"}
        columns = replace(fitted.columns, notes=expected.columns.notes)
        fitted = replace(fitted, columns=columns, made_by=expected.made_by)
        assert to_json(fitted) == to_json(expected)


def test_as_many_clusters_as_are_stable(run, run_json, refuse, folder):
    result = run("fit", "customers.csv", "-k", "auto", "-o", "m.taxarbor", *ROLES)
    assert "4 clusters in " in result.stdout
    taxonomy = Taxonomy.load(folder / "m.taxarbor")
    assert taxonomy.tree.n_leaves == taxonomy.stability.suggested == 4
    np.save(folder / "noise.npy", np.random.default_rng(0).standard_normal((60, 2)))
    document = run_json("fit", "noise.npy", "-k", "auto", "-o", "noise.taxarbor")
    assert document["n_clusters"] == 1
    assert document["notes"] == [document["verdict"]]


def test_options_are_checked(refuse):
    fit = ("fit", "customers.csv", "-o", "x.taxarbor")
    for wrong in ("0", "-2", "many", "1.5", "²"):
        refuse("--n-clusters must be", *fit, "-k", wrong)
    refuse("--jobs", *fit, "--jobs", 0)
    for share in (1, -0.1):
        refuse("--noise must be", *fit, "--noise", share)


def test_columns_are_selected(run, run_json, refuse, folder, edit):
    def names_of(columns, data="customers.csv", stdin=None):
        run("fit", data, "-k", 2, "-o", "m", "--force", "--columns", columns, stdin=stdin)
        return Taxonomy.load(folder / "m").feature_names

    assert names_of("items,age") == ("items", "age")
    assert names_of("age, spend") == ("age", "spend")
    assert names_of(" age", "-", (folder / "customers.csv").read_bytes()) == ("age",)
    edit("odd.csv", ("spend", '"sp, end"'))
    assert names_of('age,"sp, end"', "odd.csv") == ("age", "sp, end")
    fit = ("fit", "customers.csv", "-o", "x", "--columns")
    refuse("--columns", *fit, "age,id", "--id-column", "id")


def test_columns_are_scaled(run_json, folder):
    """The model takes rows as they are in the file."""
    X = read_table(folder / "customers.csv", columns=COLUMNS).X * [1.0, 1e6, 1.0, 1.0]
    X.to_csv(folder / "wide.csv", index=False)
    np.savez(folder / "wide.npz", X=X, feature_names=COLUMNS)
    kinds = np.arange(120) % 4
    standard = ("--scale", "standard")
    for data, options in (("wide.csv", ()), ("wide.csv", standard), ("wide.npz", standard)):
        document = run_json("fit", data, "-k", 4, "-o", "m", "--force", *options)
        assert "scaled" in document["notes"][0]
        taxonomy = Taxonomy.load(folder / "m")
        assert taxonomy.feature_names == COLUMNS
        assert np.abs(taxonomy.means[0] / X.mean(axis=0) - 1.0).max() < 1e-6
        labels = taxonomy.tree.labels
        assert all(len(set(labels[kinds == kind])) == 1 for kind in range(4))
        assert run_json("predict", "m", "wide.csv")["labels"] == labels.tolist()
    for data, options in (("wide.npz", ()), ("wide.csv", ("--scale", "none"))):
        document = run_json("fit", data, "-k", 4, "-o", "m", "--force", *options)
        assert document["notes"] == []  # matrices are not scaled


def test_labels_and_report_are_written(run, folder):
    os.rename("customers.csv", "our <customers>.csv")
    outputs = ("-o", "m.taxarbor", "--labels", "labels.csv", "--report", "out.html")
    result = run("fit", "our <customers>.csv", "-k", 6, *outputs, *ROLES)
    assert "labels -> labels.csv" in result.stdout
    assert "report -> out.html" in result.stdout
    header, *rows = lines_of(folder / "labels.csv")
    assert header == ["id", "cluster"]
    labels = Taxonomy.load(folder / "m.taxarbor").tree.labels
    assert rows == [[f"C{row:03d}", str(label)] for row, label in enumerate(labels)]
    page = (folder / "out.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "our &lt;customers&gt;</" in page
    assert "business" in page


def test_standard_input_and_names_without_extension(run, run_json, refuse, folder):
    data = (folder / "customers.csv").read_bytes()
    result = run("fit", "-", "-k", 3, "-o", "m.taxarbor", "--report", "r.html", stdin=data)
    assert result.stdout.startswith("standard input: 120 rows named by 'id', 6 columns\n")
    refuse("--output", "fit", "-", stdin=data)
    (folder / "customers.csv").rename(folder / "customers.data")
    refuse("--format", "fit", "customers.data", "-o", "m")
    assert run_json("fit", "customers.data", "--format", "csv", "-o", "m")["n_rows"] == 120


def test_rows_without_a_label(run_json, refuse, edit, folder):
    edit("gaps.csv", ("Bern,senior", "Bern,"))
    document = run_json("fit", "gaps.csv", "-k", 3, "-o", "m", "--report", "r.html", *ROLES)
    (note,) = document["notes"]
    assert note.startswith("10 rows ")
    labels = read_table(folder / "gaps.csv", label_column="class").labels
    is_known = labels != ""
    clusters = Taxonomy.load(folder / "m").tree.labels[is_known]
    expected = adjusted_rand_score(labels[is_known], clusters)
    assert document["scores"]["adjusted_rand"] == pytest.approx(expected, abs=1e-12)
    role = ("--label-column", "class")
    assert run_json("report", "m", "gaps.csv", *role, "-o", "s.html")["notes"] == [note]
    header, *rows = (folder / "gaps.csv").read_text(encoding="utf-8").splitlines()
    bare = [f"{row.rpartition(',')[0]}," for row in rows]
    for first in (bare[0], rows[0]):
        text = "\n".join([header, first, *bare[1:]])
        (folder / "bare.csv").write_text(text, encoding="utf-8")
        refuse("label", "fit", "bare.csv", "-k", 3, "-o", "none", *ROLES)


def test_notes_on_columns_come_first_and_all_are_kept(run, run_json, folder):
    text = (folder / "customers.csv").read_text(encoding="utf-8").replace(",", ";")
    lines = ["Caf\xe9", *text.splitlines(), "X;1", "Y;1;2;3;4;5;6;7;8"]
    (folder / "odd data.csv").write_bytes("\n".join(lines).encode("latin-1"))
    fit = ("fit", "odd data.csv", "-k", 4, "--force")
    shown = run(*fit).stderr.splitlines()
    assert shown[0].endswith("'id' names the rows, and is no feature [--categories id]")
    assert len(shown) == 5
    assert shown[-1].endswith("more: taxarbor show 'odd data.taxarbor' --json)")
    notes = run_json(*fit)["notes"]
    words = ("cp1252", "above the header", "too few", "too many", "semicolon")
    assert [word in note for word, note in zip(words, notes[-5:], strict=True)] == [True] * 5
    kept = run_json("show", "odd data.taxarbor")["model"]["notes"]
    assert [note[0] for note in kept] == [note.partition(" [")[0] for note in notes]
    assert "names the rows" not in run(*fit, "--id-column", "id").stderr
    (folder / "n.csv").write_text("a,id\n" + "".join(f"{n % 5},{n}\n" for n in range(40)))
    assert "[--numbers id]" in run("fit", "n.csv", "-k", 2).stderr
    (folder / "m.csv").write_text("a,id\n" + "".join(f"{n % 5},m{n}\n" for n in range(300)))
    assert "--categories id" not in run("fit", "m.csv", "-k", 2).stderr
    assert run_json("fit", "n.csv", "-k", 2, "--numbers", "id", "-o", "n")["n_features"] == 2


def test_warnings_are_notes(run, run_json, folder):
    np.save(folder / "same.npy", np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0))
    result = run("fit", "same.npy", "-k", 5, "-o", "m")
    assert result.stderr.count("\n") == 1
    (note,) = run_json("fit", "same.npy", "-k", 5, "-o", "m2")["notes"]
    assert result.stderr == f"taxarbor: note: {note}\n"
    np.savetxt(folder / "bare.csv", np.eye(10, 2), delimiter=",")
    for command in (["fit", "bare.csv", "-k", 2, "-o", "n"], ["predict", "n", "bare.csv"]):
        (note,) = run_json(*command)["notes"]
        assert "first line" in note
    assert note in run("predict", "n", "bare.csv").stderr


def test_outputs_are_checked_before_anything_is_read(refuse, folder):
    (folder / "sub").mkdir()
    (folder / "link.csv").symlink_to("customers.csv")
    (folder / "labels.csv").write_text("mine", encoding="utf-8")
    (folder / "damaged.parquet").write_text("not parquet", encoding="utf-8")
    for words, arguments in (
        ("--force", ["-o", "model.taxarbor"]),
        ("damaged.parquet", ["-o", "damaged.parquet", "--force"]),
        ("nowhere/m", ["-o", "nowhere/m"]),
        ("sub: Is a directory", ["-o", "sub", "--force"]),
        ("/dev/null", ["-o", "/dev/null", "--force"]),
        ("m is named for two outputs", ["-o", "m", "--report", "./m"]),
        ("--force", ["-o", "m", "--labels", "labels.csv"]),
        ("--force", ["-o", "m", "--report", "labels.csv"]),
        ("a.xlsx", ["-o", "m", "--labels", "a.xlsx"]),
        ("an output", ["-o", "m", "--labels", "-"]),
        ("an output", ["-o", "-"]),
        ("File name too long", ["-o", "m" * 300]),
    ):
        refuse(words, "fit", "damaged.parquet", *arguments)
    refuse("link.csv is an input", "fit", "./customers.csv", "-o", "link.csv", "--force")


def test_bad_data_is_one_line(refuse, folder):
    (folder / "sub").mkdir()
    for name, text in {
        "holes.csv": "x,y\n1,2\ninf,3\n",
        "empty.csv": "x,y\n1,\n,\n4,\n",
        "none.csv": "y,z\n,u\n,u\n,u\n",
        "one.csv": "x,y\n1,2\n",
        "two.csv": "x,y\n1,2\n3,4\n",
        "bad.parquet": "hello\nworld",
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    np.save(folder / "huge.npy", np.random.default_rng(0).normal(size=(40, 3)) * 1e200)
    for words, arguments in (
        ("nowhere.csv: No such file", ["nowhere.csv"]),
        ("sub", ["sub"]),
        ("1 row", ["one.csv"]),
        ("--n-clusters", ["two.csv"]),
        ("--n-clusters", ["customers.csv", "-k", "121"]),
        ("did you mean 'class'", ["customers.csv", "--label-column", "clas"]),
        ("'x'", ["customers.csv", "--columns", "x"]),
        ("--categories names 'z'", ["empty.csv", "-k", "2", "--categories", "z"]),
        ("'citty'", ["customers.csv", "--categories", "age, citty"]),
        ("--categories names 'age'", ["huge.npy", "--categories", "age"]),
        ("no column to use: 'y'", ["none.csv", "-k", "2"]),
        ("infinity", ["holes.csv"]),
        ("bad.parquet", ["bad.parquet"]),
        ("huge.npy varies", ["huge.npy"]),
    ):
        refuse(words, "fit", *arguments, "-o", "m")


def test_names_are_neither_control_characters_nor_markup(run, edit, terminal):
    names = {"items": "[/b]:cat:[red]\x1b[2J", "age": "[bold]", "spend": "line \x1b[2J"}
    edit("odd.csv", *names.items(), ("visits", "a\x1b]0;title\x07ge"))
    options = ("-k", 6, "--label-column", "class", "--scale", "none", "--force", "-o", "m")
    assert "\x1b" not in run("fit", "odd.csv", *options).output
    assert "\x1b" not in run("fit", "odd.csv", "-o", "n", "--columns", "nothing", code=2).output
    terminal(200)
    result = run("fit", "odd.csv", *options)
    assert "[/b]:cat:[red]" in result.stdout
    assert "\x1b[2J" not in result.stdout
    assert "├──" in result.stdout


def test_missing_libraries_are_one_line(refuse, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    refuse("pip install pandas", "fit", "customers.csv", "-o", "m")
