"""Where the page's values come from: one function per value, None where it is not known."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from taxarbor._types import Array
from taxarbor.explain import Explanation
from taxarbor.hierarchy import Hierarchy

BLOCK = 4_000_000  # numbers of rows or probabilities held at a time
Told = list[dict[str, Any]]


def follows_of(tree: Hierarchy) -> Any:
    """Return for which rows the words are true."""
    return getattr(tree, "follows", None)


def trust_of(tree: Hierarchy) -> Any:
    """Return what refits have said."""
    return getattr(tree, "trust", None)


def node_proba_of(explanation: Explanation) -> Iterable[Array] | None:
    """Return the probability of each node for each row, some rows at a time."""
    tree: Any = explanation.hierarchy
    if getattr(tree, "predict_proba", None) is None or tree.means is None:
        return None
    n_rows, columns = len(tree.order), np.arange(tree.means.shape[1])
    step = max(1, BLOCK // max(len(columns), tree.n_nodes))
    parts = (np.arange(first, min(first + step, n_rows)) for first in range(0, n_rows, step))
    return (tree.node_proba(tree.predict_proba(explanation.values(p, columns))) for p in parts)


def typical_of(explanation: Explanation) -> Callable[[int, int], Told]:
    """Return what gives the rows nearest to the middle of a node."""
    return getattr(explanation, "typical", None) or _Spread(explanation).typical


def extreme_of(explanation: Explanation) -> Callable[[int, int], Told]:
    """Return what gives the rows deepest inside a node's margins."""
    found: Any = getattr(explanation, "extreme", None) or explanation.exemplars
    return found  # type: ignore[no-any-return]


def standout_of(explanation: Explanation) -> Callable[[int, int], Told]:
    """Return what gives the features in which a node differs most from all rows."""
    return getattr(explanation, "standout", None) or _Spread(explanation).standout


def leading_of(explanation: Explanation, node: int, n_top: int) -> Told:
    """Return the features that lead to a node, with their columns and words."""
    reasons = explanation.hierarchy.reasons(node, n_top)
    told = zip(explanation.leading(node, n_top), reasons, strict=True)
    return [
        {"column": why.feature, "words": f"{one['direction']} {one['feature']}", **one}
        for one, why in told
    ]


def yes_no_of(explanation: Explanation) -> Any:
    """Return which features hold 0 and 1 and nothing else."""
    tree = explanation.hierarchy
    found = getattr(tree, "yes_no", None)
    if found is None:
        found = getattr(explanation, "is_yes_no", None)
    return (
        np.zeros(0 if tree.means is None else tree.means.shape[1]) if found is None else found
    )


def format_number(value: float) -> str:
    """Return a number for people: 46 million, 17,590, 0.1235."""
    return str(_words().format_number(value)) if _words() else f"{value:.4g}"


def format_column(values: Sequence[float]) -> list[str]:
    """Return numbers with the same decimals."""
    return list(_words().format_column(values)) if _words() else [f"{v:,.2f}" for v in values]


@cache
def _words() -> Any:
    name = "taxarbor.hierarchy._words"
    return import_module(name) if find_spec(name) else None


class _Spread:
    """Stands in for what an explanation does not say."""

    def __init__(self, explanation: Explanation) -> None:
        tree = explanation.hierarchy
        assert tree.means is not None
        columns = np.arange(tree.means.shape[1])
        self.explanation, self.means = explanation, tree.means.astype(np.float64)
        self.values = explanation.values(np.arange(len(tree.order)), columns)
        self.spread = np.maximum(self.values.std(axis=0), 1e-12)
        self.low, self.high = np.quantile(self.values, (0.01, 0.99), axis=0)

    def typical(self, node: int, n: int) -> Told:
        rows = self.explanation.hierarchy.rows(node)
        far = ((self.values[rows] - self.means[node]) / self.spread) ** 2
        nearest = rows[np.argsort(far.sum(axis=1), kind="stable")[:n]].tolist()
        return [{"row": row, "name": self.explanation.row_name(row)} for row in nearest]

    def standout(self, node: int, n: int) -> Told:
        tree, yes_no, mean = self.explanation.hierarchy, yes_no_of(self.explanation), self.means
        effects = np.tanh((mean[node] - mean[0]) / self.spread)
        found = []
        for j in np.argsort(-np.abs(effects), kind="stable")[: n if node else 0].tolist():
            low, high = (0.0, 1.0) if yes_no[j] else (self.low[j], self.high[j])
            edges = np.linspace(low, max(high, low + 1e-9), 3 if yes_no[j] else 13)
            own, every = (
                np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0].tolist()
                for values in (self.values[tree.rows(node), j], self.values[:, j])
            )
            name = tree.feature_names[j] if tree.feature_names else f"x{j}"
            means = float(mean[node, j]), float(mean[0, j])
            shares = means if yes_no[j] else (None, None)
            words = f"{'higher' if effects[j] > 0 else 'lower'} {name}"
            found.append({
                "feature": name, "column": j, "words": words, "effect": float(effects[j]),
                "mean": means[0], "all_mean": means[1], "share": shares[0],
                "all_share": shares[1], "counts": own, "all_counts": every,
            })  # fmt: skip
        return found
