"""All measures at once."""

from numpy.typing import ArrayLike

from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics._class_tree import ClassTree, TreeSource
from taxarbor.metrics._information import adjusted_information
from taxarbor.metrics._leaf_scores import adjusted_rand, rand
from taxarbor.metrics._node_scores import cost, purity
from taxarbor.metrics._similarity import LeafPairs, Measure
from taxarbor.metrics._table import LeafTable, tabulate
from taxarbor.metrics._tree_scores import agree, learned_pairs, true_pairs


def score_hierarchy(
    hierarchy: Hierarchy,
    y: ArrayLike,
    truth: TreeSource | None = None,
    *,
    dasgupta: bool = False,
) -> dict[str, float]:
    """Score a learned tree by every measure.

    The rows are looked at once, to count them by leaf and class.

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
        ``adjusted_path_sharing``, and what to expect of the first two when rows are
        shuffled, ``chance_shortest_path`` and ``chance_path_sharing``. Always ``rand``,
        ``adjusted_rand``, ``adjusted_mutual_info`` and ``dendrogram_purity``, which is NaN
        where no class has two rows. On request ``dasgupta_cost``. In this order, and as
        fractions, not in percent.

    Raises
    ------
    ValueError
        If there is not one class per row, there are fewer than two rows, the true tree is
        none, or a class is not a leaf of it.

    Examples
    --------
    >>> from taxarbor import HMMC, load_animals
    >>> animals = load_animals()
    >>> tree = HMMC(12, random_state=0).fit(animals.X).hierarchy_
    >>> scores = score_hierarchy(tree, animals.names, animals.tree)
    >>> scores["adjusted_shortest_path"] > 0.1
    True
    """
    table = tabulate(hierarchy, y)
    classes = None if truth is None else true_pairs(table, ClassTree.read(truth))
    scores = {} if classes is None else _tree_scores(table, classes)
    scores["rand"] = rand(table)
    scores["adjusted_rand"] = adjusted_rand(table)
    scores["adjusted_mutual_info"] = adjusted_information(table.counts)
    scores["dendrogram_purity"] = purity(table)
    if dasgupta:
        scores["dasgupta_cost"] = cost(table, classes, normalize=True)
    return scores


def _tree_scores(table: LeafTable, classes: LeafPairs) -> dict[str, float]:
    leaves = learned_pairs(table)
    found = {measure: agree(table, leaves, classes, measure) for measure in Measure}
    return {
        **{f"{measure}": one.score for measure, one in found.items()},
        **{f"adjusted_{measure}": one.adjusted for measure, one in found.items()},
        **{f"chance_{measure}": 1.0 - one.chance for measure, one in found.items()},
    }
