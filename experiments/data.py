"""Rows with known classes, and a tree of the classes: what methods are compared on."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from taxarbor import FileFormatError, load_animals
from taxarbor.metrics import ClassTree

Scaling = Literal["none", "unit", "standard"]
SCALINGS: tuple[Scaling, ...] = ("none", "unit", "standard")

STAND_INS = {
    "awa_attr": "AWA-ATTR",
    "awa_pca": "AWA-PCA",
    "tiny_vehicle15/X_sift": "VEHICLE",
    "tiny_imagenet20/X_sift": "IMAGENET",
}
"""Which of the paper's data sets ours stand in for, by the names of ours."""

BUNDLED = "animals"

PLANTED, PLANTED_ROWS = "planted/", 40_000
"""How the names of drawn data begin, as in ``planted/256/50/0.5``: features, clusters and the
spread of their centres. Half of the rows are fitted."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows, the class of each, the tree of the classes, and, where known, feature names."""

    name: str  # ``file/array`` where a file holds several kinds of rows
    X: NDArray[np.float32]
    y: NDArray[np.str_]
    truth: ClassTree
    feature_names: tuple[str, ...] | None

    @property
    def n_classes(self) -> int:
        """Number of classes that rows have."""
        return len(np.unique(self.y))

    def digest(self) -> str:
        """Return a short digest of all that is in it."""
        digest = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        digest.update("\0".join(self.y.tolist()).encode())
        digest.update(self.truth.parents.tobytes())
        digest.update("\0".join(self.truth.node_names).encode())
        return digest.hexdigest()[:12]

    def thin(self, max_rows: int) -> "Dataset":
        """Return at most so many of the rows, drawn at random, in order; all of them for 0."""
        n_rows = len(self.X)
        if not 0 < max_rows < n_rows:
            return self
        kept = np.sort(np.random.default_rng(0).permutation(n_rows)[:max_rows])
        return replace(self, X=self.X[kept], y=self.y[kept])

    def scale(self, scaling: Scaling) -> "Dataset":
        """Return the same with rows of unit length, or columns of mean 0 and variance 1."""
        if scaling == "none":
            return self
        X = self.X.astype(np.float64)
        if scaling == "unit":
            lengths = np.linalg.norm(X, axis=1, keepdims=True)
            X /= np.where(lengths > 0.0, lengths, 1.0)
        else:
            X -= X.mean(axis=0)
            spread = X.std(axis=0)
            X /= np.where(spread > 0.0, spread, 1.0)
        return replace(self, X=np.ascontiguousarray(X, dtype=np.float32))


@lru_cache(maxsize=24)
def open_dataset(name: str, scaling: Scaling, max_rows: int, folder: Path | None) -> Dataset:
    """Return a data set, thinned out and scaled; the last few stay open."""
    return load_dataset(name, folder).thin(max_rows).scale(scaling)


@cache
def list_datasets(folder: Path | None) -> list[str]:
    """Return the names of the data sets in a folder, or of what is bundled.

    A data set is ``NAME.npz`` with arrays ``X`` and ``y``, and perhaps ``class_names`` and
    ``feature_names``. Its tree is beside it, in ``NAME.hierarchy.json``. Further arrays
    ``X_kind`` in the file are data sets of their own, ``NAME/X_kind``, if they have a row per
    class label too.
    """
    if folder is None:
        return [BUNDLED]
    if not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is not a folder; --data wants one with npz files")
    names = []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            if {"X", "y"} <= set(arrays):
                kinds = [key for key in arrays if key.startswith("X_")]
                fits = [key for key in kinds if arrays[key].shape[:-1] == arrays["y"].shape]
                names += [path.stem, *(f"{path.stem}/{key}" for key in fits)]
    if not names:
        raise ValueError(f"no data in {str(folder)!r}: expected NAME.npz with X and y")
    return names


def load_dataset(name: str, folder: Path | None) -> Dataset:
    """Return a data set by the name that :func:`list_datasets` gives it."""
    if name.startswith(PLANTED):
        return _draw_dataset(name)
    if folder is None:
        return _animals()
    stem, _, key = name.partition("/")
    path, tree = folder / f"{stem}.npz", folder / f"{stem}.hierarchy.json"
    for one in (path, tree):
        if not one.exists():
            raise FileFormatError(f"there is no {one.name} in {str(folder)!r}")
    with np.load(path, allow_pickle=False) as arrays:
        X, y = arrays[key or "X"].astype(np.float32), arrays["y"]
        classes, features = arrays.get("class_names"), arrays.get("feature_names")
    if not np.isfinite(X).all():
        raise FileFormatError(f"{name} has cells that are missing or infinite")
    labels = y.astype(str) if classes is None else classes.astype(str)[y]
    has_names = features is not None and features.shape == X.shape[1:]
    names = tuple(features.astype(str).tolist()) if has_names else None
    try:
        truth = ClassTree.read(json.loads(tree.read_text(encoding="utf-8")))
        truth.leaves_of(np.unique(labels).tolist())
    except (ValueError, TypeError) as error:
        raise FileFormatError(f"{tree.name}: {error}") from error
    return Dataset(name, np.ascontiguousarray(X), labels, truth, names)


def _draw_dataset(name: str) -> Dataset:
    """Return drawn clusters, as many as the name says; their tree is flat."""
    n_features, n_clusters, spread = name.removeprefix(PLANTED).split("/")
    X, labels = draw_clusters(PLANTED_ROWS, int(n_features), int(n_clusters), float(spread))
    classes = [str(one) for one in range(int(n_clusters))]
    flat = {"name": "all", "children": [{"name": one} for one in classes]}
    return Dataset(name, X, np.array(classes)[labels], ClassTree.read(flat), None)


def draw_clusters(
    n_rows: int, n_features: int, n_clusters: int, spread: float, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Draw clusters without an order, and the cluster of each row.

    Every feature of a centre is normal with this spread, and that of a row is normal around
    the centre, with spread 1: each feature says little, and all together much.
    """
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=spread, size=(n_clusters, n_features))
    labels = rng.integers(n_clusters, size=n_rows)
    noise = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    return centers.astype(np.float32)[labels] + noise, labels


def _animals(depth: int = 2) -> Dataset:
    """Return the bundled animals; their classes are the nodes at some depth of their tree."""
    animals = load_animals()
    class_of: dict[str, str] = {}
    tree = _cut(animals.tree, depth, class_of)
    X = (animals.X / animals.X.max(axis=0)).astype(np.float32)
    y = np.array([class_of[name] for name in animals.names])
    return Dataset(BUNDLED, X, y, ClassTree.read(tree), animals.feature_names)


def _cut(node: Mapping[str, Any], depth: int, class_of: dict[str, str]) -> dict[str, Any]:
    """Return the first levels of a tree, and note in which of its leaves each name ends up."""
    children = node.get("children") or []
    if depth > 0 and children:
        return {
            "name": node["name"],
            "children": [_cut(child, depth - 1, class_of) for child in children],
        }
    waiting = [node]
    while waiting:
        below = waiting.pop()
        waiting += below.get("children") or []
        class_of[below["name"]] = node["name"]
    return {"name": node["name"]}
