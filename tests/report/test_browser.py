"""The page in a real browser: no error, no request, and all of it does what it says."""

import re

import pytest


def nodes(page):
    return page.locator(".node")


def test_choosing_a_node_shows_its_panel_and_branches_close_and_open(visit, animals_page):
    page = visit(animals_page)
    assert page.title() == "Animals"
    assert page.locator("#subtitle").text_content() == "206 rows · 85 features · 12 clusters"
    assert nodes(page).count() == 23
    assert page.locator(".node.chosen").get_attribute("data-id") == "0"
    assert "Divides into" in page.locator("#panel").text_content()
    page.locator("#node-1 .name").first.click()
    panel = page.locator("#panel")
    assert page.locator("#node-1").get_attribute("aria-selected") == "true"
    told = panel.text_content()
    assert "gives_milk" in told
    for part in ("What leads here", "How clearly it divides", "Known classes", "Exemplars"):
        assert part in told
    assert panel.locator(".feature").count() >= 1
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
    page.click("#collapse")
    assert nodes(page).count() == 7
    page.click("#expand")
    assert nodes(page).count() == 23


def test_search_finds_rows_features_and_nodes(visit, animals_page, three_way_page):
    page = visit(animals_page)
    page.click("#collapse")
    page.keyboard.press("/")
    page.keyboard.type("Sea Otter")
    options = page.locator("#found [role=option]")
    assert options.first.text_content() == "rowsea otter"
    page.keyboard.press("Enter")
    chosen = page.locator(".node.chosen")
    assert chosen.locator(".label").text_content().startswith("c")
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
    card = page.locator("#panel .found-row").text_content()
    assert card.startswith("otter is in c")
    assert re.search(r"least margin on the path, at “.*”, is \d\.\d\d: ", card)
    page.locator("#node-1 .size").click()
    assert page.locator("#panel .found-row").count() == 0
    # Rows without names are found by their numbers.
    page = visit(three_way_page)
    page.fill("#search", "row 77")
    page.keyboard.press("Enter")
    assert page.locator("#panel .found-row").text_content().startswith("row 77 is in c")


def test_focus_is_not_lost_and_keys_of_the_tree_are_its_own(visit, animals_page):
    page = visit(animals_page)
    page.click("#tab-clusters")
    for key in ("0", "*", "+", "-"):
        page.keyboard.press(key)
    page.click("#tab-tree")
    assert "NaN" not in page.locator("#scene").get_attribute("transform")
    assert page.locator("#node-0 .dot").is_visible()
    page.locator("#panel .child").first.click()
    assert page.evaluate("document.activeElement.id") == "panel"
    page.click("#tab-clusters")
    page.locator("#clusters th button", has_text="Rows").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Rows"
    assert page.locator("#clusters th[aria-sort=descending]").text_content() == "Rows"
    page.locator("#clusters .go").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.classList.contains('chosen')")


def test_splits_in_three_have_a_legend_and_the_help_fits(visit, animals_page, three_way_page):
    page = visit(three_way_page)
    legend = page.locator("#panel svg.histogram + .legend")
    assert legend.locator("i").count() == 3
    assert "Histogram of margins. " in page.locator(".histogram").get_attribute("aria-label")
    for path, told in ((animals_page, "placed"), (three_way_page, "means")):
        page = visit(path)
        page.click("#tab-help")
        shown = [kind for kind in ("placed", "rules", "means")
                 if page.locator(f"#help-{kind}").is_visible()]  # fmt: skip
        assert shown == [told]


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


def test_zooming_and_moving(visit, animals_page):
    page = visit(animals_page)

    def scale():
        found = page.locator("#scene").get_attribute("transform")
        return float(re.search(r"scale\((.*)\)", found)[1])

    before = scale()
    page.click("#zoom-in")
    assert scale() == pytest.approx(1.25 * before)
    page.keyboard.press("-")
    assert scale() == pytest.approx(before)
    where = page.locator("#scene").get_attribute("transform")
    page.mouse.move(500, 640)
    page.mouse.down()
    page.mouse.move(580, 600, steps=4)
    page.mouse.up()
    assert page.locator("#scene").get_attribute("transform") != where
    assert page.locator(".node.chosen").get_attribute("data-id") == "0"
    page.click("#zoom-fit")
    box = page.locator("#tree").bounding_box()
    for node in nodes(page).all():
        dot = node.locator(".dot").bounding_box()
        assert box["x"] <= dot["x"] <= box["x"] + box["width"]
        assert box["y"] <= dot["y"] <= box["y"] + box["height"]


def test_clusters_measures_and_help(visit, animals_page):
    page = visit(animals_page)
    page.click("#tab-clusters")
    assert page.locator("#clusters tbody tr").count() == 12
    page.locator("#clusters th button", has_text="Rows").click()
    sizes = [
        int(cell.text_content()) for cell in page.locator("#clusters td.num:nth-child(3)").all()
    ]
    assert sizes == sorted(sizes, reverse=True)
    page.click("#tab-measures")
    assert "Adjusted Rand index" in page.locator("#measures").text_content()
    page.click("#tab-help")
    assert "Exemplars are deepest inside" in page.locator("#page-help").text_content()
    page.click("#tab-clusters")
    page.locator("#clusters tbody tr").first.click()
    assert page.locator("#page-tree").is_visible()
    assert page.locator(".node.chosen.leaf").count() == 1


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
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
    tree, panel = (page.locator(name).bounding_box() for name in ("#canvas", "#panel"))
    assert tree["height"] > 250
    assert panel["y"] >= tree["y"] + tree["height"] - 1
    page.locator("#node-1 .name").first.tap()
    assert "gives_milk" in page.locator("#panel").text_content()


def test_it_prints_all_clusters(visit, animals_page):
    page = visit(animals_page)
    page.click("#collapse")
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert nodes(page).count() == 7
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert nodes(page).count() == 23
    assert page.locator("#clusters").is_visible()
    assert page.locator("#page-help").is_visible()
    assert page.locator("nav").is_hidden()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert nodes(page).count() == 7


def test_hostile_texts_stay_texts(visit, hostile_page):
    page = visit(hostile_page)
    assert page.title() == "</script><script>alert(2)</script>"
    page.click("#expand")
    for node in range(nodes(page).count()):
        page.locator(f"#node-{node} .size").click()
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


def test_500_clusters_are_fluid(visit, large_page):
    """Far above what is seen, some 40 ms: the bound is to catch what grows with the square."""
    page = visit(large_page)
    assert nodes(page).count() < 60
    page.click("#expand")
    assert nodes(page).count() == 999
    lasted = page.evaluate(
        "() => { const t = performance.now(); render(); return performance.now() - t; }"
    )
    assert lasted < 2000
    # Choosing and searching draw nothing anew.
    page.evaluate("window.kept = document.getElementById('node-7')")
    page.locator("#node-0").focus()
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.fill("#search", "x3")
    assert page.locator(".node.hit").count() > 10
    assert page.evaluate("window.kept === document.getElementById('node-7')")
