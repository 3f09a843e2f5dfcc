"""The trees of scikit-learn's k-means, flat and bisecting; their rules predict as it does."""

import heapq
from typing import Any

import numpy as np

from taxarbor import Taxonomy
from taxarbor.tree import LinearRule, TreeBuilder


def read_kmeans(model: Any) -> Taxonomy:
    """Return a root with one leaf per cluster that has rows; they go to the nearest center."""
    used, codes = np.unique(model.labels_, return_inverse=True)
    builder = TreeBuilder(len(codes))
    if len(used) > 1:
        builder.add_split(0, codes, LinearRule.nearest(model.cluster_centers_[used]))
    return Taxonomy(builder.freeze())


def read_bisecting_kmeans(model: Any) -> Taxonomy:
    """Bisect again, best first and of ties the leftmost, as scikit-learn did.

    A bisection of duplicate rows may leave one side empty; that side becomes no node.
    """
    labels = model.labels_
    # Public attributes have the clusters only; these private ones are the same since 1.1.
    root, mean = model._bisecting_tree, model._X_mean
    builder = TreeBuilder(len(labels))
    pending = [(0.0, 0, 0, root)]  # by score, then by the first label; these differ
    while pending:
        *_, node, part = heapq.heappop(pending)
        if part.left is None:
            continue
        goes_right = labels[builder.rows(node)] >= _first_label(part.right)
        sides = [part.left, part.right]
        nodes: tuple[int, ...] = (node,)
        if goes_right.any() and not goes_right.all():
            rule = LinearRule.nearest(np.vstack([side.center for side in sides]) + mean)
            nodes = builder.add_split(node, goes_right.astype(np.intp), rule)
        else:
            sides = [sides[int(goes_right[0])]]
        for child, side in zip(nodes, sides, strict=True):
            heapq.heappush(pending, (-float(side.score), _first_label(side), child, side))
    return Taxonomy(builder.freeze())


def _first_label(part: Any) -> int:
    """Return the label of the leftmost leaf: labels count the leaves from left to right."""
    while part.left is not None:
        part = part.left
    return int(part.label)
