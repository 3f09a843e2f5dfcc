"""Colours that all pictures share, told apart by everyone; mixed without matplotlib."""

from typing import TypeAlias

import numpy as np

from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy

Rgb: TypeAlias = tuple[float, float, float]

INK, PLAIN, PLUS, MINUS = "#1f2933", "#52606d", "#05668d", "#9b2c1f"
BRANCH, EDGE, FACE, LEAF_FACE = "#9fb0c0", "#b8c4d0", "#ffffff", "#f3f6f9"
OTHER = "#c9d1d9"
# The muted set of Paul Tol, made for colour-blind readers, less one that is close to others.
CLASSES = (
    "#332288", "#cc6677", "#44aa99", "#ddcc77", "#88ccee", "#882255", "#117733", "#999933",
)  # fmt: skip
BRANCHES = ("#05668d", "#cc6677", "#44aa99", "#ddaa33", "#882255", "#88aadd")
N_CLASSES, N_BRANCHES = len(CLASSES), len(BRANCHES)


def rgb(colour: str) -> Rgb:
    """Return the three parts of a colour such as ``#1f2933``, from 0 to 1."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def mix(colour: str, other: str, share: float) -> Rgb:
    """Return a colour between two: the first for a share of 1, the other for 0."""
    red, green, blue = (
        share * a + (1.0 - share) * b for a, b in zip(rgb(colour), rgb(other), strict=True)
    )
    return red, green, blue


def ink_on(face: Rgb) -> str:
    """Return the colour of text that can be read on this one: dark, or white."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in face
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    # Where the contrasts with both are the same, by the formula of the WCAG.
    return INK if luminance > 0.21 else FACE


def find_branches(hierarchy: Hierarchy, most: int = N_BRANCHES) -> IndexArray:
    """Return the branch that each node belongs to: 0, 1, ... from left to right.

    The branches are the clusters after as many splits as leave no more than ``most`` of
    them, and after the first split in any case. A node above them has -1, and so has a root
    that was not split.
    """
    _, n_new = np.unique(hierarchy.birth, return_counts=True)
    n_clusters = np.cumsum(n_new - 1) + 1
    n_clusters[0] = 1
    step = max(1, int(np.searchsorted(n_clusters, most, side="right")) - 1)
    birth = hierarchy.birth
    # The children of one split have one birth: that of the first is that of all.
    undone = np.full(hierarchy.n_nodes, np.iinfo(np.intp).max)
    undone[hierarchy.parents[1:]] = birth[1:]
    heads = np.flatnonzero((birth <= step) & (undone > step))
    heads = heads[np.argsort(hierarchy.start[heads])]
    if len(heads) == 1:
        return np.full(hierarchy.n_nodes, -1)
    found: IndexArray = np.searchsorted(hierarchy.start[heads], hierarchy.start, "right") - 1
    found[birth < birth[heads[found]]] = -1
    return found


def shade(hierarchy: Hierarchy, branches: IndexArray) -> Array:
    """Return a colour for each node, (n_nodes, 3): its branch's, the lighter the deeper."""
    faces = np.tile(rgb(OTHER), (hierarchy.n_nodes, 1))
    inside = branches >= 0
    if inside.any():
        top = np.full(branches.max() + 1, hierarchy.height)
        np.minimum.at(top, branches[inside], hierarchy.depth[inside])
        below = hierarchy.depth[inside] - top[branches[inside]]
        share = np.maximum(0.85 * 0.8**below, 0.25)[:, None]
        full = np.array([rgb(colour) for colour in BRANCHES])[branches[inside] % N_BRANCHES]
        faces[inside] = share * full + (1.0 - share)
    return faces
