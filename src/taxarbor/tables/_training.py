"""Stopgap for estimators/_base, _sweeping and _taxarbor: features as rows and as blocks."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse, vstack

from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._cells import is_frame
from taxarbor.hierarchy._encoding import Encoding
from taxarbor.hierarchy._repeats import repeats_of
from taxarbor.rows import Rows, as_rows
from taxarbor.sweep import Blocks, Column, Engine, LocalEngine, blocks_of
from taxarbor.tables._checks import SeenFeatures, check_weights
from taxarbor.tables._features import Features, make_features


@dataclass(frozen=True)
class Training:
    """Features, and the same as rows."""

    rows: Rows
    features: Features

    @classmethod
    def of(cls, estimator: Any, X: Any, n_threads: int, weights: Any = None) -> Self:
        """Return the features that an estimator is fitted to."""
        features = make_features(estimator, X, weights)
        return cls(as_rows(features.data, n_threads=n_threads), features)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.features, name)


@dataclass(frozen=True)
class Source:
    """Features in blocks."""

    blocks: Blocks
    features: Features
    weights: Column | None
    counts: Column | None
    empty: Column | None
    owner: IndexArray | None = None
    has_rows: bool = True

    @classmethod
    def in_memory(cls, training: Training, engine: Engine, weights: Array | None) -> Self:
        """Return the source of data in memory, with their weights."""
        blocks = blocks_of(training.data, engine)
        edges, empty = np.cumsum(blocks.sizes)[:-1], training.empty
        if empty is not None:
            weights = np.where(empty, 0.0, 1.0 if weights is None else weights)
        counts = None if weights is None else repeats_of(weights).astype(np.int32)
        cut: Any = [
            None if one is None else np.split(one, edges) for one in (weights, counts, empty)
        ]
        return cls(blocks, training.features, cut[0], cut[1], cut[2], training.owner)

    @property
    def encoding(self) -> Encoding | None:
        """What became of the columns."""
        return self.features.encoding

    @property
    def seen(self) -> SeenFeatures:
        """What the estimator remembers."""
        return self.features.seen

    def decode(self, tree: Hierarchy, labels: Column, counts: Column) -> Hierarchy:
        """Return a tree in the user's units."""
        encoding = self.features.encoding
        return tree if encoding is None else encoding.decode(tree, self.features.gaps)

    def missing(self, *_: Any) -> None:
        """Return nothing: gaps are known."""


def train_on_stream(
    estimator: Any, stream: Any, run: Any, room: int | None, weights: Any = None
) -> Source:
    """Read all parts into memory."""
    engine = stream.make_engine(run, room)
    parts = engine.gather(stream.parts)
    if issparse(parts[0]):
        X: Any = vstack(parts)
    elif is_frame(parts[0]):
        X = import_module("pandas").concat(parts, ignore_index=True)
    else:
        X = np.concatenate(parts)
    training = Training.of(estimator, X, run.width, weights)
    given = check_weights(weights, training.rows.n_rows)
    return Source.in_memory(training, LocalEngine(run, room), given)
