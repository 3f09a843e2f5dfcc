"""From a tree and its rows to a page: one file, which fetches nothing."""

import json
import os
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from numpy.typing import ArrayLike

from taxarbor._atomic import write_atomically
from taxarbor._errors import InputError
from taxarbor.explain import explain
from taxarbor.metrics import tree_scores
from taxarbor.report._page_data import build_context, check_images

SCRIPTS = (
    *("start.js", "cut.js", "view.js", "tree.js", "icicle.js", "panel.js"),
    *("search.js", "tables.js", "download.js", "main.js"),
)


def report(
    model: Any,
    X: ArrayLike,
    path: str | os.PathLike[str],
    *,
    row_names: Sequence[str] | None = None,
    classes: ArrayLike | None = None,
    truth: Any = None,
    images: ArrayLike | None = None,
    title: str = "A taxonomy",
) -> None:
    """Write a page that shows a tree and its reasons: one HTML file that opens offline.

    Parameters
    ----------
    model : fitted estimator or Taxonomy
        The tree. One made from labels or merges alone is explained by nearest means. Features
        are called as it says, or as the columns of a data frame; others can be given by
        :meth:`~taxarbor.Taxonomy.rename_features`.
    X : array-like, CSR matrix, data frame or AnnData of shape (n_rows, n_features)
        The rows that it was grown on, in memory and in the same order; of a tree of a table,
        that table. Of other rows, attach a sample, as for :func:`~taxarbor.explain.explain`.
    path : str or path
        Where to write. An existing file is replaced once the new one is complete.
    row_names, classes : sequences, optional
        Names of the rows, which may be texts, and known classes to compare with; as
        :func:`~taxarbor.explain.explain` takes them. Rows without a class are left out of the
        scores, and a warning says how many.
    truth : ClassTree, or what :meth:`~taxarbor.metrics.ClassTree.read` takes, optional
        The true tree of these classes.
    images : array, optional
        A picture of each row: (n_rows, height, width), or that with 3 or 4 colours at the
        end; floats from 0 to 1, bytes or booleans.
    title : str
        Of the page.

    Raises
    ------
    ValueError, TypeError
        If these do not fit together; the message says which. Nothing is written then.
    OSError
        If the file cannot be written; the old file is left as it was.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> X = animals.X / animals.X.max(axis=0)
    >>> model = Taxarbor(12, random_state=0).fit(X)
    >>> report(model, X, "animals.html", row_names=animals.names)  # doctest: +SKIP
    """
    if truth is not None and classes is None:
        raise InputError(
            "to compare with a true tree, the class of each row is needed: give classes, too"
        )
    explanation = explain(model, X, row_names=row_names, classes=classes)
    taxonomy = explanation.taxonomy
    pictures = None if images is None else check_images(images, taxonomy.tree.n_rows)
    scores = {} if classes is None else tree_scores(taxonomy, classes, truth)
    page = _build_page(build_context(explanation, title, pictures, scores), taxonomy.to_text())
    write_atomically(path, lambda file: file.write(page.encode("utf-8", "replace")))


def _build_page(context: dict[str, Any], plain_text: str) -> str:
    """Return the page; the tree as text is for browsers without scripts."""
    script = "\n".join(_asset(name) for name in SCRIPTS)
    parts = {
        "title": escape(context["title"]),
        "policy": escape(_policy(script)),
        "style": _asset("style.css"),
        "text": escape(plain_text),
        "data": _safe_json(context),
        "script": script,
    }
    # In one go: what is put in is not looked at for further places.
    pieces = _asset("page.html").split("%%")
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def _policy(script: str) -> str:
    """Let nothing be loaded, and no script run but this one, whatever a name may hold."""
    digest = b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _safe_json(values: dict[str, Any]) -> str:
    """Return JSON that cannot end the element it stands in."""
    text = json.dumps(values, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _asset(name: str) -> str:
    return files("taxarbor.report").joinpath("assets", name).read_text(encoding="utf-8")
