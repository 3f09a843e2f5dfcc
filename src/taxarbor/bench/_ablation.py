"""What the page on the defaults compares: rivals, ours, and one choice otherwise at a time."""

from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import Any, NamedTuple

from taxarbor.bench._datasets import list_datasets
from taxarbor.bench._jobs import Job
from taxarbor.bench._methods import Settings, find_method
from taxarbor.bench._plan import Setup, seeded, tree_dataset
from taxarbor.bench._published import STAND_INS
from taxarbor.estimators import HMMC
from taxarbor.refine import Coordinates, fit_leaves
from taxarbor.split import LiftedSplitter


class Row(NamedTuple):
    """A line of a table: what it is called, and how it is made."""

    told: str
    method: str
    settings: Settings


class Group(NamedTuple):
    """A choice: the default first, then the others, and for which numbers of clusters.

    These are multiples of the number of classes.
    """

    title: str
    rows: tuple[Row, ...]
    multiples: tuple[float, ...] = (1.0,)


DEFAULT = Row("HMMC", "HMMC", {})

RIVALS = (
    Row("Ward", "Ward", {}),
    Row("AL", "AL", {}),
    Row("HKM", "HKM", {}),
    Row("HKM-D", "HKM-D", {}),
    Row("HKM-D, 10 starts", "HKM-D", {"n_init": 10}),
    Row("BKM", "BKM", {}),
    Row("KM+Ward", "KM+Ward", {}),
)

GREEDY = {"refine": False, "n_init": 1, "balance": 0.3, "alpha": 0.003, "beta": 0.003}
OURS = (
    DEFAULT,
    Row("HMMC, 1 start", "HMMC", {"n_init": 1}),
    Row("HMMC before: greedy, sparse inside", "HMMC", GREEDY),
)


def _usual(owner: Callable[..., Any], name: str) -> Any:
    return signature(owner).parameters[name].default


def _default(owner: Callable[..., Any], name: str, told: str = "{}") -> Row:
    """Return HMMC, called by what one of its choices is by default."""
    return DEFAULT._replace(told=f"{told.format(_usual(owner, name))} (default)")


def _variant(told: str, **settings: object) -> Row:
    return Row(told, "variant", settings)


def _others(
    owner: Callable[..., Any],
    name: str,
    values: Sequence[object],
    told: str = "{}",
    setting: str = "",
) -> list[Row]:
    """Return a variant for each value of a choice that is not the default."""
    return [
        _variant(told.format(value), **{setting or name: value})
        for value in values
        if value != _usual(owner, name)
    ]


def _sparse_inside(alpha: float) -> Row:
    settings = {"refine": False, "alpha": alpha, "beta": alpha}
    return Row(f"inside, alpha = beta = {alpha:g}", "HMMC", settings)


WORTHS = ("gap", "scatter", "objective", "variance", "size")
"""What a leaf may be ranked by; the first three rank starts, too."""

GROUPS = (
    Group(
        "Moving rows when the tree is whole",
        (
            _default(fit_leaves, "n_steps", "rounds: {}"),
            _variant("no moves", n_steps=0),
            *_others(fit_leaves, "n_steps", (1, 2, 3), "rounds: {}"),
            _variant("plain distance", shrinkage=1e6),
            _variant("shrinkage 0.1", shrinkage=0.1),
        ),
    ),
    Group(
        "Starts per split",
        (
            _default(HMMC, "n_init"),
            *_others(HMMC, "n_init", (1, 2, 4, 6, 12)),
            _variant("no more near the root", top=0),
            _variant("as many, principal and far rows", starts=["principal", "far_rows"]),
            _variant("as many, Ward", starts=["ward"]),
        ),
    ),
    Group(
        "Choosing among starts",
        (
            _default(LiftedSplitter, "choose_by", "by {}"),
            *_others(LiftedSplitter, "choose_by", WORTHS[:3], "by {}"),
        ),
    ),
    Group(
        "Which leaf is split next",
        (
            _default(LiftedSplitter, "grow_by", "by {}"),
            *_others(LiftedSplitter, "grow_by", WORTHS, "by {}"),
        ),
        (0.5, 1.0, 2.0),
    ),
    Group(
        "Balance, and the intercept",
        (
            _default(HMMC, "balance", "balance {}"),
            *_others(HMMC, "balance", (0.9, 0.6, 0.5, 0.4, 0.3), "balance {}"),
            _variant("no balance", balance=None),
            _variant("no intercept", has_intercept=False),
        ),
    ),
    Group(
        "Ridge",
        (
            _default(LiftedSplitter, "ridge"),
            *_others(LiftedSplitter, "ridge", (0.03, 0.003, 0.0003)),
        ),
    ),
    Group(
        "Coordinates",
        (
            _default(Coordinates.of, "size"),
            *_others(Coordinates.of, "size", (16, 32, 128), setting="n_coordinates"),
        ),
    ),
    Group(
        "Sparsity, after the tree is whole or inside the alternation",
        (
            DEFAULT._replace(told="after (default)"),
            *(_sparse_inside(alpha) for alpha in (0.003, 0.01, 0.03)),
        ),
    ),
)

READABLE = (
    Row("default", "HMMC", {}),
    Row("beta = 0", "HMMC", {"beta": 0.0}),
    *(Row(f"max_features = {most}", "HMMC", {"max_features": most}) for most in (3, 5, 10)),
)
"""What the rules of one data set are read with."""


def all_datasets(setup: Setup) -> list[str]:
    """Return all data with its own rows, and other rows where these are of the experiment."""
    found = list_datasets(setup.folder)
    return [name for name in found if "/" not in name or name in STAND_INS]


def n_clusters_of(setup: Setup, dataset: str, multiple: float) -> int:
    """Return a multiple of the number of classes, but two at least."""
    return max(int(multiple * setup.n_classes(dataset)), 2)


def plan_defaults(setup: Setup) -> Iterator[Job]:
    """Yield what the page on the defaults needs; no setting is chosen by labels."""
    wanted = [
        (dataset, row, multiple)
        for dataset in all_datasets(setup)
        for row, multiple in _all_rows()
    ]
    wanted += [(tree_dataset(setup), row, 1.0) for row in READABLE]
    jobs = (job for one in wanted for job in _of_row(setup, *one))
    yield from dict.fromkeys(jobs)


def _all_rows() -> Iterator[tuple[Row, float]]:
    for row in (*RIVALS, *OURS):
        yield row, 1.0
    for group in GROUPS:
        for multiple in group.multiples:
            for row in group.rows:
                yield row, multiple


def _of_row(setup: Setup, dataset: str, row: Row, multiple: float) -> Iterator[Job]:
    return seeded(
        setup,
        dataset,
        find_method(row.method),
        row.settings,
        n_clusters=n_clusters_of(setup, dataset, multiple),
        n_seeds=setup.n_seeds,
    )
