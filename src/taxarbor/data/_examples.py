"""Example data: animals that ship with the package, and rows of a planted tree."""

import csv
import json
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, final

import numpy as np

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """Rows that ship with the package, and a tree that is known of them.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        The rows, read-only.
    feature_names, names : tuples of str
        What each column says, and what each row is.
    tree : dict
        Nested nodes, each with a ``"name"``; inner ones have ``"children"``, at least two.
        The names of the leaves are those of the rows, in another order.
    description : str
        Where the rows come from and how to read the columns.

    Examples
    --------
    >>> from taxarbor import load_animals
    >>> animals = load_animals()
    >>> animals.X.shape, len(animals.names), len(animals.feature_names)
    ((206, 85), 206, 85)
    """

    X: Array = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    tree: dict[str, Any] = field(repr=False)
    description: str


def load_animals() -> Bundle:
    """Load animals described by plain attributes, with their biological classification.

    Returns
    -------
    Bundle
        About two hundred animals in alphabetical order, with 85 attributes each.

    Examples
    --------
    >>> animals = load_animals()
    >>> platypus = animals.X[animals.names.index("platypus")]
    >>> [bool(platypus[animals.feature_names.index(name)])
    ...  for name in ("gives_milk", "lays_eggs", "flies")]
    [True, True, False]
    """
    header, *rows = csv.reader(_read("animals.csv").splitlines())
    X = np.array([row[1:] for row in rows], dtype=np.float64)
    X.flags.writeable = False
    names, tree = tuple(row[0] for row in rows), json.loads(_read("animals_tree.json"))
    return Bundle(X, tuple(header[1:]), names, tree, _read("animals.txt"))


def _read(name: str) -> str:
    return files("taxarbor.data").joinpath(name).read_text(encoding="utf-8")


@final
@dataclass(frozen=True, slots=True, eq=False)
class PlantedTree:
    """Rows drawn from a planted tree.

    Attributes
    ----------
    X, labels : arrays of shapes (n_rows, n_features) and (n_rows,)
        The rows, and the planted leaf of each, numbered from left to right.
    features : tuple of arrays
        Per level, from the root down, the features that tell siblings apart there.

    Examples
    --------
    >>> from taxarbor import make_planted_tree
    >>> planted = make_planted_tree(100, depth=2)
    >>> [level.tolist() for level in planted.features]
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """

    X: Array
    labels: IndexArray
    features: tuple[IndexArray, ...]


def make_planted_tree(
    n_rows: int = 1000,
    *,
    depth: int = 3,
    branching: int = 2,
    n_features_per_level: int = 4,
    n_noise_features: int = 8,
    separation: float = 6.0,
    random_state: int = 0,
) -> PlantedTree:
    """Draw rows from a complete tree in which each level has features of its own.

    At each level, a child's rows are shifted by ``separation`` on the level's features, in a
    direction of its own; noise has variance 1. Shifts halve from level to level, so that the
    tree has an order; leaves have equal sizes.

    Parameters
    ----------
    n_rows, random_state : int
        Number of rows, and the seed.
    depth, branching : int
        Shape of the tree: it has ``branching ** depth`` leaves.
    n_features_per_level, n_noise_features : int
        Features that matter at one level, and that matter nowhere.
    separation : float
        Size of the shifts at the lowest level, in standard deviations of the noise.

    Examples
    --------
    >>> planted = make_planted_tree(100, depth=2)
    >>> planted.X.shape, len(set(planted.labels))
    ((100, 16), 4)
    """
    rng = np.random.default_rng(random_state)
    n_leaves = branching**depth
    labels = rng.permutation(np.arange(n_rows) * n_leaves // n_rows)
    X = rng.standard_normal((n_rows, depth * n_features_per_level + n_noise_features))
    features = []
    for level in range(depth):
        own = np.arange(n_features_per_level) + level * n_features_per_level
        child = labels // branching ** (depth - 1 - level) % branching
        shift = separation * 2.0 ** (depth - 1 - level)
        X[:, own] += shift * _directions(branching, n_features_per_level)[child]
        features.append(own)
    return PlantedTree(X, labels, tuple(features))


def _directions(n_children: int, n_features: int) -> Array:
    """Return unit vectors that are far from each other: the corners of a regular polygon."""
    if n_children > 2 and n_features < 2:
        problem = "must be at least 2 for more than two children, got 1"
        raise InputError(problem, "n_features_per_level")
    if n_children == 2:
        return np.outer([1.0, -1.0], np.full(n_features, n_features**-0.5))
    angles = 2.0 * np.pi * np.arange(n_children) / n_children
    phases = np.pi * np.arange(n_features) / n_features
    return np.asarray(np.cos(angles[:, None] - phases) * np.sqrt(2.0 / n_features))
