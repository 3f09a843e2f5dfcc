"""All scores at once."""

from numpy.typing import ArrayLike

from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics._class_tree import TreeSource
from taxarbor.metrics._table import adjusted_information, adjusted_rand, rand, tabulate
from taxarbor.metrics._tree_scores import (
    Measure,
    adjust,
    compare,
    cost,
    learned_pairs,
    purity,
    true_pairs,
)


def score_hierarchy(
    hierarchy: Hierarchy,
    y: ArrayLike,
    truth: TreeSource | None = None,
    *,
    dasgupta: bool = False,
) -> dict[str, float]:
    """Score a learned tree by every measure at once.

    The rows are counted once, by leaf and class.

    Parameters
    ----------
    hierarchy : Hierarchy
        The learned tree.
    y : array-like of shape (n_rows,)
        The class of each row. Converted to text, it is the name of a leaf of the true tree.
    truth : ClassTree, or what :meth:`ClassTree.read` takes, optional
        The true tree of the classes.
    dasgupta : bool
        Whether to add Dasgupta's cost, normalized.

    Returns
    -------
    dict of str to float
        With a true tree ``shortest_path``, ``path_sharing``, ``adjusted_shortest_path``,
        ``adjusted_path_sharing``, and what the first two are expected to be when rows are
        shuffled, ``chance_shortest_path`` and ``chance_path_sharing``. Always ``rand``,
        ``adjusted_rand``, ``adjusted_mutual_info`` and ``dendrogram_purity``, which is NaN
        if no class has two rows. On request ``dasgupta_cost``. In this order, and as
        fractions, not in percent.

    Raises
    ------
    ValueError
        If there is not one class per row, there are fewer than two rows, ``truth`` is not a
        tree, or a class is not one of its leaves.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> tree = Taxarbor(12, random_state=0).fit(animals.X).hierarchy_
    >>> scores = score_hierarchy(tree, animals.names, animals.tree)
    >>> scores["adjusted_shortest_path"] > 0.1
    True
    """
    table = tabulate(hierarchy, y)
    classes = None if truth is None else true_pairs(table, truth)
    scores: dict[str, float] = {}
    if classes is not None:
        leaves = learned_pairs(table)
        found = {measure: compare(table, leaves, classes, measure) for measure in Measure}
        scores |= {f"{name}": 1.0 - error for name, (error, _) in found.items()}
        scores |= {f"adjusted_{name}": adjust(*both) for name, both in found.items()}
        scores |= {f"chance_{name}": 1.0 - chance for name, (_, chance) in found.items()}
    scores["rand"] = rand(table)
    scores["adjusted_rand"] = adjusted_rand(table)
    scores["adjusted_mutual_info"] = adjusted_information(table.counts)
    scores["dendrogram_purity"] = purity(table)
    if dasgupta:
        scores["dasgupta_cost"] = cost(table, classes, normalize=True)
    return scores
