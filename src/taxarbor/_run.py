"""What a fit is told beside its data: a seed, where to run, and whom to tell of its progress.

The library never prints. Whoever wants to show progress passes an observer.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol, TypeVar, final

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


@final
@dataclass(frozen=True, slots=True)
class GrowthEvent:
    """The state of the tree after a leaf was tried or split.

    Attributes
    ----------
    n_leaves, max_leaves : int
        Leaves there are, and how many there may be (0 when no number was asked for).
    n_tried : int
        Leaves for which a split was sought so far.
    """

    n_leaves: int
    max_leaves: int
    n_tried: int


class Observer(Protocol):
    """Receives an event after each step; returning True stops the growth there."""

    def __call__(self, event: GrowthEvent, /) -> bool:
        """Take note of the event."""
        ...


def ignore(event: GrowthEvent, /) -> bool:
    """Observe nothing, stop nothing."""
    return False


class Watcher(Protocol):
    """Is told of sweeps over all rows: how many have begun, and the share that is done."""

    def __call__(self, n_sweeps: int, share: float, /) -> None:
        """Take note."""
        ...


def look_away(n_sweeps: int, share: float, /) -> None:
    """Watch nothing."""


@final
@dataclass(frozen=True, slots=True)
class Run:
    """What all steps of one fit share.

    Attributes
    ----------
    seed : int
        Each node draws its random numbers from this seed and its path from the root.
    observer : callable
        Receives a :class:`GrowthEvent` after each step of the growth.
    pool : concurrent.futures.Executor or None
        Runs independent tasks side by side; None runs them one after the other. The tree is
        the same.
    watcher : callable
        Is told how far sweeps over the rows are.

    Examples
    --------
    >>> from taxarbor.grow import Run
    >>> list(Run(seed=0).each(abs, [-1, 2]))
    [1, 2]
    """

    seed: int = 0
    observer: Observer = ignore
    pool: Executor | None = None
    watcher: Watcher = look_away

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterable[Result]:
        """Return the results for all items, in their order.

        An item on its own, as the root is, stays in this thread, where Ctrl-C is heard.
        """
        if self.pool is None or len(items) < 2:
            return map(work, items)
        return self.pool.map(work, items)


def node_seed(seed: int, path: tuple[int, ...]) -> int:
    """Return 64 bits of a node's own, for generators that mix them well themselves."""
    bits = seed
    for step in path:
        bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9 + step + 1 & 0xFFFFFFFFFFFFFFFF
    return bits


def node_rng(seed: int, path: tuple[int, ...], stream: int = 0) -> np.random.Generator:
    """Return a node's own random numbers, whatever happens elsewhere in the tree."""
    entropy = (seed, stream) if stream else seed
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=path))
