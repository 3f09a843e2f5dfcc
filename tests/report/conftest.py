"""A tree worth a page, pages of it, and a browser to open them in."""

import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from taxarbor import Taxarbor, load_animals, make_planted_tree
from taxarbor.exchange import from_labels
from taxarbor.metrics import ClassTree
from taxarbor.report import _context, report

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
            model = Taxarbor(n_clusters, n_init=1, random_state=0).fit(data.X)
            path = tmp_path_factory.mktemp("pages") / f"{n_clusters}.html"
            classes = np.char.add("kind ", (data.labels // 16).astype(str))
            report(model, data.X, path, classes=classes, title=f"{n_clusters} clusters")
            made[n_clusters] = path, model.hierarchy_
        return made[n_clusters]

    return page_of


def fake_probabilities(tree):
    """Return probabilities of all nodes: leaves sum to one, a node is the sum of its own."""
    found = np.random.default_rng(0).random((len(tree.order), tree.n_nodes)) ** 4
    found[:, np.setdiff1d(np.arange(tree.n_nodes), tree.leaves)] = 0.0
    found[np.arange(len(found)), tree.leaves[tree.labels]] += 1.0
    found /= found.sum(axis=1, keepdims=True)
    for node in range(tree.n_nodes - 1, 0, -1):
        found[:, tree.parent(node)] += found[:, node]
    return found


@pytest.fixture(scope="session")
def doubted_page(animals, tmp_path_factory):
    """A page that knows of false words, refits and probabilities: node 4 is in doubt."""
    X, kinds, model = animals
    tree = model.hierarchy_
    share = np.where(np.arange(tree.n_nodes) == 4, 0.37, 0.95)
    worst = np.array([-1 if tree.parent(n) is None else tree.parent(n) for n in range(23)])
    rows = np.arange(206) % 5 > 0
    follows = SimpleNamespace(
        rows=rows, share=share, worst=worst, worst_share=share + 0.01, is_doubtful=share < 0.8
    )
    points = np.arange(1, 13)
    trust = SimpleNamespace(
        n_refits=20, came_back=20 - tree.depth, is_stable=tree.depth < 4, suggested=7,
        told=lambda node: f"came back in {20 - tree.depth[node]} of 20 refits",
        curve=SimpleNamespace(
            n_clusters=points, stability=1 / points, reference=0.3 / points,
            verdict=lambda: "the finest stable cut has 7 clusters",
        ),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("pages") / "doubted.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_context, "follows_of", lambda tree: follows)
        patch.setattr(_context, "trust_of", lambda tree: trust)
        parts = np.array_split(fake_probabilities(tree), 3)
        patch.setattr(_context, "node_proba_of", lambda explanation: iter(parts))
        report(model, X, path, classes=kinds, title="Doubted")
    return path


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
