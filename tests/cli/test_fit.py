"""``taxarbor fit``."""

import csv
import inspect
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from taxarbor import HMMC, Taxarbor, Taxonomy
from taxarbor.cli import _fit, _fitting, _reading
from taxarbor.exchange import to_json
from taxarbor.tables import TableEncoder, read_table
from tests.cli.conftest import COLUMNS

NUMBERS = ("--columns", ",".join(COLUMNS))
ROLES = ("--id-column", "id", "--label-column", "class", *NUMBERS)


def lines_of(path, delimiter=","):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def test_a_model_is_written_and_summed_up(run, folder):
    result = run("fit", "customers.csv", "-k", 6, "-o", "m.taxarbor", *ROLES[:4])
    assert result.exit_code == 0
    scaled = "numbers are scaled to variance 1, beside categories"
    assert result.stderr == f"taxarbor: note: {scaled}\n"
    first, second, *rest = result.stdout.splitlines()
    assert first == "customers.csv: 120 rows, 5 columns"
    assert second.startswith("6 clusters in ")
    assert second.endswith(" s -> m.taxarbor")
    assert rest[1] == "node 0: 120 rows"
    for measure in ("adjusted rand", "adjusted mutual info", "dendrogram purity"):
        assert any(line.startswith(measure) for line in rest)
    assert not [line for line in result.stdout.splitlines() if line != line.rstrip()]
    taxonomy = Taxonomy.load(folder / "m.taxarbor")
    cities = [f"city = {city}" for city in ("Bern", "Graz", "Lund")]
    assert taxonomy.feature_names == ["age", "spend", "visits", "items", *cities]
    X = read_table(folder / "customers.csv", id_column="id", label_column="class").X
    expected = Taxarbor(6, encoder=TableEncoder(), random_state=0).fit(X).labels_
    assert (taxonomy.tree.labels == expected).all()


def test_json_has_all_of_it(run_json, folder):
    result = run_json("fit", "customers.csv", "-k", 6, "-o", "m.taxarbor", *ROLES)
    assert (result["data"], result["method"]) == ("customers.csv", "taxarbor")
    assert (result["n_rows"], result["n_features"], result["n_clusters"]) == (120, 4, 6)
    assert result["dropped"] == [{"column": "city", "reason": "not among the requested columns"}]
    assert result["notes"] == []
    assert result["scores"]["dendrogram_purity"] > 0.9
    assert (result["model"], result["labels"], result["report"]) == ("m.taxarbor", None, None)
    assert result["places_new_rows"] is True
    assert (folder / "m.taxarbor").exists()


@pytest.fixture
def seen(monkeypatch):
    """What the methods are result."""
    result = {}
    for method, make in _fitting.METHODS.items():

        def spy(method=method, make=make, **settings):
            result.clear()
            result.update(settings, method=method)
            return make(**settings)

        monkeypatch.setitem(_fitting.METHODS, method, spy)
    return result


def test_the_options_arrive(run, seen):
    for options, expected in (
        ((), {"method": "taxarbor", "random_state": 0, "n_jobs": 1}),
        (("-k", 3, "--max-depth", 4), {"n_clusters": 3, "max_depth": 4}),
        (("--max-leaf-size", 20), {"n_clusters": None, "max_leaf_size": 20}),
        (("--max-depth", 2), {"n_clusters": None, "max_depth": 2}),
        (("--branching", 3, "--max-features", 2), {"branching": 3, "max_features": 2}),
        (("--min-leaf-size", 5, "--noise", 0.02), {"min_leaf_size": 5, "noise": 0.02}),
        (("--seed", 7), {"random_state": 7}),
        (("--jobs", 2), {"n_jobs": 2, "verbose": 0}),  # no bar: this is no terminal
        (("--method", "hmmc", "--branching", 3), {"method": "hmmc", "branching": 3}),
    ):
        result = run("fit", "customers.csv", "-o", "m.taxarbor", "--force", *options)
        assert result.exit_code == 0, result.output
        assert expected.items() <= seen.items()


def test_as_many_clusters_as_are_stable(run, run_json, refuse, folder):
    result = run("fit", "customers.csv", "-k", "auto", "-o", "m.taxarbor", *ROLES)
    assert result.exit_code == 0, result.output
    assert "4 clusters in " in result.stdout
    assert "The finest stable cut has 4 clusters." in result.stdout
    assert "came back in 20 of 20 refits" in result.stdout
    taxonomy = Taxonomy.load(folder / "m.taxarbor")
    assert taxonomy.tree.n_leaves == taxonomy.stability.suggested == 4
    np.save(folder / "noise.npy", np.random.default_rng(0).standard_normal((60, 2)))
    result = run_json("fit", "noise.npy", "-k", "auto", "-o", "noise.taxarbor")
    assert result["n_clusters"] == 1
    assert result["notes"] == [result["verdict"]]
    assert result["verdict"].startswith("no clusters found")
    fit = ("fit", "customers.csv", "-o", "x.taxarbor", "-k")
    refuse("--n-clusters auto is for --method taxarbor", *fit, "auto", "--method", "hmmc")
    for wrong in ("0", "-2", "many", "1.5", "²"):
        refuse(f"--n-clusters must be 1 or more, or auto, got {wrong}", *fit, wrong)


def test_the_methods_are_the_estimators(run, folder):
    X = read_table(folder / "customers.csv", columns=COLUMNS).X
    for method, estimator in {
        "taxarbor": Taxarbor(4, random_state=0),
        "hmmc": HMMC(4, random_state=0),
    }.items():
        both = ("-o", "m", "--force", "-k", 4, *NUMBERS)
        result = run("fit", "customers.csv", *both, "--method", method)
        assert result.exit_code == 0
        expected = estimator.set_params(encoder=TableEncoder()).fit(X).taxonomy_
        assert to_json(Taxonomy.load(folder / "m")) == to_json(expected)


def test_options_are_parameters_of_the_estimators():
    parameters = {m: inspect.signature(one).parameters for m, one in _fitting.METHODS.items()}
    assert {*_fit.TREE, *_fit.ONLY_TAXARBOR} <= set(parameters["taxarbor"])
    assert set(_fit.TREE) <= set(parameters["hmmc"])
    assert not set(_fit.ONLY_TAXARBOR) & set(parameters["hmmc"])


def test_an_option_of_another_method_is_refused(refuse):
    both = ("fit", "customers.csv", "-o", "m")
    result = "--max-features is for --method taxarbor, not for hmmc"
    refuse(result, *both, "--method", "hmmc", "--max-features", 1)


def test_columns_are_chosen(run, run_json, folder):
    result = run("fit", "customers.csv", "-o", "n", "--columns", "age", "-k", 2)
    assert result.stderr == "taxarbor: note: rows are named by id\n"
    run_json("fit", "customers.csv", "-k", 2, "-o", "m", "--columns", "items,age")
    assert Taxonomy.load(folder / "m").feature_names == ["items", "age"]


def test_columns_count_alike_and_raw_rows_fit(run_json, folder):
    """The model takes rows as they are in the file."""
    X = read_table(folder / "customers.csv", columns=COLUMNS).X * [1.0, 1e6, 1.0, 1.0]
    X.to_csv(folder / "wide.csv", index=False)
    np.savez(folder / "wide.npz", X=X, feature_names=COLUMNS)
    kinds = np.arange(120) % 4
    for data, options, why in (
        ("wide.csv", (), "numbers are scaled to variance 1, as they differ in unit: spend"),
        ("wide.csv", ("--scale", "standard"), "numbers are scaled (standard)"),
        ("wide.npz", ("--scale", "standard"), "numbers are scaled (standard)"),
    ):
        result = run_json("fit", data, "-k", 4, "-o", "m", "--force", *options)
        (note,) = result["notes"]
        assert note.startswith(why)
        taxonomy = Taxonomy.load(folder / "m")
        assert taxonomy.feature_names == [*COLUMNS]
        assert np.abs(taxonomy.means[0] / X.mean(axis=0) - 1.0).max() < 1e-6
        assert all(len(set(taxonomy.tree.labels[kinds == kind])) == 1 for kind in range(4))
        assert run_json("predict", "m", "wide.csv")["labels"] == taxonomy.tree.labels.tolist()
    for data, options in (("wide.npz", ()), ("wide.csv", ("--scale", "none"))):
        result = run_json("fit", data, "-k", 4, "-o", "m", "--force", *options)
        assert result["notes"] == []  # matrices are taken as they are
    result = run_json("fit", "wide.npz", "-k", 4, "-o", "m", "--force", "--metric", "cosine")
    assert result["notes"] == ["rows are brought to length 1, and values are parts of that"]


def test_sparse_rows_stay_sparse(run_json, folder):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.poisson(0.3, (80, 30)) * rng.choice([1.0, 50.0], 30))
    sparse.save_npz(folder / "counts.npz", X)
    result = run_json("fit", "counts.npz", "-k", 3, "-o", "m", "--scale", "standard")
    assert result["n_features"] == 30
    taxonomy = Taxonomy.load(folder / "m")
    assert (taxonomy.predict(X) == taxonomy.tree.labels).mean() > 0.9


def test_a_constant_column_does_no_harm_and_names_are_not_needed(run_json, folder):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:, 1] = 5.0
    np.save(folder / "x.npy", X)
    assert (
        run_json("fit", "x.npy", "-k", 2, "-o", "m", "--scale", "standard")["n_clusters"] == 2
    )
    assert Taxonomy.load(folder / "m").feature_names is None


def test_labels_and_report_are_written(run, folder):
    outputs = ("-o", "m.taxarbor", "--labels", "labels.csv", "--report", "out.html")
    result = run("fit", "customers.csv", "-k", 6, *outputs, *ROLES)
    assert result.exit_code == 0, result.output
    assert "labels -> labels.csv" in result.stdout
    assert "report -> out.html" in result.stdout
    header, *rows = lines_of(folder / "labels.csv")
    assert header == ["id", "cluster"]
    labels = Taxonomy.load(folder / "m.taxarbor").tree.labels
    assert rows == [[f"C{row:03d}", str(label)] for row, label in enumerate(labels)]
    page = (folder / "out.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "business" in page


def test_standard_input_and_names_that_do_not_tell(run, run_json, refuse, folder):
    data = (folder / "customers.csv").read_bytes()
    result = run("fit", "-", "-k", 3, "-o", "m.taxarbor", stdin=data)
    assert result.exit_code == 0
    assert result.stdout.startswith("standard input: 120 rows, 6 columns\n")
    refuse("the model has no name: give one with --output", "fit", "-", stdin=data)
    (folder / "customers.csv").rename(folder / "customers.data")
    refuse("--format", "fit", "customers.data", "-o", "m")
    assert run_json("fit", "customers.data", "--format", "csv", "-o", "m")["n_rows"] == 120


def test_many_columns_left_out_are_summed_up(run, folder):
    text = "x," + ",".join(f"t{j}" for j in range(17)) + "\n"
    text += "".join(f"{row * row}," + ",".join("ab" * 8 + "a") + "\n" for row in range(20))
    (folder / "texts.csv").write_text(text, encoding="utf-8")
    result = run("fit", "texts.csv", "-k", 2, "-o", "m")
    assert result.exit_code == 0
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith(" t4 (always the same) and 12 more\n")
    assert "1 column (17 left out)" in result.stdout


def test_labels_with_gaps_are_told_alike(run_json, refuse, edit, folder):
    edit("gaps.csv", ("Bern,senior", "Bern,"))
    result = run_json("fit", "gaps.csv", "-k", 3, "-o", "m", "--report", "r.html", *ROLES)
    note = "10 rows without a label are left out of the scores"
    assert result["notes"] == [note]
    labels = read_table(folder / "gaps.csv", label_column="class").labels
    is_known = labels != ""
    found = Taxonomy.load(folder / "m").tree.labels[is_known]
    expected = adjusted_rand_score(labels[is_known], found)
    assert result["scores"]["adjusted_rand"] == pytest.approx(expected, abs=1e-12)
    role = ("--label-column", "class")
    again = run_json("report", "m", "gaps.csv", *role, "-o", "s.html")
    assert (again["scores"], again["notes"]) == (result["scores"], [note])
    why = run_json("explain", "m", "gaps.csv", *role, "--node", 0)
    assert (list(why["classes"])[-1], why["classes"]["(no label)"]) == ("(no label)", 10)
    rows = (folder / "gaps.csv").read_text(encoding="utf-8").splitlines()
    bare = [rows[0], *(f"{row.rpartition(',')[0]}," for row in rows[1:])]
    for one, problem in ((bare[1], "none of the "), (rows[1], "one row with a label")):
        text = "\n".join([bare[0], one, *bare[2:]])
        (folder / "bare.csv").write_text(text, encoding="utf-8")
        refuse(problem, "fit", "bare.csv", "-k", 3, "-o", "none", *ROLES)
        assert not (folder / "none").exists()


def test_a_warning_is_a_note(run, run_json, folder):
    np.save(folder / "same.npy", np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0))
    result = run("fit", "same.npy", "-k", 5, "-o", "m")
    assert result.exit_code == 0
    assert result.stderr.startswith("taxarbor: note: the tree has 2 leaves where 5 were asked")
    assert result.stderr.count("\n") == 1
    (note,) = run_json("fit", "same.npy", "-k", 5, "-o", "m2")["notes"]
    assert note in result.stderr


def test_outputs_are_checked_before_anything_is_read(refuse, folder, monkeypatch):
    cases = [
        ("model.taxarbor is there already; --force", ["customers.csv", "-o", "model.taxarbor"]),
        ("customers.csv would be read", ["customers.csv", "-o", "customers.csv", "--force"]),
        ("link.csv would be read", ["./customers.csv", "-o", "link.csv", "--force"]),
        ("there is no folder", ["customers.csv", "-o", "nowhere/m"]),
        ("sub is a folder", ["customers.csv", "-o", "sub", "--force"]),
        ("/dev/null is no plain file", ["customers.csv", "-o", "/dev/null", "--force"]),
        ("written twice", ["customers.csv", "-o", "m", "--report", "./m"]),
        ("there already", ["customers.csv", "-o", "m", "--labels", "labels.csv"]),
        ("there already", ["customers.csv", "-o", "m", "--report", "labels.csv"]),
        ("labels are written as .csv", ["customers.csv", "-o", "m", "--labels", "a.xlsx"]),
        ("File name too long", ["customers.csv", "-o", "m" * 300]),
    ]
    monkeypatch.setattr(_read, "read_table", None)  # nothing is read
    (folder / "sub").mkdir()
    (folder / "link.csv").symlink_to("customers.csv")
    (folder / "labels.csv").write_text("mine", encoding="utf-8")
    for message, arguments in cases:
        refuse(message, "fit", *arguments)


def test_bad_data_is_one_line(refuse, folder):
    cases = [
        ("nowhere.csv: No such file", ["nowhere.csv"]),
        ("sub is a folder without Parquet files", ["sub"]),
        ("one.csv has one row: there is nothing to divide", ["one.csv"]),
        ("two.csv has 2 rows, too few for 8 clusters; give a smaller -k", ["two.csv"]),
        ("to standard output", ["customers.csv", "--labels", "-"]),
        ("did you mean 'class'", ["customers.csv", "--label-column", "clas"]),
        ("no column called 'x'", ["customers.csv", "--columns", "x"]),
        ("has no use for the column 'y': empty", ["empty.csv", "-k", "2", "--columns", "x,y"]),
        ("'z', which is no column", ["empty.csv", "-k", "2", "--categories", "z"]),
        ("did you mean 'city'?", ["customers.csv", "--categories", "age, citty"]),
        ("--dates names 'when', which is no column", ["customers.csv", "--dates", "when"]),
        ("column 'age' of X holds no dates", ["customers.csv", "--dates", "age"]),
        ("for files of csv, tsv and parquet", ["huge.npy", "--dates", "age"]),
        ("the table has no column to use: 'y' (empty)", ["none.csv", "-k", "2"]),
        ("gaps in 1 column: 'x'; fill", ["empty.csv", "-k", "2", "--missing", "error"]),
        ("has 120 rows, too few for 121 clusters", ["customers.csv", "-k", "121"]),
        ("--jobs must not be 0; give 1", ["customers.csv", "--jobs", "0"]),
        ("has 1 infinite cell in 'x'", ["holes.csv"]),
        ("damaged", ["bad.parquet"]),
        ("x.mtx is no mtx file", ["x.mtx"]),
        ("the table varies by about", ["huge.npy"]),
    ]
    (folder / "sub").mkdir()
    (folder / "holes.csv").write_text("x,y\n1,2\ninf,3\n", encoding="utf-8")
    (folder / "empty.csv").write_text("x,y\n1,\n,\n4,\n", encoding="utf-8")
    (folder / "none.csv").write_text("y,z\n,u\n,u\n,u\n", encoding="utf-8")
    (folder / "bad.parquet").write_bytes(b"hello\nworld")
    (folder / "one.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    (folder / "two.csv").write_text("x,y\n1,2\n3,4\n", encoding="utf-8")
    (folder / "x.mtx").write_bytes((folder / "customers.csv").read_bytes())
    np.save(folder / "huge.npy", np.random.default_rng(0).normal(size=(40, 3)) * 1e200)
    for message, arguments in cases:
        refuse(message, "fit", *arguments, "-o", "m")


def test_messages_name_options(refuse, folder, run):
    (folder / "holes.csv").write_text("x,y\n1,2\nv,3\n2,3\n", encoding="utf-8")
    refuse("choose other columns with --columns", "fit", "holes.csv", "-o", "m")
    gaps = ("fit", "gaps.csv", "-o", "m", "-k", 2, "--missing", "error")
    (folder / "gaps.csv").write_text("x,y\n1,2\n,3\n2,4\n", encoding="utf-8")
    refuse("fill them, or choose another --missing", *gaps)
    roles = ("--columns", "x,y", "--id-column", "x")
    refuse("--columns has 'x', which is the id", "fit", "holes.csv", "-o", "m", *roles)
    for names in ("x,x", "x\ny"):
        refuse("--columns must be names", "fit", "holes.csv", "-o", "m", "--columns", names)
    lines = ["a_id,b_id,x", *(f"{row},{-row},{row % 7}" for row in range(20))]
    (folder / "ids.csv").write_text("\n".join(lines), encoding="utf-8")
    result = run("fit", "ids.csv", "-k", 2, "-o", "m").stderr
    assert result.count("looks like an identifier") == 2


def test_the_page_has_a_title(run, folder):
    os.rename("customers.csv", "our <customers>.csv")
    both = ("fit", "our <customers>.csv", "-k", 2, "--report", "r.html", "--force", "-o", "m")
    assert run(*both).exit_code == 0
    assert "our &lt;customers&gt;</" in (folder / "r.html").read_text(encoding="utf-8")
    assert run(*both, "--title", "Who buys").exit_code == 0
    assert "Who buys</" in (folder / "r.html").read_text(encoding="utf-8")


def test_a_file_that_comes_during_the_fit_stays(run, folder, monkeypatch):
    both = ("fit", "customers.csv", "-o", "m", "--report", "r.html", "--labels", "l.csv")
    for late in ("m", "r.html", "l.csv"):

        def spy(late=late, **settings):
            (folder / late).write_text("theirs", encoding="utf-8")
            return Taxarbor(**settings)

        monkeypatch.setitem(_fitting.METHODS, "taxarbor", spy)
        result = run(*both)
        assert result.exit_code == 2
        assert result.stderr.endswith(f"taxarbor: {late} is there already; --force replaces it\n")
        assert (folder / late).read_text(encoding="utf-8") == "theirs"
        assert not list(folder.glob(".taxarbor-*"))
        assert run(*both, "--force").exit_code == 0
        assert (folder / late).read_bytes() != b"theirs"
        for name in ("m", "r.html", "l.csv"):
            (folder / name).unlink()


def test_texts_of_files_do_nothing_to_a_terminal(run, edit):
    edit("odd.csv", ("city", "ci\x1b[2Jty"), ("age", "a\x1b]0;title\x07ge"))
    result = run("fit", "odd.csv", "-k", 2, "-o", "m")
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    result = run("fit", "odd.csv", "-o", "n", "--columns", "nothing")
    assert result.exit_code == 2
    assert "\x1b" not in result.output


def test_a_header_of_numbers_is_noted(run, run_json, folder):
    X = read_table(folder / "customers.csv", columns=COLUMNS).X
    np.savetxt(folder / "bare.csv", X, delimiter=",")
    result = run("fit", "bare.csv", "-k", 2, "-o", "m")
    assert "taxarbor: note: the first line holds numbers only" in result.stderr
    for command in (["fit", "bare.csv", "-k", 2, "-o", "n"], ["predict", "m", "bare.csv"]):
        assert "numbers only" in run_json(*command)["notes"][0]
    assert "numbers only" in run("predict", "m", "bare.csv").stderr


def test_options_have_bounds(refuse):
    for option, value in (
        *(("--branching", 1), ("--seed", 2**32), ("--max-depth", 0), ("--format", "xls")),
    ):
        refuse("Invalid value for", "fit", "customers.csv", "-o", "m", option, value)


def test_a_missing_extra_is_one_line(refuse, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    refuse("reading csv needs pandas: pip install pandas", "fit", "customers.csv", "-o", "m")


def test_force_replaces(run, folder):
    before = (folder / "model.taxarbor").read_bytes()
    result = run("fit", "customers.csv", "-k", 3, "-o", "model.taxarbor", "--force")
    assert result.exit_code == 0
    assert (folder / "model.taxarbor").read_bytes() != before


def test_names_are_no_markup(run, edit, terminal):
    names = {"items": "[/b]:cat:[red]\x1b[2J", "age": "[bold]", "spend": "line \x1b[2J"}
    edit("odd.csv", *names.items(), ("visits", "[link=http://x]y"))
    terminal(200)
    result = run("fit", "odd.csv", "-k", 6, "-o", "m.taxarbor", *ROLES[2:4], "--scale", "none")
    assert result.exit_code == 0
    assert "[/b]:cat:[red]" in result.stdout
    assert "\x1b[2J" not in result.stdout
    assert "├──" in result.stdout


def test_blanks_around_names_count_only_where_names_have_them(folder, run, edit):
    def chosen(columns, data="customers.csv", stdin=None):
        options = ("-k", 2, "-o", "m", "--force", "--columns", columns)
        assert run("fit", data, *options, stdin=stdin).exit_code == 0
        return Taxonomy.load(folder / "m").feature_names

    assert chosen("age, spend ") == ["age", "spend"]
    assert chosen(" age", "-", (folder / "customers.csv").read_bytes()) == ["age"]
    edit("odd.csv", ("spend", " spend"))
    assert chosen("age, spend", "odd.csv") == ["age", " spend"]


def test_an_interrupt_while_reading_writes_nothing(start, folder):
    process = start("fit", "-", "-o", "m.taxarbor", stdin=subprocess.PIPE)
    process.stdin.write("x,y\n" + "1,2\n" * 100_000)  # more than a pipe holds: it is reading
    process.stdin.flush()
    give_up = time.monotonic() + 60.0
    while process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.5)  # Python misses a signal that comes between two reads of a pipe
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
    assert process.returncode == 130
    assert process.stderr.read() == "taxarbor: interrupted\n"
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
    assert sorted(path.name for path in folder.iterdir()) == ["customers.csv", "model.taxarbor"]
