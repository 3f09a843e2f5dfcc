"""Tables as people have them, with gaps, categories, ids and dates: from the file to a page."""

import csv
import webbrowser

import numpy as np
import pytest
from scipy import sparse

from taxarbor import Taxonomy

ISLANDS = ("Biscoe", "Dream", "Torgersen")
SPECIES = ("Gentoo", "Chinstrap", "Adelie")


def write(folder, name, header, rows):
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])


def films(folder):
    """Titles that differ, money with gaps, genres, dates."""
    rng = np.random.default_rng(0)
    genres = ("Action", "Drama", "Comedy")
    rows = []
    for film in range(36):
        is_big = film % 3 == 0
        budget = round((150e6 if is_big else 8e6) * rng.uniform(0.8, 1.2))
        gross = "" if film % 7 == 1 else round(budget * rng.uniform(2, 4))
        rating = "N/A" if film % 11 == 5 else round(rng.uniform(4, 9), 1)
        day = f"20{film % 20:02d}-{film % 12 + 1:02d}-15"
        rows.append([100 + film, f"Film {film}", genres[film % 3], day, budget, gross, rating])
    write(folder, "films.csv", "film_id,title,genre,released,budget,gross,rating", rows)


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


def penguins(folder):
    """Measurements, all with gaps, islands, sexes with gaps; and a raw one with ids, dates."""
    rng = np.random.default_rng(2)
    rows, raw = [], []
    for bird in range(36):
        kind = bird % 3
        island = ISLANDS[0] if kind == 0 else ISLANDS[bird // 3 % 3]
        sizes = rng.normal(
            [[47, 15, 217, 5100], [49, 18, 196, 3700], [39, 18, 190, 3700]][kind]
        )
        cells = [round(size, 1) for size in sizes] if bird != 3 else [""] * 4
        sex = ("male", "female", "NA")[bird % 2 if bird % 8 else 2]
        rows.append([SPECIES[kind], island, *cells, sex])
        day = f"2008-11-{bird % 28 + 1:02d}"
        raw.append([f"N{bird}A{kind}", SPECIES[kind], island, day, *cells, sex.upper()])
    sizes = "bill length,bill depth,flipper,mass"
    write(folder, "penguins.csv", f"species,island,{sizes},sex", rows)
    header = f"Individual ID,Species,Island,Date Egg,{sizes},Sex"
    write(folder, "penguins raw.csv", header, raw)


@pytest.fixture
def seen(monkeypatch, folder):
    """The four tables, a browser, and what it was result to show."""
    for make in (films, cars, penguins):
        make(folder)
    shown = []
    monkeypatch.setattr(webbrowser, "open", lambda page: shown.append(page) or True)
    monkeypatch.setenv("BROWSER", "one")
    return shown


TOLD = {
    "films.csv": (
        [],
        "36 rows, 4 columns (2 left out)",
        *("left out: film_id (looks like an identifier", "released (dates; name it in --dates"),
        *("rows are named by title", "gaps in 2 of 4 columns count as the column's mean"),
        "numbers are scaled to variance 1, beside categories",
    ),
    "cars.csv": (
        ["--categories", "cylinders"],
        "40 rows, 6 columns (1 left out)",
        *("left out: name (text, 25 different values in 40 rows)", "most in mpg, 1"),
    ),
    "penguins.csv": (
        ["--label-column", "species"],
        "36 rows, 6 columns",
        *("gaps in 5 of 6 columns", "most in sex, 1"),
    ),
    "penguins raw.csv": (
        ["--label-column", "Species", "--dates", "Date Egg"],
        "36 rows, 9 columns",
        *("rows are named by Individual ID", "gaps in 5 of 9 columns"),
    ),
}


def test_one_command_from_the_file_to_a_page(run, run_json, folder, seen):
    for name, (options, first, *notes) in TOLD.items():
        result = run("fit", name, "-k", 3, "--open", *options)
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines()[0] == f"{name}: {first}"
        for note in notes:
            assert note in result.stderr, (name, note)
        stem = name.removesuffix(".csv")
        assert seen.pop() == (folder / f"{stem}.html").as_uri()
        assert (folder / f"{stem}.html").read_text(encoding="utf-8").startswith("<!doctype")
        taxonomy = Taxonomy.load(folder / f"{stem}.taxarbor")
        both = (f"{stem}.taxarbor", name)
        found = run_json("predict", *both)
        assert np.mean(found["labels"] == taxonomy.tree.labels) > 0.9
        assert run_json("explain", *both)["nodes"]
        assert run("show", both[0]).exit_code == 0
    words = run("show", "cars.taxarbor").stdout
    assert "origin" in words or "cylinders = 8" in words
    result = run("fit", "cars.csv", "--open")
    assert (result.exit_code, seen) == (2, [])
    assert "cars.taxarbor is there already; --force replaces it" in result.stderr


def test_a_page_without_a_browser(run, folder, seen, monkeypatch):
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    result = run("fit", "cars.csv", "--open", "--report", "here.html")
    assert (result.exit_code, seen) == (0, [])
    assert "there is no browser here; open here.html in one" in result.stderr
    assert (folder / "here.html").exists()

    def fail(page):
        raise webbrowser.Error("no browser")

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", fail)
    assert "no browser" in run("fit", "cars.csv", "--open", "--force").stderr


def test_what_a_model_has_not_seen_is_missing(run_json, refuse, folder, seen):
    run_json("fit", "cars.csv", "-k", 3)
    text = (folder / "cars.csv").read_text(encoding="utf-8")
    (folder / "new.csv").write_text(text.replace("europe", "mars"), encoding="utf-8")
    result = run_json("predict", "cars.taxarbor", "new.csv")
    assert result["notes"] == [
        "10 cells hold what the model has not seen: origin = mars",
        "19 cells count as missing, that is, as the column's mean",
    ]
    assert len(result["labels"]) == 40
    (folder / "few.csv").write_text(text.replace("weight", "kg"), encoding="utf-8")
    refuse(
        "few.csv has no column called 'weight': it has", "predict", "cars.taxarbor", "few.csv"
    )
    result = run_json("show", "cars.taxarbor")["model"]
    assert result["columns"][-1]["column"] == "origin"
    missing = {one["column"]: one["missing"] for one in result["columns"] if one["missing"]}
    assert missing == {"mpg": pytest.approx(0.125), "horsepower": pytest.approx(0.1)}
    assert result["dropped"][0]["column"] == "name"
    assert result["dropped"][0]["reason"].startswith("text, 25")


def test_matrices_may_have_gaps(run_json, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) + 5.0 * (np.arange(40) % 2)[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    for name, save in (
        ("a.npz", lambda path: np.savez(path, X=X, feature_names=["p", "q", "r", "s"])),
        ("b.npy", lambda path: np.save(path, X)),
        ("c.npz", lambda path: sparse.save_npz(path, sparse.csr_array(X))),
    ):
        save(folder / name)
        for options in ((), ("--scale", "standard")):
            result = run_json("fit", name, "-k", 2, "-o", "m", "--force", *options)
            assert result["notes"][0].startswith("gaps in 4 of 4 columns count as the column's")
            assert ("most in r," in result["notes"][0]) == (name == "a.npz")
            labels = Taxonomy.load(folder / "m").tree.labels.tolist()
            assert labels in ([0, 1] * 20, [1, 0] * 20)
            assert run_json("predict", "m", name)["labels"] == labels
    X[:, 1] = np.nan
    np.savez(folder / "a.npz", X=X, feature_names=["p", "q", "r", "s"])
    both = ("fit", "a.npz", "-k", 2, "-o", "m", "--force", "--missing", "mean")
    assert run_json(*both)["dropped"] == [{"column": "q", "reason": "empty"}]
    assert Taxonomy.load(folder / "m").feature_names == ["p", "r", "s"]
    assert len(run_json("predict", "m", "a.npz")["labels"]) == 40


def test_rows_are_set_apart(run, run_json, refuse, folder, seen):
    result = run_json("fit", "cars.csv", "-k", 3, "--noise", 0.1, "--labels", "l.csv")
    assert result["n_noise"] == 4
    assert "4 rows are set apart, far from all clusters" in result["notes"]
    lines = (folder / "l.csv").read_text(encoding="utf-8").splitlines()
    assert sum(line.endswith(",-1") for line in lines) == 4
    both = ("cars.taxarbor", "cars.csv")
    noise = [
        line for line in run("predict", *both, "--proba").stdout.splitlines() if ",-1," in line
    ]
    assert len(noise) == 4
    assert all(line.split(",")[2] == "" for line in noise)
    rows = run_json("explain", *both, "--new", "cars.csv")["rows"]
    assert [row["leaf"] for row in rows if row["cluster"] < 0] == [None] * 4
    assert run("explain", *both, "--new", "cars.csv").stdout.count("  set apart") == 4
    for share in (1, -0.1):
        refuse("--noise must be", "fit", "cars.csv", "-k", 3, "-o", "m", "--noise", share)


def test_an_assessed_table(run_json, seen):
    run_json("fit", "penguins.csv", "-k", 3, "--label-column", "species")
    result = run_json("assess", "penguins.taxarbor", "penguins.csv", "--refits", 2)
    assert (result["n_refits"], result["notes"]) == (2, [])


def test_weights_are_a_column(run_json, refuse, folder, seen):
    lines = (folder / "cars.csv").read_text(encoding="utf-8").splitlines()
    heavy = [f"{line},{row % 3}" for row, line in enumerate(lines[1:])]
    (folder / "w.csv").write_text("\n".join([f"{lines[0]},n", *heavy]), encoding="utf-8")
    repeated = [line for row, line in enumerate(lines[1:]) for _ in range(row % 3)]
    (folder / "r.csv").write_text("\n".join([lines[0], *repeated]), encoding="utf-8")
    run_json("fit", "w.csv", "-k", 3, "--weights", "n")
    run_json("fit", "r.csv", "-k", 3)
    weighted, plain = (Taxonomy.load(folder / f"{name}.taxarbor") for name in "wr")
    assert "n" not in weighted.feature_names
    rows = np.repeat(np.arange(40), np.arange(40) % 3)
    assert (weighted.tree.labels[rows] == plain.labels).all()
    fit = ("fit", "w.csv", "-k", 3, "-o", "m", "--weights")
    refuse("--weights names 'm', which is no column to use", *fit, "m")
    refuse("--weights names 'origin', which does not hold numbers", *fit, "origin")
    for old, new, result in ((",2", ",-2", "not negative; row 2 has -2"), (",", ",", "")):
        wrong = [line[:-2] + line[-2:].replace(old, new) for line in heavy]
        wrong = wrong if result else [line[:-1] + "0" for line in heavy]
        (folder / "w.csv").write_text("\n".join([f"{lines[0]},n", *wrong]), encoding="utf-8")
        refuse(
            f"--weights must be finite and {result}" if result else "--weights is zero", *fit, "n"
        )
