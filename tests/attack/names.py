"""Hostile names of columns, rows, categories and pages, through all that is written and shown.

Nothing may break out of where it stands: a page has the elements that it has with plain names,
a label file a line per row, a terminal gets no control characters, and files read back.
"""

import csv
import io
import json
import re
import tempfile
import time
import unicodedata
import warnings
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from tests.attack import commands
from tests.attack.tally import ESCAPE, Tally, one_line

HOSTILE = (
    *("<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", '"><b>'),
    *("</title><svg onload=alert(1)>", "' onload='x", "</pre>", "<!--", "]]>", "&amp;"),
    *("a\nb", "a\rb", "a\r\nb", "a\tb", "a\x00b", "a\x0bb", "\x85", "\u2028x", "\u200b"),
    *("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m", "\b\b\b", "\x7f", "\ud800"),
    *("=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", '=HYPERLINK("http://x")', "\t=1"),
    *("(a,b:1);", "[x]", "'", '"', "it's", '""', "\\", "\\n", "\\N", "a -> b;", "{a|b}"),
    *("{{7*7}}", "${x}", "%s%n", "$\\frac{", "$x^", "$$", "%%data%%", "__proto__", "../../x"),
    *("", " ", "  a ", "x" * 5000, "\U0001f989" * 300, "e\u0301" * 50, "a,b", "a;b", "a|b"),
    *("\ufeffid", "nan", "NaN", "None", "null", "-1", "0", "1e400", "c0", "node 0", "/* x"),
    *("[bold]x[/]", "[link=http://x]y[/link]", ":owl:", "javascript:x", "\u202egnp.exe"),
    *("\u05d0\u05d1", "\uffff", "\U0010ffff", "&#10;"),
)
N_ROWS = 40
SVG_ELEMENTS = {"svg", "metadata", "defs", "style", "g", "path", "use", "clipPath", "rect"}
SVG_ELEMENTS |= {"RDF", "Work", "type", "date", "format", "creator", "Agent", "title", "image"}
SVG_ELEMENTS |= {"text", "tspan", "linearGradient", "stop"}


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes, and the data in it."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.found, self.data, self._is_data = [], "", False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, *(name for name, _ in attrs)))
        self._is_data = tag == "script" and ("type", "application/json") in attrs

    def handle_endtag(self, tag):
        self.found.append(tag)
        self._is_data = False

    def handle_data(self, data):
        self.data += data if self._is_data else ""


def is_clean(text):
    """Say whether a text does nothing to a terminal but stand there, in lines."""
    rest = ESCAPE.sub("", text).replace("\n", "")
    return not any(unicodedata.category(c) in {"Cc", "Cs", "Cf"} for c in rest)


def table(texts, *, plain=False):
    """Return a frame, ids, classes and a title whose names are these texts."""
    import pandas as pd

    def called(at, what):
        return f"{what}{at}" if plain else texts[at % len(texts)]

    rng = np.random.default_rng(0)
    kind = np.arange(N_ROWS) % 4
    X = np.array([[0, 0, 9], [9, 0, 0], [0, 9, 9], [9, 9, 0]])[kind] + rng.normal(
        size=(N_ROWS, 3)
    )
    # Arrow's texts, which pandas would take of itself, cannot be half a character.
    columns = [*(called(at, "column") for at in range(3)), "kind" if plain else called(3, "")]
    frame = pd.DataFrame(X.round(3))
    frame[3] = pd.Series([called(4 + at % 3, "kind") for at in kind], dtype=object)
    frame.columns = pd.Index(columns, dtype=object)
    ids = [f"row{row}" if plain else called(row + 8, "") for row in range(N_ROWS)]
    classes = [f"class{one}" if plain else called(20 + one, "") for one in kind]
    return frame, ids, classes, "title" if plain else called(24, "")


def page_of(tree, X, folder, **named):
    """Return the elements of a report."""
    from taxarbor.report import report

    report(tree, X, folder / "page.html", **named)
    found = Elements((folder / "page.html").read_text(encoding="utf-8"))
    json.loads(found.data)
    return found.found


def by_library(case, folder):
    """Yield what each output of the library is called, and a problem or None."""
    from taxarbor import Hierarchy, Taxarbor
    from taxarbor.exchange import to_dot, to_frame, to_json, to_newick
    from taxarbor.explain import explain
    from taxarbor.metrics import ClassTree

    frame, ids, classes, title = case
    told = {"row_names": ids, "classes": classes}
    tree = Taxarbor(4, random_state=0).fit(frame).hierarchy_
    yield "fit", None
    plain_frame, plain_ids, plain_classes, plain_title = table((), plain=True)
    plain = Taxarbor(4, random_state=0).fit(plain_frame).hierarchy_
    benign = {"row_names": plain_ids, "classes": plain_classes, "title": plain_title}

    text = tree.to_text()
    wrong = text.count("\n") != tree.n_nodes - 1 or not is_clean(text)
    yield "text", "lines or signs of the text" if wrong else None
    same = page_of(tree, frame, folder, title=title, **told) == page_of(
        plain, plain_frame, folder, **benign
    )
    yield "page", None if same else "the page has other elements than with plain names"
    parts = Elements(tree._repr_html_()).found, Elements(plain._repr_html_()).found
    names = [{one if isinstance(one, str) else one[0] for one in found} for found in parts]
    yield "notebook", None if names[0] <= names[1] else "elements of the notebook's view"
    told_names = json.loads(to_json(tree))["feature_names"]
    yield "json", None if told_names == tree.feature_names else "names from JSON"
    tree.save(folder / "m.taxarbor")
    back = Hierarchy.load(folder / "m.taxarbor")
    yield "model", None if back.feature_names == tree.feature_names else "names from a model"
    leaves = [f"{one} {at}" for at, one in enumerate(ids[: tree.n_leaves])]
    newick = to_newick(tree, leaves)
    (folder / "t.nwk").write_text(newick, encoding="utf-8")
    n_read = len(ClassTree.read(folder / "t.nwk").leaves)
    yield "newick", None if n_read == tree.n_leaves and is_clean(newick) else "leaves of Newick"
    line = re.compile(r'  \d+ (\[label="(?:[^"\\]|\\.)*"\]|-> \d+);')
    lines = to_dot(tree, leaves).splitlines()[2:-1]
    wrong = len(lines) != 2 * tree.n_nodes - 1 or not all(map(line.fullmatch, lines))
    yield "dot", "a line of DOT" if wrong else None
    yield "frame", None if len(to_frame(tree)) == tree.n_nodes else "lines of the frame"
    yield from drawn(tree, classes, folder)
    why = explain(tree, frame, **told)
    json.loads(json.dumps(why.to_dict(), allow_nan=False))
    yield "explain", None if len(why.nodes()) == tree.n_nodes else "lines of the explanation"


def drawn(tree, classes, folder):
    """Yield what is wrong with pictures, which hold no elements but the usual ones."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    from taxarbor import plot

    mpl.use("agg")
    for name in ("plot_tree", "plot_icicle", "plot_dendrogram", "plot_feature_levels"):
        more = {"classes": classes} if name in ("plot_tree", "plot_icicle") else {}
        getattr(plot, name)(tree, **more)
        with mpl.rc_context({"svg.fonttype": "none"}):
            plt.savefig(folder / "p.svg")
        plt.savefig(folder / "p.png")
        plt.close("all")
        root = ET.fromstring((folder / "p.svg").read_text(encoding="utf-8"))
        odd = {one.tag.rpartition("}")[2] for one in root.iter()} - SVG_ELEMENTS
        yield f"{name}.svg", f"elements {odd} of a picture" if odd else None


def by_command(case, folder):
    """Yield what each command is called, and a problem or None."""
    frame, ids, classes, title = case
    title = title.encode("utf-8", "replace").decode().replace("\x00", "")
    cells = zip(ids, classes, *(frame.iloc[:, at] for at in range(4)), strict=True)
    with (folder / "data.csv").open(
        "w", encoding="utf-8", errors="replace", newline=""
    ) as file:
        csv.writer(file).writerows([("the id", "the class", *frame.columns), *cells])
    data = ("m.taxarbor", "data.csv", "--id-column", "the id", "--force")
    fit = ("fit", "data.csv", "-k", 4, "-o", "m.taxarbor", "--labels", "l.csv")
    steps = [
        (
            *fit,
            "--report",
            "p.html",
            *data[2:],
            "--label-column",
            "the class",
            "--title",
            title,
        ),
        ("show", "m.taxarbor"),
        ("info", "m.taxarbor"),
        ("predict", *data[:4]),
        *(("predict", *data, "-o", f"l{end}") for end in (".csv", ".tsv", ".parquet")),
        ("explain", *data[:4]),
        ("explain", *data[:4], "--row", 3),
        ("report", *data, "--label-column", "the class", "-o", "p.html", "--title", title),
        ("score", *data[:2], "--label-column", "the class"),
        *(("export", data[0], "-o", f"e{end}", "--force") for end in (".nwk", ".dot", ".csv")),
        ("export", "m.taxarbor", "--to", "csv"),
        ("cut", "m.taxarbor", "-k", 2, "--data", *data[1:4]),
    ]
    for step in steps:
        called = " ".join(map(str, step[:1] + step[-2:] if step[0] == "export" else step[:1]))
        code, said = commands.run(step, folder)
        yield called, _problem(step, code, said, folder)
        if code:  # what was read was refused, in words: there is no model to go on with
            return


def _problem(step, code, said, folder):
    """Return what is wrong with what a command said and wrote, if something is."""
    if code not in (0, 2) or "Traceback" in said:
        return f"ended with {code}: {one_line(said)}"
    if code == 2:
        return None if step[0] == "fit" else f"refused its own model: {one_line(said)}"
    if not is_clean(said):
        return "control characters on the terminal"
    for name in {"predict": ("l.csv", "l.tsv"), "fit": ("l.csv",)}.get(step[0], ()):
        if name in step:
            text = (folder / name).read_bytes().decode("utf-8")
            comma = "\t" if name.endswith("tsv") else ","
            rows = [*csv.reader(io.StringIO(text, newline=""), delimiter=comma)]
            if len(rows) != N_ROWS + 1 or {len(row) for row in rows} != {2}:
                return f"{name} has {len(rows)} lines for {N_ROWS} rows"
    return None


def attack(seed, seconds):
    """Take all names through all outputs, each somewhere else in every case."""
    commands.load()
    rng, tally, end = np.random.default_rng(seed), Tally(), time.monotonic() + seconds
    number = 0
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < end:
            texts = [HOSTILE[at] for at in rng.permutation(len(HOSTILE))]
            repeat = f"python -m tests.attack --only names --seed {seed}, case {number}"
            for ways in (by_library, by_command):
                _attack(ways, table(texts), Path(name), tally, repeat)
            number += 1
    return tally


def _attack(ways, case, folder, tally, repeat):
    from taxarbor import TaxarborError

    called = None
    try:
        for called, problem in ways(case, folder):
            tally.check(problem and f"{called}: {problem}", "harmless", repeat)
    except Exception as error:
        if called is None and isinstance(error, TaxarborError):  # of the fit: there is no tree
            tally["refused"] += 1
            return
        what = f"after {called or 'nothing'}: {type(error).__name__}: {one_line(str(error))}"
        tally.forbid(what, repeat)
