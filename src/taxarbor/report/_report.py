"""From a tree and its rows to a page."""

import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from taxarbor._images import check_images
from taxarbor.explain import explain
from taxarbor.hierarchy import hierarchy_of, write_whole
from taxarbor.metrics import score_hierarchy
from taxarbor.report._context import Classes, build_context
from taxarbor.report._page import build_page


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
    model : fitted estimator or Hierarchy
        The tree. One made from labels or merges alone is explained by nearest means.
    X : array-like or CSR matrix of shape (n_rows, n_features)
        The rows that it was grown on, in the same order; the columns of a data frame name
        the features where the tree has no names.
    path : str or path
        Where to write. A file that is there is replaced, once the new one is complete.
    row_names : sequence of str, optional
        What the rows are called: names, or texts; by default the index of a data frame
        that has names.
    classes : array-like of shape (n_rows,), optional
        Known classes of the rows, to compare with.
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
        If the file cannot be written; what was there before is left as it was.

    Examples
    --------
    >>> from taxarbor import HMMC, load_animals
    >>> animals = load_animals()
    >>> X = animals.X / animals.X.max(axis=0)
    >>> model = HMMC(12, random_state=0).fit(X)
    >>> report(model, X, "animals.html", row_names=animals.names)  # doctest: +SKIP
    """
    if truth is not None and classes is None:
        raise ValueError(
            "a true tree is compared by the classes of the rows: give classes, too"
        )
    explanation = explain(model, X, row_names=row_names)
    tree, own = explanation.hierarchy, hierarchy_of(model)
    decides = "means" if own.rules[own.root] is None else "rules"
    decides = decides if own.placement is None else "placed"
    pictures = None if images is None else check_images(images, len(tree.order))
    known, scores = None, {}
    if classes is not None:
        scores = score_hierarchy(tree, classes, truth)
        known = Classes.of(classes, len(tree.order))
    context = build_context(
        explanation, title, classes=known, images=pictures, scores=scores, decides=decides
    )
    page = build_page(context, tree.to_text()).encode("utf-8", "replace")
    write_whole(path, lambda file: file.write(page))
