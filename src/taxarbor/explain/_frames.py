"""Data frames, built column by column."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from taxarbor._types import IndexArray
from taxarbor.explain._steps import Pull, Steps
from taxarbor.hierarchy import Hierarchy

if TYPE_CHECKING:
    import pandas as pd

ALL_TOGETHER, RULE_ALONE = (
    "all features together decide otherwise",
    "the rule alone decides otherwise",
)


def make_frame(columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Return a data frame of these columns, or say what to install."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("data frames need pandas: pip install 'taxarbor[io]'") from error
    return pd.DataFrame(dict(columns))


def in_words(pulls: tuple[Pull, ...]) -> str:
    """Return the features that pull a row, one behind the other."""
    return "; ".join(map(str, pulls))


def step_columns(
    found: Iterable[Steps],
    hierarchy: Hierarchy,
    names: Sequence[str],
    chosen: IndexArray,
    row_names: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the columns of a frame with a line per row and split on its way.

    Parameters
    ----------
    found : iterable of Steps
        Told as by :func:`in_words`, parents first.
    hierarchy : Hierarchy
        The tree.
    names : sequence of str
        What its nodes are called.
    chosen : int array
        Numbers of the rows.
    row_names : sequence of str, optional
        What all rows are called.
    """
    steps = list(found)
    places = _joined([one.places for one in steps], np.intp)
    # Parents come first, and a stable sort leaves it at that: each way begins at the root.
    order = np.argsort(places, kind="stable")
    places = places[order]
    nodes = np.repeat([one.node for one in steps], [len(one.places) for one in steps])
    nodes = nodes.astype(np.intp)[order]
    children = _joined([one.children for one in steps], np.intp)[order]
    rows = [f"row {row}" if row_names is None else row_names[row] for row in chosen.tolist()]
    told = [text for one in steps for text in _reasons(one, hierarchy)]
    return {
        "row": chosen[places],
        "row_name": _texts(rows)[places],
        "step": hierarchy.depth[nodes] + 1,
        "node": nodes,
        "node_name": _texts(names)[nodes],
        "child": children,
        "child_name": _texts(names)[children],
        "margin": _joined([one.margins for one in steps], np.float64)[order],
        "surer_than": _joined([one.surer_than for one in steps], np.float64)[order],
        "agrees": _joined([one.agrees for one in steps], np.bool_)[order],
        "why": _texts(told)[order],
    }


def _reasons(steps: Steps, hierarchy: Hierarchy) -> list[str]:
    """Return the words of a split's steps, and where its rule is not what decided."""
    # Without a placement it is the labels given, or the balance of a split, that decided.
    end = RULE_ALONE if hierarchy.placement is None else ALL_TOGETHER
    return [
        f"{text}; {end}" if text and not same else text
        for text, same in zip(steps.told, steps.agrees.tolist(), strict=True)
    ]


def _joined(parts: Sequence[Any], dtype: Any) -> Any:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])


def _texts(texts: Sequence[str]) -> Any:
    return np.array([*texts, None], dtype=object)[:-1]
