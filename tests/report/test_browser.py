"""The page in a real browser: no error, no request, and all of it does what it says."""

import csv
import io
import re

import numpy as np
import pytest

from taxarbor import HMMC
from taxarbor.report import report

# All texts of the picture, in pixels from the corner of the canvas, and what is around them.
SEEN = """() => {
  const canvas = document.getElementById("canvas").getBoundingClientRect();
  const page = document.documentElement, tools = document.querySelector(".tools");
  const sizeOf = (one) => parseFloat(getComputedStyle(one).fontSize);
  const shown = [...document.querySelectorAll("#scene text")].map((one) => {
    const box = one.getBoundingClientRect(), turn = one.getScreenCTM();
    return {
      text: one.textContent, size: sizeOf(one) * Math.hypot(turn.a, turn.b),
      left: box.left - canvas.left, right: box.right - canvas.left,
      top: box.top - canvas.top, bottom: box.bottom - canvas.top,
    };
  });
  const isText = (kid) => kid.nodeType === 3 && kid.data.trim();
  const hasText = (one) => [...one.childNodes].some(isText);
  const others = [...document.body.querySelectorAll(":not(svg *)")]
    .filter((one) => hasText(one) && one.checkVisibility());
  return {
    shown, width: canvas.width, height: canvas.height,
    above: tools.getBoundingClientRect().bottom - canvas.top,
    scroll: page.scrollWidth - page.clientWidth, smallest: Math.min(...others.map(sizeOf)),
  };
}"""


def nodes(page):
    return page.locator(".node")


def until(page, expression):
    """Wait for something; the page's own policy forbids playwright's way."""
    for _ in range(100):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never came true: {expression}")


def is_below(tree, node):
    """Return which leaves lie at a node or below it."""
    return [node in tree.path(leaf) for leaf in tree.leaves]


def read_csv(text):
    assert text.endswith("\r\n")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def overlaps(one, other):
    """Say whether two texts cover each other by more than their empty margins."""
    wide = min(one["right"], other["right"]) - max(one["left"], other["left"])
    high = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return wide > 1.5 and high > 5


MANY = pytest.param(1000, marks=pytest.mark.long)


@pytest.mark.parametrize("n_clusters", [12, 50, 200, MANY])
def test_the_first_view_is_whole_and_legible_at_any_size(visit, planted, n_clusters):
    path, taxonomy = planted(n_clusters)
    for width, height in ((1280, 800), (420, 860)):
        page = visit(path, viewport={"width": width, "height": height}, has_touch=width < 500)
        usual = "icicle" if n_clusters >= 50 else "tree"
        assert page.locator(f"#as-{usual}").get_attribute("aria-pressed") == "true"
        for kind in ("tree", "icicle"):
            page.click(f"#as-{kind}")
            seen = page.evaluate(SEEN)
            assert seen["above"] <= 0.5, "the tools cover the picture"
            assert seen["scroll"] == 0
            assert seen["smallest"] >= 9
            for one in seen["shown"]:
                assert one["size"] >= 9, one
                assert -1 <= one["left"] <= one["right"] <= seen["width"] + 1, one
                assert -2 <= one["top"] <= one["bottom"] <= seen["height"] + 3, one
            texts = [one for one in seen["shown"] if one["text"]]
            pairs = [(a, b) for n, a in enumerate(texts) for b in texts[:n] if overlaps(a, b)]
            assert pairs == []
            assert max(one["bottom"] for one in texts) > 0.75 * seen["height"]
            assert max(one["right"] for one in texts) > 0.7 * seen["width"]
            # All clusters and rows are there, or said to be folded.
            ends = "shown.filter((node) => !node.isOpen)"
            for name, total in (("count", taxonomy.tree.n_leaves), ("size", 2048)):
                assert page.evaluate(f"{ends}.reduce((sum, n) => sum + n.{name}, 0)") == total
            if kind == "tree":
                folded = page.locator(".closed .folded").all_text_contents()
                text = " ".join(folded).replace(",", "")
                counts = [int(n) for n in re.findall(r"(\d+) clusters?", text)]
                rows = [int(n) for n in re.findall(r"(\d+) rows?", text)]
                assert len(counts) == len(rows) == page.locator(".closed").count()
                n_whole = page.locator(".node.leaf").count()
                assert sum(counts) + n_whole == taxonomy.tree.n_leaves
                assert (n_clusters == 12) == (not counts) or width < 500


def test_what_is_folded_unfolds(visit, planted):
    page = visit(planted(200)[0])
    page.click("#as-tree")
    drawn = [page.evaluate("shown.length")]
    page.click("#zoom-in")
    drawn.append(page.evaluate("shown.length"))
    page.keyboard.press("+")
    drawn.append(page.evaluate("shown.length"))
    page.mouse.move(400, 400)
    page.mouse.wheel(0, -240)
    until(page, f"shown.length > {drawn[-1]}")
    assert drawn == sorted(set(drawn))
    assert min(one["size"] for one in page.evaluate(SEEN)["shown"]) >= 9
    page.keyboard.press("0")
    assert page.evaluate("shown.length") == drawn[0]
    closed = page.locator(".node.closed").first
    name = closed.get_attribute("id")
    closed.locator(".folded").first.click()
    assert page.locator(f"#{name}").get_attribute("aria-expanded") == "true"
    assert page.locator(".node.chosen").get_attribute("id") == name
    assert page.evaluate("shown.length") > drawn[0]
    page.click("#zoom-fit")
    assert page.evaluate("shown.length") == drawn[0]
    # What is deep in the tree is found there, whatever the icicle has shown.
    for leaf in (0, 77, 199):
        page.click("#as-icicle")
        page.evaluate(f"choose(leaves[{leaf}])")
        page.click("#as-tree")
        assert page.locator(".node.chosen .label").text_content() == f"c{leaf}"
        box, canvas = (page.locator(name).bounding_box() for name in (".chosen .dot", "#tree"))
        assert canvas["y"] < box["y"] < canvas["y"] + canvas["height"]
    page.click("#zoom-fit")
    # Two fingers.
    page.evaluate("""() => {
      const tell = (type, id, x) => document.getElementById("tree").dispatchEvent(
        new PointerEvent(type, { pointerId: id, clientX: x, clientY: 400, bubbles: true }));
      tell("pointerdown", 1, 300); tell("pointerdown", 2, 400); tell("pointermove", 2, 600);
      tell("pointerup", 1, 300); tell("pointerup", 2, 600);
    }""")
    assert page.evaluate("shown.length") > drawn[0]


def test_the_icicle_zooms_by_click_key_and_wheel(visit, planted):
    page = visit(planted(200)[0])
    whole = nodes(page).count()
    page.locator("#node-1 .back").click()
    assert page.evaluate("zoomed.id") == 1
    assert page.locator("#node-1").get_attribute("class").count("strip")
    high = page.locator("#node-1 .back").bounding_box()["height"]
    assert high == pytest.approx(page.locator("#tree").bounding_box()["height"], abs=3)
    page.keyboard.press("ArrowRight")
    inner = page.locator(".node.chosen").get_attribute("data-id")
    page.keyboard.press("ArrowDown")
    assert page.locator(".node.chosen").get_attribute("data-id") != inner
    page.keyboard.press("Enter")
    deeper = page.evaluate("zoomed.id")
    assert deeper not in (0, 1)
    assert page.evaluate("document.activeElement.id") == f"node-{deeper}"
    page.keyboard.press("Escape")
    assert page.evaluate("zoomed.id") == 1
    page.locator("#node-0 .back").click()
    assert nodes(page).count() == whole
    page.mouse.move(300, 400)
    page.mouse.wheel(0, -120)
    until(page, "zoomed !== root")
    page.click("#zoom-fit")
    page.evaluate("choose(leaves[150])")  # too low to be seen: it is shown larger
    assert page.locator(".node.chosen .back").bounding_box()["height"] > 10
    for _ in range(12):
        page.click("#zoom-out")
    assert page.evaluate("zoomed === root")


@pytest.mark.parametrize("n_clusters", [12, 200])
def test_the_slider_cuts_as_the_taxonomy_does(visit, planted, n_clusters):
    path, taxonomy = planted(n_clusters)
    page = visit(path)
    for wanted in (1, 2, 5, n_clusters // 2, n_clusters):
        page.locator("#cut").fill(str(wanted))
        until(page, f"clusters.length === {wanted}")
        assert page.locator("#cut-number").input_value() == str(wanted)
        rows = read_csv(page.evaluate("toCsv(root)"))
        found = np.full(2048, -1)
        found[[int(row["row"]) for row in rows]] = [int(row["cluster"]) for row in rows]
        np.testing.assert_array_equal(found, taxonomy.cut(wanted))
        ends = "shown.filter((node) => !node.isOpen).reduce((sum, node) => sum + node.count, 0)"
        assert page.evaluate(ends) == wanted
        whole = f"{wanted} of {n_clusters} clusters" if wanted < n_clusters else str(wanted)
        assert whole in page.locator("#subtitle").text_content()
    page.fill("#cut-number", "7")
    page.keyboard.press("Enter")
    page.evaluate("choose(clusters[6])")
    assert page.locator("#panel .tag").text_content() == "c6"
    assert "Splits into" not in page.locator("#panel").text_content()
    page.click("#tab-clusters")
    assert page.locator("#clusters tbody tr").count() == 7
    page.fill("#cut-number", "3")  # the slider is here, too, and what is chosen follows
    page.keyboard.press("Enter")
    assert page.locator("#clusters tbody tr").count() == 3
    page.click("#tab-tree")
    assert page.locator("#panel .tag").text_content() == "c2"


def test_rows_are_downloaded_as_csv(visit, animals, assessed, hostile_page):
    X, (path, taxonomy) = animals[0], assessed
    page = visit(path)
    with page.expect_download() as got:
        page.click("#csv")
    assert got.value.suggested_filename == "rows.csv"
    rows = read_csv(got.value.path().read_bytes().decode())
    assert [*rows[0]] == ["row", "name", "cluster", "path"]
    names = page.evaluate("nodes.map((node) => node.name)")
    assert len(rows) == 206
    for row in rows:
        number = int(row["row"])
        assert row["name"] == X.index[number]
        assert int(row["cluster"]) == taxonomy.tree.labels[number]
        leaf = taxonomy.tree.leaves[taxonomy.tree.labels[number]]
        assert row["path"] == " > ".join(names[node] for node in taxonomy.tree.path(leaf)[1:])
    page.locator("#cut").fill("4")
    until(page, "clusters.length === 4")
    page.evaluate("choose(clusters[1])")
    node = page.evaluate("clusters[1].id")
    with page.expect_download() as got:
        page.click("#panel .download")
    assert got.value.suggested_filename == "rows-of-c1.csv"
    rows = read_csv(got.value.path().read_bytes().decode())
    assert sorted(int(row["row"]) for row in rows) == sorted(taxonomy.tree.rows(node).tolist())
    # What a spreadsheet would take for a formula is none, and quotes are doubled.
    page = visit(hostile_page)
    for given, expected in (
        ("=1+1", "'=1+1"), ("+a", "'+a"), ("-b", "'-b"), ("@c", "'@c"), ("\tq", "'\tq"),
        ('say "a", b', '"say ""a"", b"'), ("two\nlines", '"two\nlines"'), (-3, "-3"),
        ("=a,b", '"\'=a,b"'), ("plain", "plain"),
    ):  # fmt: skip
        assert page.evaluate("field", given) == expected
    rows = read_csv(page.evaluate("toCsv(root)"))
    assert len(rows) == 60
    assert all("<img src=x" in row["name"] for row in rows)


def test_refits_are_shown_everywhere(visit, assessed):
    path, taxonomy = assessed
    page = visit(path)
    node = int(np.flatnonzero(~taxonomy.stability.is_stable)[-1])
    text = taxonomy.stability.describe(node)
    assert text in page.locator(f"#node-{node}").get_attribute("aria-label")
    page.locator(f"#node-{node} .dot").click()
    panel = page.locator("#panel").text_content()
    assert text.capitalize() + ": not a stable cluster." in panel
    assert f"{100 * taxonomy.stability.left_out[node]:.0f} % of its held-out rows" in panel
    plain = page.locator(".link").first.evaluate("(one) => one.style.stroke")
    page.select_option("#shade", "stability")
    assert page.locator(".link").first.evaluate("(one) => one.style.stroke") != plain
    assert "4 of 4" in page.locator("#key").text_content()
    assert page.locator("#track .curve .suggested").count() == 1
    page.click("#suggested")
    suggested = taxonomy.stability.suggested
    assert page.locator("#cut-number").input_value() == str(suggested)
    page.click("#tab-clusters")
    heads = page.locator("#clusters th").all_text_contents()
    names = "Cluster|Rows|Distinctive features|Stability|Classes|Typical rows"
    assert heads == names.split("|")
    assert "of 4" in page.locator("#clusters td[data-head='Stability']").first.text_content()
    page.click("#tab-measures")
    text = page.locator("#measures").text_content()
    assert f"The finest stable cut has {suggested} clusters" in text
    assert taxonomy.stability.describe_left_out() in text
    page.fill("#search", "otter")
    page.keyboard.press("Enter")
    assert "Its least margin" in page.locator(".row-card").text_content()


def test_the_table_is_paged_sorted_and_searched(visit, planted):
    page = visit(planted(1000)[0])
    page.click("#tab-clusters")
    lines = page.locator("#clusters tbody tr")
    assert lines.count() == 40
    assert "1 to 40 of 1,000" in page.locator("#pages").text_content()
    assert page.locator("#pages button", has_text="earlier").is_disabled()
    page.locator("#pages button", has_text="later").click()
    assert "41 to 80" in page.locator("#pages").text_content()
    page.get_by_role("button", name="Rows", exact=True).click()
    cells = page.locator("#clusters td[data-head=Rows]").all_text_contents()
    sizes = [int(cell.split()[0]) for cell in cells]
    assert sizes == sorted(sizes, reverse=True)
    assert lines.first.locator("svg.spark").count() == 3
    assert max(line.bounding_box()["height"] for line in lines.all()) < 110
    page.fill("#filter", "c17")
    assert lines.count() == 11  # c17 and c170 to c179
    page.fill("#filter", "no such thing")
    assert lines.count() == 0
    assert "No cluster" in page.locator("#pages").text_content()


def test_choosing_a_node_shows_its_panel_and_branches_close_and_open(visit, animals_page):
    page = visit(animals_page)
    assert page.title() == "Animals"
    assert page.locator("#subtitle").text_content() == "206 rows · 85 features · 12 clusters"
    assert nodes(page).count() == 23
    assert page.locator(".node.chosen").get_attribute("data-id") == "0"
    assert "Splits into" in page.locator("#panel").text_content()
    page.locator("#node-1 .name").first.click()
    panel = page.locator("#panel")
    assert page.locator("#node-1").get_attribute("aria-selected") == "true"
    text = panel.text_content()
    assert "gives_milk" in text
    for part in ("Distinctive features", "Deciding features", "Margins of this split",
                 "Typical rows", "Known classes", "Borderline rows"):  # fmt: skip
        assert part in text
    assert "Extreme rows" not in text  # all margins at a yes-no rule are equal
    assert panel.locator(".feature").count() >= 1
    assert panel.locator("svg.spark").count() >= 3
    assert panel.locator("svg.histogram rect").count() > 3
    panel.locator(".crumbs button").first.click()
    assert page.locator(".node.chosen").get_attribute("data-id") == "0"
    page.locator("#node-2 .dot").click()
    assert page.locator("#node-2").get_attribute("aria-expanded") == "false"
    assert nodes(page).count() < 23
    page.locator("#node-2 .dot").click()
    assert page.locator("#node-2").get_attribute("aria-expanded") == "true"
    assert nodes(page).count() == 23
    page.locator("#node-1 .name").first.dblclick()
    assert page.locator("#node-1").get_attribute("aria-expanded") == "false"
    page.click("#expand")
    assert nodes(page).count() == 23


def test_search_finds_rows_features_and_nodes(visit, animals_page, three_way_page):
    page = visit(animals_page)
    page.locator("#node-0 .dot").click()
    assert nodes(page).count() == 1
    page.keyboard.press("/")
    page.keyboard.type("Sea Otter")
    assert page.locator("#found [role=option]").first.text_content() == "rowsea otter"
    page.keyboard.press("Enter")
    assert page.locator(".node.chosen").locator(".label").text_content().startswith("c")
    page.locator("#panel summary").click()
    assert "sea otter" in page.locator("#panel .members").text_content()
    page.fill("#search", "blubber")
    assert page.locator(".node.hit").count() >= 1
    assert "branch" in page.locator("#count").text_content()
    page.keyboard.press("ArrowDown")
    assert page.locator("#found [aria-selected=true]").count() == 1
    page.fill("#search", "no such thing anywhere")
    assert page.locator("#found").text_content() == "Nothing found"
    page.keyboard.press("Escape")
    assert page.locator("#found").is_hidden()
    assert page.locator(".node.hit").count() == 0
    page.fill("#search", "otter")
    assert page.locator("#found [role=option]").first.text_content() == "rowotter"
    page.keyboard.press("Enter")
    card = page.locator("#panel .row-card").text_content()
    assert card.startswith("otter is in c")
    assert re.search(r"least margin on the path, at “.*”, is \d\.\d\d: ", card)
    page.locator("#node-1 .size").click()
    assert page.locator("#panel .row-card").count() == 0
    # Rows without names are found by their numbers.
    page = visit(three_way_page)
    page.fill("#search", "row 77")
    page.keyboard.press("Enter")
    assert page.locator("#panel .row-card").text_content().startswith("row 77 is in c")


def test_focus_is_not_lost_and_keys_of_the_tree_are_its_own(visit, animals_page):
    page = visit(animals_page)
    page.click("#tab-clusters")
    for key in ("0", "*", "+", "-"):
        page.keyboard.press(key)
    page.click("#tab-tree")
    assert "NaN" not in page.locator("#scene").get_attribute("transform")
    assert nodes(page).count() == 23
    assert page.locator("#node-0 .dot").is_visible()
    page.locator("#panel .child").first.click()
    assert page.evaluate("document.activeElement.id") == "panel"
    page.click("#tab-clusters")
    page.get_by_role("button", name="Rows", exact=True).focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Rows"
    assert page.locator("#clusters th[aria-sort=descending]").text_content() == "Rows"
    page.locator("#clusters .go").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.classList.contains('chosen')")


def test_the_help_says_what_decides(visit, animals_page, assessed, three_way_page, tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 10))
    bounded = HMMC(12, random_state=0).fit(X)
    n_elsewhere = np.count_nonzero(bounded.predict(X) != bounded.labels_)
    assert n_elsewhere > 1
    report(bounded, X, tmp_path / "bounded.html")
    page = visit(tmp_path / "bounded.html")
    assert f"{n_elsewhere} rows of the fit" in page.locator("#panel").text_content()
    helps = ("rules", "elsewhere", "means", "stability")
    for path, expected in (
        (animals_page, ["rules"]),
        (assessed[0], ["rules", "stability"]),
        (tmp_path / "bounded.html", ["elsewhere"]),
        (three_way_page, ["means"]),
    ):
        page = visit(path)
        page.click("#tab-measures")
        measures = page.locator("#measures").text_content()
        assert ("in another cluster" in measures) == ("elsewhere" in expected)
        page.click("#tab-help")
        shown = [kind for kind in helps if page.locator(f"#help-{kind}").is_visible()]
        assert shown == expected


def test_the_keyboard_is_enough(visit, animals_page):
    page = visit(animals_page)
    page.locator("#node-0").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "node-1"
    page.keyboard.press("ArrowLeft")
    assert page.locator("#node-1").get_attribute("aria-expanded") == "false"
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.id") == "node-0"
    page.keyboard.press("End")
    assert page.locator(".node.chosen .label").text_content() == "c11"
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert nodes(page).count() == 1
    page.keyboard.press("*")
    assert nodes(page).count() == 23
    page.locator("#tab-tree").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#page-clusters").is_visible()


def test_moving(visit, planted):
    page = visit(planted(50)[0])
    page.click("#as-tree")
    where = page.locator("#scene").get_attribute("transform")
    for _ in range(4):
        page.click("#zoom-in")
    before = page.locator("#scene").get_attribute("transform")
    assert before != where
    page.mouse.move(300, 640)
    page.mouse.down()
    page.mouse.move(320, 560, steps=4)
    page.mouse.up()
    assert page.locator("#scene").get_attribute("transform") != before
    assert page.locator(".node.chosen").get_attribute("data-id") == "0"
    page.keyboard.press("0")
    assert page.locator("#scene").get_attribute("transform") == where


def test_light_and_dark(visit, animals_page):
    colour = "getComputedStyle(document.body).backgroundColor"
    light = visit(animals_page, color_scheme="light")
    dark = visit(animals_page, color_scheme="dark")
    bright, dim = light.evaluate(colour), dark.evaluate(colour)
    assert bright != dim
    light.click("#theme")
    dark.click("#theme")
    assert (light.evaluate(colour), dark.evaluate(colour)) == (dim, bright)


def test_on_a_narrow_screen_nothing_is_lost(visit, animals_page):
    page = visit(animals_page, viewport={"width": 390, "height": 800}, has_touch=True)
    for tab in ("clusters", "measures", "help", "tree"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        wide = f"document.getElementById('page-{tab}')"
        assert page.evaluate(f"{wide}.scrollWidth <= {wide}.clientWidth")
    taxonomy, panel = (page.locator(name).bounding_box() for name in ("#canvas", "#panel"))
    assert taxonomy["height"] > 250
    assert panel["y"] >= taxonomy["y"] + taxonomy["height"] - 1
    page.locator("#node-1 .name").first.tap()
    assert "gives_milk" in page.locator("#panel").text_content()


def test_it_prints_all_clusters(visit, planted):
    page = visit(planted(50)[0])
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("#clusters tbody tr").count() == 50
    for part in ("#clusters", "#page-help", "#scene .node"):
        assert page.locator(part).first.is_visible()
    for part in ("nav", ".tools", "#filter"):
        assert page.locator(part).is_hidden()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("#clusters tbody tr").count() == 40


def test_hostile_texts_stay_texts(visit, hostile_page):
    page = visit(hostile_page)
    assert page.title() == "</script><script>alert(2)</script>"
    page.click("#expand")
    for node in range(nodes(page).count()):
        page.locator(f"#node-{node} .name").first.click()
        assert page.locator(".node.chosen").get_attribute("data-id") == str(node)
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    page.fill("#search", "onerror")
    assert page.locator("#found [role=option]").count() > 0
    for tab in ("clusters", "measures", "tree"):
        page.click(f"#tab-{tab}")
    assert '<img src=x onerror="alert(1)">' in page.locator("body").text_content()
    assert page.locator("img").count() == 0


def test_scripts_that_are_not_ours_do_not_run(visit, hostile_page, browser):
    context = browser.new_context()
    page = context.new_page()
    blocked = []
    page.on("console", lambda message: blocked.append(message.text))
    page.goto(hostile_page.as_uri())
    page.evaluate(
        "() => { const one = document.createElement('script'); one.textContent = "
        "'window.ran = true'; document.body.append(one); }"
    )
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in text for text in blocked)
    context.close()


@pytest.mark.long
def test_1000_clusters_are_fluid(visit, planted):
    page = visit(planted(1000)[0])
    page.click("#as-tree")
    page.click("#expand")
    assert page.evaluate("shown.length") == 1999
    assert nodes(page).count() < 300  # what is far from the canvas is not drawn
    # Choosing and searching draw nothing anew.
    page.evaluate("window.kept = document.getElementById('node-7')")
    page.locator("#node-0").focus()
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    assert page.locator(".node.chosen .label").text_content() == "c999"
    page.fill("#search", "x3")
    assert page.locator(".node.hit").count() > 3
    assert page.evaluate("window.kept === document.getElementById('node-7')")


def test_a_table_is_told_with_its_gaps_and_how_it_was_read(visit, table_page):
    path, taxonomy = table_page
    page = visit(path)
    panel, columns = page.locator("#panel"), taxonomy.columns
    n_dropped, leaves = len(columns.dropped), taxonomy.tree.leaves
    n_used = len(set(columns.positions))
    counts = f"{n_used} columns of the table are used, {n_dropped} excluded"
    assert counts in panel.inner_text()
    node = int(leaves[taxonomy.missing[leaves].sum(axis=1).argmax()])
    page.evaluate(f"choose(nodes[{node}])")
    assert re.search(r"\d+ % unknown", panel.inner_text())
    page.evaluate("choose(root)")
    page.get_by_role("button", name="How it was read").click()
    read = page.locator("#measures").inner_text()
    for column in columns:
        assert f"{column.label}" in read
    for name, why in columns.dropped:
        assert name in read
        assert why in read
    for note in columns.notes:
        assert str(note)[1:] in read
    page.click("#tab-help")
    assert page.locator("#help-table").is_visible()
    page.click("#tab-clusters")
    assert "onerror=" in page.locator("#clusters").inner_text()
