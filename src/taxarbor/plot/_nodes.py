"""What plots show of a node: lines of text, and the share of each class."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError, InputTypeError
from taxarbor._types import IndexArray
from taxarbor.metrics._classes import NO_LABEL, encode_labels, name_of
from taxarbor.plot._axes import (
    CLASSES,
    GRID,
    MAX_LETTERS,
    OTHER,
    Entries,
    Style,
    StyledLine,
    shorten,
)
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._text import count_rows, describe_rule
from taxarbor.tree import Tree

Describe: TypeAlias = Callable[[int], Sequence[str | StyledLine]]

STYLES: tuple[Style, ...] = get_args(Style)
N_TOP_FEATURES = 3
MAX_CLASSES_NAMED, MIN_CLASS_SHARE = 2, 0.1  # of a node
MAX_CLASS_LETTERS = 20  # of a class with a share behind it


# Text


def describe_reasons(
    taxonomy: Taxonomy, node: int, n_top: int = N_TOP_FEATURES
) -> list[StyledLine]:
    """Return the features that lead to a node, in words."""
    return [
        (phrase(reason, MAX_LETTERS), "plus" if reason.sign > 0 else "minus")
        for reason in taxonomy.reasons(node, n_top)
    ]


def describe_node(taxonomy: Taxonomy, counts: "ClassCounts", node: int) -> list[StyledLine]:
    """Return the number of rows, what leads here, what the rule does, the largest classes."""
    size: StyledLine = (count_rows(taxonomy, node), "title")
    rule = describe_rule(taxonomy, node).removeprefix("its rule ").partition(" by ")[0]
    rules: list[StyledLine] = [(rule, "plain")] if rule else []
    return [size, *describe_reasons(taxonomy, node), *rules, *counts.describe(node)]


def check_lines(lines: Sequence[str | StyledLine], node: int) -> list[StyledLine]:
    """Return lines that can be drawn: printable, not too long, each with a style.

    Without a style, the first line is the title and the others are plain. Raises TypeError if
    these are not lines, ValueError if a style is unknown.
    """
    if isinstance(lines, str):
        raise InputTypeError(
            f"describe must return a list of lines, got the text {lines!r} for node {node}: "
            "put it in a list, or split it into lines"
        )
    checked: list[StyledLine] = []
    for n, line in enumerate(lines):
        text, style = (line, STYLES[min(n, 1)]) if isinstance(line, str) else line
        if style not in STYLES:
            raise InputError(
                f"the style of a line must be one of {', '.join(STYLES)}, got {style!r} for "
                f"node {node}"
            )
        checked.append((shorten(text), style))
    return checked


# Classes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassCounts:
    """The number of rows of each class in each node; without classes, all is empty."""

    tree: Tree
    names: tuple[str, ...]  # all classes, the largest first; of the first eight, numbers ascend
    codes: IndexArray  # position in names of each row's class, or -1; as in tree.order
    entries: Entries  # the eight largest classes, all others together, rows without a label
    counts: IndexArray  # (n_nodes, n_entries), number of rows

    @classmethod
    def of(cls, tree: Tree, classes: ArrayLike | None) -> "ClassCounts":
        """Count the classes of each node; ValueError if classes and rows do not match."""
        if classes is None:
            empty = np.empty((tree.n_nodes, 0), dtype=np.intp)
            return cls(tree, (), np.empty(0, dtype=np.intp), (), empty)
        rows = tree.rows(tree.root)
        codes, labels = encode_labels(classes, tree.n_rows)
        names, codes = [name_of(label) for label in labels], codes[rows]
        sizes = np.bincount(codes + 1, minlength=len(names) + 1)[1:]
        order = np.lexsort((np.array(names), -sizes))
        with contextlib.suppress(ValueError):  # numbers ascend, other names stay
            values = [float(name) for name in names]
            order[: len(CLASSES)] = sorted(order[: len(CLASSES)], key=values.__getitem__)
        rank = np.full(len(order) + 1, -1)
        rank[order] = np.arange(len(order))
        codes = rank[codes]
        shown = tuple(shorten(names[n]) or "(empty)" for n in order.tolist())
        entries = tuple(zip(shown, CLASSES, strict=False))
        entries += (("other", OTHER),) * (len(shown) > len(CLASSES))
        entries += ((NO_LABEL, GRID),) * bool((codes < 0).any())
        # Sums up to each row: the difference of two is a node's, whose rows are consecutive.
        sums = np.zeros((len(rows) + 1, len(entries)), dtype=np.intp)
        sums[np.arange(1, len(rows) + 1), np.minimum(codes, len(CLASSES))] = 1  # -1 is the last
        np.cumsum(sums, axis=0, out=sums)
        return cls(tree, shown, codes, entries, sums[tree.stop] - sums[tree.start])

    def describe(self, node: int) -> list[StyledLine]:
        """Return lines such as ``mammals · 92%`` for the largest classes of a node.

        Shares are of the rows with a label.
        """
        if not self.entries:
            return []
        codes = self.codes[self.tree.start[node] : self.tree.stop[node]]
        classes, counts = np.unique(codes[codes >= 0], return_counts=True)
        shares = counts / max(counts.sum(), 1)
        order = np.argsort(-counts, kind="stable")[:MAX_CLASSES_NAMED]
        return [
            (f"{shorten(self.names[classes[n]], MAX_CLASS_LETTERS)} · {shares[n]:.0%}", "plain")
            for n in order
            if shares[n] >= MIN_CLASS_SHARE
        ]
