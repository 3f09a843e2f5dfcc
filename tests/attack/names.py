"""Hostile names of columns, rows, categories, classes and pages.

A page has the same elements as with plain names, a label file one line per row, files read
back, and nothing on a terminal but printable characters.
"""

import csv
import os
import re
import tempfile
import time
import unicodedata
import warnings
from collections import Counter
from contextlib import chdir
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from tests.attack.damage import FORBIDDEN, run_command

HOSTILE = (
    *("<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", '"><b>'),
    *("</title><svg onload=alert(1)>", "' onload='x", "</pre>", "<!--", "]]>", "&amp;"),
    *("a\nb", "a\rb", "a\r\nb", "a\tb", "a\x00b", "a\x0bb", "\x85", "\u2028x", "\u200b"),
    *("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m", "\b\b\b", "\x7f", "\ud800"),
    *("=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", '=HYPERLINK("http://x")', "(a,b:1);", "[x]"),
    *("'", '"', "it's", '""', "\\", "\\n", "a -> b;", "{a|b}", "{{7*7}}", "${x}", "%s%n"),
    *("$\\frac{", "$x^", "$$", "__proto__", "../../x", "", " ", "x" * 5000, "e\u0301" * 50),
    *("a,b", "a;b", "\ufeffid", "nan", "None", "null", "-1", "0", "1e400", "node 0", "/* x"),
    *("[bold]x[/]", "[link=http://x]y[/link]", ":owl:", "\u202egnp.exe", "\uffff", "&#10;"),
)
N_ROWS = 40
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
MODEL, DATA = "m.taxarbor", ("d.csv", "--id-column", "the id")
COMMANDS = (
    ("show", MODEL),
    ("export", MODEL, "--to", "csv"),
    ("explain", MODEL, *DATA, "--row", "3"),
    ("fit", *DATA, "--label-column", "the class", "-k", "4", "-o", MODEL, "--force"),
    ("explain", MODEL, *DATA),
    ("predict", MODEL, *DATA, "-o", "l.csv", "--force"),
)


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, *(name for name, _ in attrs)))


def is_printable(text):
    """Return whether a text has nothing but printable characters, lines and colours."""
    rest = COLOUR.sub("", text).replace("\n", "")
    is_odd = any(unicodedata.category(c) in {"Cc", "Cs", "Cf"} for c in rest)
    return "\x1b[31mred" not in text and not is_odd


def make_table(name):
    """Return a frame, row names, classes and a title; ``name(n)`` is the n-th name."""
    import pandas as pd

    rng, kind = np.random.default_rng(0), np.arange(N_ROWS) % 4
    centers = np.array([[0, 0, 9], [9, 0, 0], [0, 9, 9], [9, 9, 0]])
    frame = pd.DataFrame((centers[kind] + rng.normal(size=(N_ROWS, 3))).round(3))
    frame[3] = pd.Series([name(4 + number % 3) for number in kind], dtype=object)
    frame.columns = pd.Index([name(n) for n in range(4)], dtype=object)
    row_names = [name(8 + row) for row in range(N_ROWS)]
    return frame, row_names, [name(20 + number) for number in kind], name(24)


def try_outputs(names, folder):
    """Yield each output, and whether it is as it should be; None for a command that refuses."""
    from taxarbor import Taxarbor, Taxonomy
    from taxarbor.report import report

    pages, views = [], []
    for name in (lambda n: f"plain{n}", lambda n: names[n % len(names)]):
        frame, row_names, classes, title = make_table(name)
        model = Taxarbor(4, random_state=0).fit(frame).taxonomy_
        options = {"row_names": row_names, "classes": classes, "title": title}
        report(model, frame, folder / "page.html", **options)
        pages.append(Elements((folder / "page.html").read_text(encoding="utf-8")).elements)
        views.append({tag for tag, *_ in Elements(model._repr_html_()).elements})
    yield "page", pages[0] == pages[1]
    yield "notebook", views[1] <= views[0]
    text = model.to_text()
    yield "text", text.count("\n") == model.tree.n_nodes - 1 and is_printable(text)
    model.save(folder / MODEL)
    yield "model", Taxonomy.load(folder / MODEL).to_text() == text
    cells = zip(row_names, classes, *(frame.iloc[:, n] for n in range(4)), strict=True)
    with open(folder / "d.csv", "w", encoding="utf-8", errors="replace", newline="") as file:
        csv.writer(file).writerows([("the id", "the class", *frame.columns), *cells])
    for command in COMMANDS:
        code, printed = run_command(*command)
        yield command[0], is_printable(printed) and (None if code == 2 else code == 0)
    if code == 0:
        with open(folder / "l.csv", encoding="utf-8", newline="") as file:
            lines = [*csv.reader(file)]
        yield "label file", len(lines) == N_ROWS + 1 and {len(line) for line in lines} == {2}


def attack(seed, seconds):
    """Use all names everywhere, each in another place in every case."""
    rng, outcomes, end = np.random.default_rng(seed), Counter(), time.monotonic() + seconds
    os.environ |= {"TERM": "xterm-256color", "FORCE_COLOR": "1", "COLUMNS": "100"}
    ignore = warnings.catch_warnings(action="ignore")
    with tempfile.TemporaryDirectory() as folder, chdir(folder), ignore:
        while time.monotonic() < end:
            names, output = [HOSTILE[n] for n in rng.permutation(len(HOSTILE))], "nothing"
            try:
                for output, is_right in try_outputs(names, Path(folder)):
                    if is_right is False:
                        outcomes[f"{FORBIDDEN}: {output}, with names {names[:25]}"] += 1
                    else:
                        outcomes["harmless" if is_right else "refused"] += 1
            except Exception as error:
                outcomes[f"{FORBIDDEN}: after {output}: {type(error).__name__}: {error}"] += 1
    return outcomes
