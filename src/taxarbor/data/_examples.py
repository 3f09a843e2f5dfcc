"""Example data: animals that ship with the package, and rows of a planted tree."""

import csv
import json
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, final

import numpy as np

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray

_ANIMALS = """\
Animals by plain attributes, written down by hand for taxarbor.

Each row is an animal, each column something that can be said of it. Most columns are 0 or
1. Four are ordered classes from 0 to 4:

size_class        adult weight: under 10 g, 1 kg, 15 kg, 300 kg, or more
lifespan_class    age reached in good conditions: under 2, 10, 25, 50 years, or more
brood_size_class  eggs or young of one brood: 1, up to 5, 20, 1000, or more
legs_count_class  none, two, four, six, eight or more; wings, flippers, fins, the arms of
                  molluscs and limbs used only for feeding are no legs

How the less obvious columns are meant:

- A name stands for one well-known species where its relatives differ: the camel has one
  hump, the dolphin is the bottlenose, the elephant the African savanna elephant, the
  rhinoceros the black one, the tree frog the red-eyed one, the lungfish the Australian one,
  the porcupine the North American one.
- Males, females, young and adults count together: antlers are has_antlers, and what a
  caterpillar eats is what the butterfly eats. Of insect colonies the worker is described,
  but lifespan and brood are the queen's, a brood being what she lays in a season. Of coral,
  size is that of a polyp, lifespan that of the colony.
- Eggs laid one by one over weeks count as one brood; of pouched mammals count the young
  that find a place in the pouch.
- has_shell is a shell to live in, that of the armadillo included; the armour of insects and
  crabs is has_exoskeleton. teeth_in_jaws are teeth of vertebrates. has_horns includes the
  giraffe's, has_hooves the nail-like hooves of hippopotamus and rhinoceros.
- lives_in_sea and lives_in_lakes_or_rivers also hold where most of the food comes from
  there. builds_nests asks for material that was gathered.
- eats_plants are leaves, grass, roots, wood and algae; eats_meat is flesh of land
  vertebrates, frogs included; eats_shellfish are crustaceans and shelled molluscs. Only
  what makes up a good part of the food counts.

The tree is the biological classification, down to order or family.
"""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """Rows that ship with the package, and a tree that is known of them.

    Attributes
    ----------
    X : array of shape (n_rows, n_features), float64
        The rows; read-only.
    feature_names : tuple of str
        What each column says.
    names : tuple of str
        What each row is.
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
    return Bundle(X, tuple(header[1:]), names, tree, _ANIMALS)


def _read(name: str) -> str:
    return files("taxarbor.data").joinpath(name).read_text(encoding="utf-8")


@final
@dataclass(frozen=True, slots=True, eq=False)
class PlantedTree:
    """Rows drawn from a planted tree.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        The rows.
    labels : array of shape (n_rows,)
        The planted leaf of each row, numbered from left to right.
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
    n_rows : int
        Number of rows.
    depth, branching : int
        Shape of the tree: it has ``branching ** depth`` leaves.
    n_features_per_level, n_noise_features : int
        Features that matter at one level, and that matter nowhere.
    separation : float
        Size of the shifts at the lowest level, in standard deviations of the noise.
    random_state : int
        Seed.

    Returns
    -------
    PlantedTree

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
        raise InputError(
            f"{n_children} children cannot be told apart by one feature without an offset; "
            "n_features_per_level must be at least 2"
        )
    if n_children == 2:
        return np.outer([1.0, -1.0], np.full(n_features, n_features**-0.5))
    angles = 2.0 * np.pi * np.arange(n_children) / n_children
    phases = np.pi * np.arange(n_features) / n_features
    return np.asarray(np.cos(angles[:, None] - phases) * np.sqrt(2.0 / n_features))
