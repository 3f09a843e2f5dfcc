"""Where the page's values come from: one function per value, None where it is not known."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from taxarbor._types import Array
from taxarbor.explain import Explanation
from taxarbor.explain._names import phrase
from taxarbor.hierarchy import Hierarchy, Reason

BLOCK = 4_000_000  # numbers of rows or probabilities held at a time
BINS = 12  # of the small histograms
Examples = list[dict[str, Any]]


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


def typical_of(explanation: Explanation) -> Callable[[int, int], Examples]:
    """Return what gives the rows nearest to the middle of a node."""
    return getattr(explanation, "typical", None) or _Spread(explanation).typical


def extreme_of(explanation: Explanation) -> Callable[[int, int], Examples]:
    """Return what gives the rows deepest inside a node's margins."""
    return getattr(explanation, "extreme", None) or explanation.exemplars


def standout_of(explanation: Explanation) -> Callable[[int, int], Examples]:
    """Return what gives the features in which a node differs most from all rows."""
    return getattr(explanation, "standout", None) or _Spread(explanation).standout


def words_of(explanation: Explanation, node: int, reason: Reason) -> str:
    """Put a reason into words."""
    return phrase(reason, bool(explanation.is_yes_no[reason.feature]))


def format_number(value: float | None) -> str:
    """Return a number for people: 46 million, 17,590, 0.1235."""
    if value is None or not np.isfinite(value):
        return "–"
    size = abs(value)
    for unit, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if size >= unit:
            return f"{value / unit:.3g} {word}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4f}".rstrip("0").rstrip(".") if size >= 1e-3 or not size else f"{value:.2g}"


def format_column(values: Sequence[float]) -> list[str]:
    """Return numbers with the same decimals."""
    found = [format_number(value) for value in values]
    if any(" " in text or "e" in text for text in found):
        return found
    decimals = min(2, max((len(text.partition(".")[2]) for text in found), default=0))
    return [f"{value:,.{decimals}f}" for value in values]


class _Spread:
    """Stands in for what the explanation will say itself."""

    def __init__(self, explanation: Explanation) -> None:
        tree = explanation.hierarchy
        assert tree.means is not None
        columns = np.arange(tree.means.shape[1])
        self.explanation, self.means = explanation, tree.means.astype(np.float64)
        self.values = explanation.values(np.arange(len(tree.order)), columns)
        self.spread = np.maximum(self.values.std(axis=0), 1e-12)
        self.edges: dict[int, Array] = {}

    def typical(self, node: int, n: int) -> Examples:
        rows = self.explanation.hierarchy.rows(node)
        far = ((self.values[rows] - self.means[node]) / self.spread) ** 2
        nearest = rows[np.argsort(far.sum(axis=1), kind="stable")[:n]].tolist()
        return [{"row": row, "name": self.explanation.row_name(row)} for row in nearest]

    def standout(self, node: int, n: int) -> Examples:
        tree, yes_no = self.explanation.hierarchy, self.explanation.is_yes_no
        names = tree.feature_names or [f"x{j}" for j in range(self.means.shape[1])]
        effects = (self.means[node] - self.means[0]) / self.spread
        found = []
        for j in np.argsort(-np.abs(effects), kind="stable")[:n].tolist():
            if abs(effects[j]) < 0.2:
                break
            if j not in self.edges:
                low, high = np.quantile(self.values[:, j], [0.005, 0.995])
                bins = 2 if yes_no[j] else BINS
                self.edges[j] = np.linspace(*((0, 1) if yes_no[j] else (low, max(high, low + 1e-9))), bins + 1)
            edges = self.edges[j]
            own = np.clip(self.values[tree.rows(node), j], edges[0], edges[-1])
            every = np.clip(self.values[:, j], edges[0], edges[-1])
            found.append({
                "feature": names[j], "effect": float(effects[j]),
                "mean": float(self.means[node, j]), "all_mean": float(self.means[0, j]),
                "share": float(self.means[node, j]) if yes_no[j] else None,
                "histogram": np.histogram(own, edges)[0].tolist(),
                "all_histogram": np.histogram(every, edges)[0].tolist(),
            })  # fmt: skip
        return found
