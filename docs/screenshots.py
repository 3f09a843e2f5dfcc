"""Take the screenshots of the report in the README and the documentation.

python docs/screenshots.py docs/images

Needs playwright and Chromium.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

from taxarbor import Taxarbor, load_animals
from taxarbor.metrics import ClassTree
from taxarbor.report import report
from taxarbor.stability import assess

WIDE, NARROW = {"width": 1360, "height": 820}, {"width": 400, "height": 820}


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        animals, digits, many = (Path(made, name) for name in ("a.html", "d.html", "m.html"))
        write_animals(animals)
        write_digits(digits, 12)
        write_digits(many, 60)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

        def take(name: str, page: Path, actions=(), **options) -> None:
            tab = browser.new_page(**{"viewport": WIDE, "color_scheme": "light", **options})
            tab.goto(page.as_uri())
            tab.locator(".node.chosen").wait_for()
            for action, *arguments in actions:
                getattr(tab, action)(*arguments)
            tab.screenshot(path=folder / f"{name}.png")

        chosen = [("evaluate", "choose(nodes[1])")]
        take("report", animals, chosen)
        take("report-dark", animals, chosen, color_scheme="dark")
        take("report-narrow", animals, chosen, viewport=NARROW)
        take("report-search", animals, [("fill", "#search", "otter")])
        take("report-clusters", animals, [("click", "#tab-clusters")])
        take("report-digits", digits, [("evaluate", "choose(nodes[2])")])
        take("report-icicle", many, [("evaluate", "choose(nodes[6])")])
        browser.close()


def write_animals(path: Path) -> None:
    animals = load_animals()
    X = pd.DataFrame(animals.X / animals.X.max(axis=0), animals.names, animals.feature_names)
    classes = ClassTree.read(animals.tree).ancestors_of(animals.names, 2)
    taxonomy = assess(Taxarbor(12, random_state=0).fit(X), X)
    report(taxonomy, X, path, classes=classes, title="Animals, divided by their attributes")


def write_digits(path: Path, n_clusters: int) -> None:
    digits = load_digits()
    model = Taxarbor(n_clusters, random_state=0).fit(digits.data)
    ink = 1.0 - np.asarray(digits.images) / 16.0
    taxonomy = model.taxonomy_.rename_features(list(map(str, digits.feature_names)))
    title = "Handwritten digits, divided by their pixels"
    report(taxonomy, digits.data, path, classes=digits.target, images=ink, title=title)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
