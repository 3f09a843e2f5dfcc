"""``taxarbor demo``."""


def test_animals(run, folder):
    told = run("demo")
    assert (told.exit_code, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert lines[0].startswith("206 animals, 85 attributes, no labels: 12 groups in ")
    assert any("+gives_milk" in line for line in lines)
    assert any("blue whale, dolphin" in line for line in lines)
    for measure in ("adjusted shortest path", "adjusted path sharing", "dendrogram purity"):
        assert any(line.startswith(measure) for line in lines)
    assert lines[-1] == "The same to look at: demo.html"
    assert (folder / "demo.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_digits_in_json(run_json, folder):
    told = run_json("demo", "--data", "digits", "-o", "digits.html")
    assert (told["n_rows"], told["n_groups"], told["report"]) == (1797, 12, "digits.html")
    assert told["scores"]["adjusted_rand"] > 0.5
    assert "data:image/png" in (folder / "digits.html").read_text(encoding="utf-8")


def test_nothing_is_overwritten(refused, run, folder):
    (folder / "demo.html").write_text("mine", encoding="utf-8")
    refused("demo.html is there already", "demo")
    assert run("demo", "--force").exit_code == 0
    assert (folder / "demo.html").read_text(encoding="utf-8") != "mine"
