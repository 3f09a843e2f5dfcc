"""What an observer of a growing tree receives.

The library never prints. Whoever wants to show progress passes an observer to
:func:`taxarbor.grow.grow`.
"""

from dataclasses import dataclass
from typing import Protocol


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
