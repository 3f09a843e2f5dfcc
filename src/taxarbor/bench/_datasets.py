"""Rows with known classes, and a tree of the classes: what methods are compared on."""

import hashlib
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from taxarbor._errors import FileFormatError
from taxarbor._types import Array
from taxarbor.data import load_animals
from taxarbor.metrics import ClassTree
from taxarbor.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

Scaling = Literal["none", "unit", "standard"]
SCALINGS: tuple[Scaling, ...] = ("none", "unit", "standard")

CLASS_COLUMNS = ("class", "label", "y")
TREE_SUFFIXES = (".hierarchy.json", ".tree.json", ".nwk", ".newick")
BUNDLED = "animals"
DAMAGED = (ValueError, EOFError, zipfile.BadZipFile, zlib.error)
"""What reading an npz file raises when it is none."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows, their classes and the tree of these.

    Attributes
    ----------
    name : str
        What the results call it; ``file/array`` where a file holds several kinds of rows.
    X : array of shape (n_rows, n_features)
        The rows, float32.
    y : array of str of shape (n_rows,)
        The class of each.
    truth : ClassTree or None
        The tree of the classes, where known.
    feature_names : tuple of str or None
        Names of the columns, where known.
    """

    name: str
    X: Array
    y: NDArray[np.str_]
    truth: ClassTree | None
    feature_names: tuple[str, ...] | None

    @property
    def n_classes(self) -> int:
        """Number of classes that rows have."""
        return len(np.unique(self.y))

    def digest(self) -> str:
        """Return a short digest of all that is in it."""
        digest = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        digest.update("\0".join(self.y.tolist()).encode())
        if self.truth is not None:
            digest.update(self.truth.parents.tobytes())
            digest.update("\0".join(self.truth.node_names).encode())
        return digest.hexdigest()[:12]

    def thinned(self, max_rows: int) -> "Dataset":
        """Return at most so many of the rows, evenly spaced; all of them for 0."""
        n_rows = len(self.X)
        if not 0 < max_rows < n_rows:
            return self
        kept = np.arange(max_rows) * n_rows // max_rows
        return replace(self, X=self.X[kept], y=self.y[kept])

    def scaled(self, scaling: Scaling) -> "Dataset":
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


def list_datasets(folder: Path | None) -> list[str]:
    """Return the names of the data sets in a folder, or of what is bundled.

    A data set is ``NAME.npz`` with arrays ``X`` and ``y``, and perhaps ``class_names`` and
    ``feature_names``; or ``NAME.csv`` with numeric columns and one called class, label or y.
    Its tree is beside it, ``NAME.hierarchy.json`` or ``NAME.nwk``. Further arrays ``X_kind``
    in an npz file are data sets of their own, ``NAME/X_kind``, if they have a row per class
    label too.

    Raises
    ------
    ValueError
        If there is no such folder, nothing in it, or a file that cannot be read.
    """
    if folder is None:
        return [BUNDLED]
    if not folder.is_dir():
        raise ValueError(
            f"{str(folder)!r} is not a folder; --data wants one with npz or csv files"
        )
    found = (name for path in sorted(folder.iterdir()) for name in _names_in(path))
    names = list(dict.fromkeys(found))  # NAME.csv beside NAME.npz is not another
    if not names:
        raise ValueError(
            f"no data in {str(folder)!r}: expected NAME.npz with X and y, or NAME.csv with a "
            f"column called {' or '.join(CLASS_COLUMNS)}"
        )
    return names


def load_dataset(name: str, folder: Path | None) -> Dataset:
    """Return a data set by the name that :func:`list_datasets` gives it.

    Raises
    ------
    FileFormatError
        If the file is not what it should be; the message says why.
    """
    if folder is None:
        return _animals()
    stem, _, key = name.partition("/")
    npz, csv = folder / f"{stem}.npz", folder / f"{stem}.csv"
    if npz.exists():
        found = _from_npz(npz, name, key or "X")
    elif csv.exists():
        found = _from_csv(csv, name)
    else:
        raise FileFormatError(f"there is no {npz.name} or {csv.name} in {str(folder)!r}")
    _check_rows(found)
    return _with_truth(found, folder, stem)


def _names_in(path: Path) -> Iterator[str]:
    if path.suffix == ".csv":
        if _class_columns(_read_csv(path, nrows=0)):
            yield path.stem
    elif path.suffix == ".npz":
        shapes = _shapes_in(path)
        if {"X", "y"} <= set(shapes):
            yield path.stem
            kinds = (key for key in shapes if key.startswith("X_"))
            yield from (
                f"{path.stem}/{key}"
                for key in kinds
                if len(shapes[key]) == 2 and shapes[key][:1] == shapes["y"]
            )


def _shapes_in(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an npz file's arrays, without reading these."""
    shapes = {}
    try:
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                with file.open(name) as array:
                    is_old = npy.read_magic(array) == (1, 0)
                    read = npy.read_array_header_1_0 if is_old else npy.read_array_header_2_0
                    shapes[name.removesuffix(".npy")] = read(array)[0]
    except DAMAGED as error:
        raise FileFormatError(
            f"{path.name} is no npz file, or a damaged one: {error}"
        ) from error
    return shapes


def _from_npz(path: Path, name: str, key: str) -> Dataset:
    missing = {key, "y"} - set(_shapes_in(path))
    if missing:
        raise FileFormatError(f"{path.name} lacks the arrays {sorted(missing)}")
    try:
        with np.load(path, allow_pickle=False) as arrays, np.errstate(over="ignore"):
            X, y = arrays[key].astype(np.float32), arrays["y"]
            classes, names = arrays.get("class_names"), arrays.get("feature_names")
    except DAMAGED as error:
        raise FileFormatError(f"{path.name} cannot be read: {error}") from error
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise FileFormatError(
            f"{path.name}: {key} has shape {X.shape} and y has {y.shape}; expected (n_rows, "
            "n_features) and (n_rows,)"
        )
    known = names is not None and names.shape == X.shape[1:]
    features = tuple(names.astype(str).tolist()) if known else None
    return Dataset(name, np.ascontiguousarray(X), _labels(path, y, classes), None, features)


def _labels(path: Path, y: NDArray[Any], names: NDArray[Any] | None) -> NDArray[np.str_]:
    """Return the name of each row's class."""
    if names is None:
        return y.astype(str)
    if y.dtype.kind not in "iu" or not ((y >= 0) & (y < len(names))).all():
        raise FileFormatError(
            f"{path.name}: with class_names, y must number them from 0 to {len(names) - 1}"
        )
    found: NDArray[np.str_] = names.astype(str)[y]
    return found


def _from_csv(path: Path, name: str) -> Dataset:
    found = _class_columns(_read_csv(path, nrows=0))
    if not found:
        raise FileFormatError(f"{path.name} has no column called {' or '.join(CLASS_COLUMNS)}")
    table = read_table(path, label_column=found[0])
    features = tuple(n for n in table.feature_names or () if n not in found)
    if features != table.feature_names:
        table = read_table(path, columns=features, label_column=found[0])
    assert table.labels is not None
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(table.X, dtype=np.float32)
    return Dataset(name, X, table.labels, None, table.feature_names)


def _read_csv(path: Path, nrows: int | None = None) -> "pd.DataFrame":
    import pandas as pd

    try:
        return pd.read_csv(path, nrows=nrows)
    except ValueError as error:
        raise FileFormatError(f"{path.name} cannot be read: {error}") from error


def _class_columns(frame: "pd.DataFrame") -> list[str]:
    return [column for column in CLASS_COLUMNS if column in frame.columns]


def _check_rows(found: Dataset) -> None:
    if not found.X.size:
        raise FileFormatError(f"{found.name} has no numbers: X has shape {found.X.shape}")
    if not np.isfinite(found.X).all():
        raise FileFormatError(
            f"{found.name} has cells that are missing, infinite or beyond float32; fill or "
            "drop them first"
        )


def _with_truth(found: Dataset, folder: Path, stem: str) -> Dataset:
    for suffix in TREE_SUFFIXES:
        path = folder / f"{stem}{suffix}"
        if path.exists():
            truth = ClassTree.read(path)
            try:
                truth.leaves_of(np.unique(found.y).tolist())
            except ValueError as error:
                raise FileFormatError(f"{path.name}: {error}") from error
            return replace(found, truth=truth)
    return found


def _animals(depth: int = 2) -> Dataset:
    """Return the bundled animals; their classes are the groups at some depth of their tree."""
    animals = load_animals()
    group_of: dict[str, str] = {}
    tree = _cut(animals.tree, depth, group_of)
    X = (animals.X / animals.X.max(axis=0)).astype(np.float32)
    y = np.array([group_of[name] for name in animals.names])
    return Dataset(BUNDLED, X, y, ClassTree.read(tree), animals.feature_names)


def _cut(node: Mapping[str, Any], depth: int, group_of: dict[str, str]) -> dict[str, Any]:
    """Return the first levels of a tree, and note in which of its leaves each name ends up."""
    children = node.get("children") or []
    if depth > 0 and children:
        return {
            "name": node["name"],
            "children": [_cut(child, depth - 1, group_of) for child in children],
        }
    waiting = [node]
    while waiting:
        below = waiting.pop()
        waiting += below.get("children") or []
        group_of[below["name"]] = node["name"]
    return {"name": node["name"]}
