"""A tree worth a page, pages of it, and a browser to open them in."""

import shutil

import numpy as np
import pandas as pd
import pytest

from taxarbor import TableWarning, Taxarbor, load_animals, make_planted_tree
from taxarbor.exchange import from_labels
from taxarbor.metrics import ClassTree
from taxarbor.report import report
from taxarbor.stability import assess

HOSTILE = '<img src=x onerror="alert(1)">'
BREAKOUT = "</script><script>alert(2)</script>"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def animals():
    """The animals as a frame, the kind of each, and a fitted model."""
    bundle = load_animals()
    X = pd.DataFrame(bundle.X / bundle.X.max(axis=0), bundle.names, bundle.feature_names)
    kinds = ClassTree.read(bundle.tree).ancestors_of(bundle.names, 2)
    return X, kinds, Taxarbor(12, random_state=0).fit(X)


@pytest.fixture(scope="session")
def animals_page(animals, tmp_path_factory):
    """The animals' page."""
    X, kinds, model = animals
    path = tmp_path_factory.mktemp("pages") / "animals.html"
    report(model, X, path, classes=kinds, title="Animals")
    return path


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory):
    """A page on which every text that a user may give tries to break out; its title is one."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 3)) + 6 * np.eye(3)[labels]
    frame = pd.DataFrame(X, columns=[HOSTILE, BREAKOUT, "a\u2028b%%data%%&amp;\x00"])
    path = tmp_path_factory.mktemp("pages") / "hostile.html"
    model = Taxarbor(3, random_state=0).fit(frame)
    names = [f"{HOSTILE}{BREAKOUT}{n}" for n in range(60)]
    classes = np.array([HOSTILE, BREAKOUT, "%%script%%"])[labels]
    report(model, frame, path, row_names=names, classes=classes, title=BREAKOUT)
    return path


@pytest.fixture(scope="session")
def table_page(make_cars, tmp_path_factory):
    """A page of a table with gaps, categories and an id, some of whose texts are hostile."""
    table = make_cars(0, 150)
    table["origin"] = table["origin"].replace({"usa": HOSTILE, "japan": BREAKOUT})
    table[f"wheels {HOSTILE}"] = np.where(np.arange(150) % 2, BREAKOUT, "4")
    table[f"name {BREAKOUT}"] = [f"{HOSTILE} {n}" for n in range(150)]
    path = tmp_path_factory.mktemp("pages") / "table.html"
    with pytest.warns(TableWarning):
        model = Taxarbor(6, random_state=0).fit(table)
    report(model, table, path, title="Cars")
    return path, model.taxonomy_


@pytest.fixture(scope="session")
def three_way_page(tmp_path_factory):
    """A page of a tree without rules or names, split in three at the root."""
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    path = tmp_path_factory.mktemp("pages") / "three.html"
    report(from_labels(labels), rng.normal(size=(90, 4)) + labels[:, None], path)
    return path


@pytest.fixture(scope="session")
def planted(tmp_path_factory):
    """Pages of planted trees, by their number of clusters: the path and the tree."""
    made = {}

    def page_of(n_clusters):
        if n_clusters not in made:
            data = make_planted_tree(n_rows=2048, branching=2, depth=10, random_state=0)
            model = Taxarbor(n_clusters, min_leaf_size=1, n_init=1, random_state=0).fit(data.X)
            path = tmp_path_factory.mktemp("pages") / f"{n_clusters}.html"
            classes = np.char.add("kind ", (data.labels // 16).astype(str))
            report(model, data.X, path, classes=classes, title=f"{n_clusters} clusters")
            made[n_clusters] = path, model.taxonomy_
        return made[n_clusters]

    return page_of


@pytest.fixture(scope="session")
def assessed(animals, tmp_path_factory):
    """A page of a tree that has been assessed: the path and the tree."""
    X, kinds, model = animals
    taxonomy = assess(model, X, n_refits=4)
    path = tmp_path_factory.mktemp("pages") / "assessed.html"
    report(taxonomy, X, path, classes=kinds, title="Assessed")
    return path, taxonomy


@pytest.fixture(scope="session")
def browser():
    """Chromium, as Debian has it; where there is none, that is said."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser found; looked for {', '.join(BROWSERS)}")
    with api.sync_playwright() as playwright:
        # In a container there is no sandbox to be had; the pages are our own.
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    """Open a page of ours; when the test is over, nothing may have gone wrong in it."""
    troubles, contexts = [], []

    def open_page(path, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(5000)
        contexts.append(context)
        page = context.new_page()
        address = path.as_uri()
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (troubles.append("dialog"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: (
                request.url in (address, f"{address}#")
                or request.url.startswith(("data:", "blob:"))
                or troubles.append(f"request: {request.url}")
            ),
        )
        page.goto(address)
        page.locator(".node.chosen").first.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
