from taxarbor import Hierarchy


def names(folder, run, columns, data="customers.csv", stdin=None):
    told = run("fit", data, "-k", 2, "-o", "m", "--force", "--columns", columns, stdin=stdin)
    assert told.exit_code == 0, told.output
    return Hierarchy.load(folder / "m").feature_names


def test_blanks_around_names_do_not_count(folder, run):
    assert names(folder, run, "age, spend ") == ("age", "spend")
    data = (folder / "customers.csv").read_bytes()
    assert names(folder, run, " age", "-", data) == ("age",)


def test_blanks_count_where_names_have_them(folder, run):
    text = (folder / "customers.csv").read_text(encoding="utf-8")
    (folder / "customers.csv").write_text(text.replace("spend", " spend"), encoding="utf-8")
    assert names(folder, run, "age, spend") == ("age", " spend")
