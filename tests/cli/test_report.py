"""``taxarbor report``."""

BOTH = ("report", "model.taxarbor", "customers.csv")


def test_a_page_is_written(run, folder):
    options = ("--id-column", "id", "--label-column", "class", "--title", "Who <buys> what")
    told = run(*BOTH, "-o", "r.html", *options)
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout == "report -> r.html\n"
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Who &lt;buys&gt; what" in page
    assert "C007" in page
    assert "business" in page


def test_the_title_is_the_name_of_the_file(run, folder):
    assert run(*BOTH, "-o", "r.html").exit_code == 0
    assert "customers</" in (folder / "r.html").read_text(encoding="utf-8")


def test_json_and_truth(run_json, folder):
    (folder / "t.nwk").write_text("((student,family),(senior,business));", encoding="utf-8")
    options = ("--label-column", "class", "--truth", "t.nwk")
    assert run_json(*BOTH, "-o", "r.html", *options) == {"report": "r.html", "notes": []}
    assert run_json(*BOTH, "-o", "r.html", "--force") == {"report": "r.html", "notes": []}


def test_bad_input_is_one_line(refused, folder):
    (folder / "t.nwk").write_text("((student,family),(senior,business));", encoding="utf-8")
    (folder / "there.html").write_text("mine", encoding="utf-8")
    refused("there already", *BOTH, "-o", "there.html")
    refused("give --label-column, too", *BOTH, "-o", "r.html", "--truth", "t.nwk")
    refused("name a file in place of -", *BOTH, "-o", "-")
    labels = ("--label-column", "city", "--truth", "t.nwk")
    refused("3 of the 3 classes of the rows", *BOTH, "-o", "r.html", *labels)
    refused("read and written", *BOTH, "-o", "t.nwk", "--truth", "t.nwk", "--force")
    refused("no folder", *BOTH, "-o", "nowhere/r.html")
    refused("No such file", "report", "model.taxarbor", "nowhere.csv", "-o", "r.html")
