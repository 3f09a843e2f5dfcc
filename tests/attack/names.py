"""Hostile names of columns, rows, categories, classes and pages.

A page has the same elements as with plain names, a label file one line per row, files read
back, and nothing on a terminal but printable characters.
"""

import csv
import io
import json
import os
import re
import sys
import tempfile
import time
import unicodedata
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from tests.attack.mutations import Outcomes

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


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, *(name for name, _ in attrs)))


class Terminal(io.StringIO):
    """What is printed on a terminal."""

    def isatty(self):
        return True


def is_printable(text):
    """Return whether a text has nothing but printable characters, lines and colours."""
    rest = COLOUR.sub("", text).replace("\n", "")
    return "\x1b[31mred" not in text and not any(
        unicodedata.category(c) in {"Cc", "Cs", "Cf"} for c in rest
    )


def make_table(name):
    """Return a frame, row names, classes and a title; ``name`` names the n-th thing."""
    import pandas as pd

    rng, kind = np.random.default_rng(0), np.arange(N_ROWS) % 4
    centers = np.array([[0, 0, 9], [9, 0, 0], [0, 9, 9], [9, 9, 0]])
    frame = pd.DataFrame((centers[kind] + rng.normal(size=(N_ROWS, 3))).round(3))
    frame[3] = pd.Series([name(4 + one % 3) for one in kind], dtype=object)
    frame.columns = pd.Index([name(at) for at in range(4)], dtype=object)
    row_names = [name(8 + row) for row in range(N_ROWS)]
    return frame, row_names, [name(20 + one) for one in kind], name(24)


def try_library(names, folder):
    """Yield each output of the library, and whether it is as it should be."""
    from taxarbor import Taxarbor, Taxonomy
    from taxarbor.exchange import to_json
    from taxarbor.explain import explain
    from taxarbor.report import report

    pages, views = [], []
    for name in (lambda at: f"plain{at}", lambda at: names[at % len(names)]):
        frame, row_names, classes, title = make_table(name)
        taxonomy = Taxarbor(4, random_state=0).fit(frame).taxonomy_
        told = {"row_names": row_names, "classes": classes}
        report(taxonomy, frame, folder / "page.html", title=title, **told)
        pages.append(Elements((folder / "page.html").read_text(encoding="utf-8")).found)
        views.append({tag for tag, *_ in Elements(taxonomy._repr_html_()).found})
    yield "page", pages[0] == pages[1]
    yield "notebook", views[1] <= views[0]
    text = taxonomy.to_text()
    yield "text", text.count("\n") == taxonomy.tree.n_nodes - 1 and is_printable(text)
    taxonomy.save(folder / "m.taxarbor")
    yield "model", Taxonomy.load(folder / "m.taxarbor").feature_names == taxonomy.feature_names
    explained = explain(taxonomy, frame, **told)
    json.loads(to_json(taxonomy))
    json.dumps(explained.to_dict(), allow_nan=False)
    yield "explain", len(explained.nodes()) == taxonomy.tree.n_nodes


def run_command(*arguments):
    """Run a command in this process as on a terminal; return its exit code and output."""
    from taxarbor.cli import main

    terminal, sys.argv = Terminal(), ["taxarbor", *map(str, arguments)]
    with redirect_stdout(terminal), redirect_stderr(terminal):
        try:
            main()
        except SystemExit as end:
            return end.code or 0, terminal.getvalue()
    return 0, terminal.getvalue()


def try_commands(names, folder):
    """Yield each command, and whether its exit code and output are as they should be."""
    frame, row_names, classes, title = make_table(lambda at: names[at % len(names)])
    title = title.encode("utf-8", "replace").decode().replace("\x00", "")
    cells = zip(row_names, classes, *(frame.iloc[:, at] for at in range(4)), strict=True)
    with open(folder / "d.csv", "w", encoding="utf-8", errors="replace", newline="") as file:
        csv.writer(file).writerows([("the id", "the class", *frame.columns), *cells])
    data = ("m.taxarbor", "d.csv", "--id-column", "the id")
    classes = ("--label-column", "the class", "--title", title, "--force")
    fit = ("fit", *data[1:], *classes, "-k", 4, "-o", data[0], "--labels", "l.csv")
    code, printed = run_command(*fit, "--report", "p.html")
    yield "fit", code in (0, 2) and is_printable(printed)
    if code:  # names that cannot be used were refused, so there is no model
        return
    for command in (
        ("show", data[0]),
        ("show", data[0], "--clusters", 2),
        ("predict", *data),
        ("predict", *data, "-o", "l.csv", "--force"),
        ("explain", *data),
        ("explain", *data, "--row", 3),
        ("report", *data, *classes, "-o", "p.html"),
        ("export", data[0], "--to", "csv"),
    ):
        code, printed = run_command(*command)
        yield " ".join(map(str, command[:1])), code == 0 and is_printable(printed)
    with open(folder / "l.csv", encoding="utf-8", newline="") as file:
        lines = [*csv.reader(file)]
    yield "label file", len(lines) == N_ROWS + 1 and {len(line) for line in lines} == {2}


def attack(seed, seconds):
    """Use all names everywhere, each in another place in every case."""
    from taxarbor import TaxarborError

    rng, outcomes, end = np.random.default_rng(seed), Outcomes(), time.monotonic() + seconds
    os.environ |= {"TERM": "xterm-256color", "FORCE_COLOR": "1", "COLUMNS": "100"}
    with tempfile.TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < end:
            names = [HOSTILE[at] for at in rng.permutation(len(HOSTILE))]
            for outputs in (try_library, try_commands):
                last = "nothing"
                try:
                    for last, is_right in outputs(names, Path(folder)):
                        if is_right:
                            outcomes["harmless"] += 1
                        else:
                            outcomes.forbid(f"{last}, with names {names[:25]}")
                except Exception as error:
                    if last == "nothing" and isinstance(error, TaxarborError):
                        outcomes["refused"] += 1  # by the fit
                    else:
                        outcomes.forbid(f"after {last}: {type(error).__name__}: {error}")
    return outcomes
