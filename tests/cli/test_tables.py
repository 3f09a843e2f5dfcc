"""Tables with missing values, categories, ids and dates: from the file to a page."""

import csv
import webbrowser

import numpy as np
import pytest
from scipy import sparse

from taxarbor import Taxonomy


def write(folder, name, header, rows):
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])


def cars(folder):
    """Names that repeat, miles per gallon with gaps, few origins, years."""
    rng = np.random.default_rng(1)
    rows = []
    for car in range(40):
        origin = ("usa", "europe", "japan", "japan")[car % 4]
        is_big = origin == "usa"
        mpg = "?" if car % 9 == 3 else round(rng.normal(15 if is_big else 31, 2), 1)
        weight = round(rng.normal(4200 if is_big else 2200, 150))
        power = "" if car % 10 == 7 else round(rng.normal(160 if is_big else 80, 8))
        maker = f"maker {car % 25}"
        rows.append([mpg, 8 if is_big else 4, power, weight, 1970 + car % 12, origin, maker])
    write(folder, "cars.csv", "mpg,cylinders,horsepower,weight,year,origin,name", rows)


@pytest.fixture
def opened(monkeypatch, folder):
    """The cars, a browser, and the pages it opens."""
    cars(folder)
    shown = []
    monkeypatch.setattr(webbrowser, "open", lambda page: shown.append(page) or True)
    monkeypatch.setenv("BROWSER", "one")
    return shown


def test_one_command_from_the_file_to_a_page(run, run_json, folder, opened):
    result = run("fit", "cars.csv", "-k", 3, "--open", "--categories", "cylinders")
    assert result.stdout.splitlines()[0] == "cars.csv: 40 rows, 6 columns (1 left out)"
    for note in ("name (25 different values in 40 rows)", "most in mpg, 1"):
        assert note in result.stderr, note
    assert opened == [(folder / "cars.html").as_uri()]
    assert (folder / "cars.html").read_text(encoding="utf-8").startswith("<!doctype")
    both = ("cars.taxarbor", "cars.csv")
    labels = Taxonomy.load(folder / both[0]).tree.labels
    assert np.mean(run_json("predict", *both)["labels"] == labels) > 0.9
    assert run_json("explain", *both)["nodes"]
    run("show", both[0])
    run("fit", "cars.csv", "--open", code=2)  # there is a model already
    assert len(opened) == 1


def test_a_page_without_a_browser(run, folder, opened, monkeypatch):
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    result = run("fit", "cars.csv", "--open", "--report", "here.html")
    assert opened == []
    assert "open here.html" in result.stderr
    assert (folder / "here.html").exists()


def test_missing_values_and_unknown_categories(run_json, refuse, folder, opened):
    run_json("fit", "cars.csv", "-k", 3)
    text = (folder / "cars.csv").read_text(encoding="utf-8")
    (folder / "new.csv").write_text(text.replace("europe", "mars"), encoding="utf-8")
    predict = ("predict", "cars.taxarbor")
    assert "origin = 'mars' (10 rows)" in "".join(run_json(*predict, "new.csv")["notes"])
    (folder / "few.csv").write_text(text.replace("weight", "kg"), encoding="utf-8")
    few, whole = (run_json(*predict, name) for name in ("few.csv", "cars.csv"))
    assert (few["labels"], few["notes"]) == (whole["labels"], [])  # no rule reads it
    (folder / "few.csv").write_text(text.replace("origin", "from"), encoding="utf-8")
    refuse("'origin'", *predict, "few.csv")
    model = run_json("show", "cars.taxarbor")["model"]
    assert model["columns"][-1]["column"] == "origin"
    shares = {one["column"]: one["missing"] for one in model["columns"] if one["missing"]}
    assert shares == {"mpg": pytest.approx(0.125), "horsepower": pytest.approx(0.1)}
    assert [one["column"] for one in model["dropped"]] == ["name"]


def test_matrices_with_missing_values(run_json, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) + 5.0 * (np.arange(40) % 2)[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    names = ["p", "q", "r", "s"]
    for name, save in (
        ("a.npz", lambda path: np.savez(path, X=X, feature_names=names)),
        ("b.npy", lambda path: np.save(path, X)),
        ("c.npz", lambda path: sparse.save_npz(path, sparse.csr_array(X))),
    ):
        save(folder / name)
        for options in ((), ("--scale", "standard")):
            note, *_ = run_json("fit", name, "-k", 2, "-o", "m", "--force", *options)["notes"]
            assert "4 of 4 columns" in note
            labels = Taxonomy.load(folder / "m").tree.labels.tolist()
            assert labels in ([0, 1] * 20, [1, 0] * 20)
            assert run_json("predict", "m", name)["labels"] == labels
    X[:, 1] = np.nan
    np.savez(folder / "a.npz", X=X, feature_names=names)
    document = run_json("fit", "a.npz", "-k", 2, "-o", "m", "--force")
    assert [one["column"] for one in document["dropped"]] == ["q"]
    assert Taxonomy.load(folder / "m").feature_names == ("p", "r", "s")
    assert len(run_json("predict", "m", "a.npz")["labels"]) == 40


def test_noise(run, run_json, folder, opened):
    document = run_json("fit", "cars.csv", "-k", 3, "--noise", 0.1, "--labels", "l.csv")
    assert document["n_noise"] == 4
    assert "4 rows labelled as noise" in document["notes"]
    lines = (folder / "l.csv").read_text(encoding="utf-8").splitlines()
    assert sum(line.endswith(",-1") for line in lines) == 4
    both = ("cars.taxarbor", "cars.csv")
    lines = run("predict", *both, "--proba").stdout.splitlines()
    noise = [line.split(",") for line in lines if ",-1," in line]
    assert [cells[2] for cells in noise] == [""] * 4  # no probability
    row = [line.split(",")[1] for line in lines[1:]].index("-1")
    assert "noise" in run("explain", *both, "--row", row).stdout


def test_an_assessed_table(run_json, opened):
    run_json("fit", "cars.csv", "-k", 3, "--label-column", "origin")
    document = run_json("assess", "cars.taxarbor", "cars.csv", "--refits", 2)
    assert (document["n_refits"], document["notes"]) == (2, [])
