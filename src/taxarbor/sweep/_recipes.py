"""How the parts of a Dask collection are made, for a task to follow by itself.

Dask would make a part by one task and sweep over it by another, perhaps elsewhere, so that the
part travels to what is kept of it, or the other way round. A task that makes the part itself
goes to where the rest is.
"""

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from taxarbor._errors import InputError
from taxarbor.sweep._dask import SMALL, futures_in


@final
@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """The steps that make a part, of Dask's own."""

    steps: dict[Any, Any]
    key: Any
    title: str

    def load(self) -> Any:
        """Make the part, in this thread."""
        from dask import get

        try:
            return get(self.steps, self.key)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"{self.title} cannot be made: {error}") from error
        except Exception as error:
            error.add_note(f"{self.title} cannot be made.")
            raise


def tasks_of(X: Any) -> list[Any]:
    """Return the tasks that make the parts of a collection, which hold what is on workers."""
    # Dask forgets futures when it rewrites a graph, and relies on the collection to hold them.
    found = X.to_delayed(optimize_graph=not futures_in([X]))
    return list(np.ravel(np.array(found, dtype=object)))


def parts_of(X: Any, titles: Sequence[str]) -> list[Any]:
    """Return the parts of a collection, as recipes where they share no work.

    Parts that are on workers, or are made of such parts, stay tasks.
    """
    parts = tasks_of(X)
    if not parts or futures_in([X]) or any(part.dask is not parts[0].dask for part in parts):
        return parts
    graph = parts[0].dask
    steps = {key: graph[key] for key in graph}
    needs = _needs(steps)
    mine = [_reached(part.key, needs) for part in parts]
    n_users = Counter(key for keys in mine for key in keys)
    shared = [key for key, n in n_users.items() if n > 1]
    if any(needs[key] or not _is_small(steps[key]) for key in shared):
        return parts
    return [
        Recipe({key: steps[key] for key in keys}, part.key, title)
        for part, keys, title in zip(parts, mine, titles, strict=True)
    ]


def _needs(steps: dict[Any, Any]) -> dict[Any, set[Any]]:
    from dask.core import get_dependencies

    return {key: set(get_dependencies(steps, key)) for key in steps}


def _reached(key: Any, needs: dict[Any, set[Any]]) -> set[Any]:
    """Return all steps that a step needs, and itself."""
    found, waiting = {key}, [key]
    while waiting:
        new = needs[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return found


def _is_small(step: Any) -> bool:
    try:
        return len(pickle.dumps(step, protocol=5)) <= SMALL
    except Exception:  # an open file, say, which Dask has its own ways to send
        return False
