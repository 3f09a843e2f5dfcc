import math
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

from taxarbor.bench import Dataset, Setup
from taxarbor.bench._figures import (
    STYLES,
    draw_heights,
    draw_sparsity,
    draw_sweep,
    draw_tree,
)
from taxarbor.bench._methods import METHODS
from taxarbor.bench._plan import SPARSE, SWEPT, plan_table
from taxarbor.bench._select import Mean, of_table, spread_out
from taxarbor.bench._sweep import Panel
from taxarbor.bench._tree import ChosenTree

HOSTILE = "a$\\frac$ <b> & |"


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    assert not plt.get_fignums()


def check(stem):
    """Assert that there is a picture of both kinds, and return the second."""
    png, svg = stem.with_suffix(".png").read_bytes(), stem.with_suffix(".svg").read_text()
    assert png.startswith(b"\x89PNG")
    assert len(png) > 2000
    assert svg.rstrip().endswith("</svg>")
    assert "<script" not in svg
    assert not re.search(r"\d{4}-\d\d-\d\dT", svg)  # no date
    assert str(Path.home()) not in svg
    return svg


def panels(names=("one", HOSTILE)):
    by_clusters = [
        Panel(name, "F", ("1 x", "2 x"), {m: [Mean(0.5, 0.1, 2)] * 2 for m in SWEPT})
        for name in names
    ]
    by_children = [
        Panel(name, "K", ("2", "3"), {"HMMC": [Mean(0.5, 0.1, 2), Mean()]}) for name in names
    ]
    return by_clusters + by_children


def shares(value=0.5):
    return {name: {m: Mean(value, 0.0, 2) for m in SPARSE} for name in ("one", HOSTILE)}


def chosen(made, names=(HOSTILE, "two\nlines", "c", "d")):
    X, y = made.blobs()
    data = Dataset(HOSTILE, X, np.array(names)[y], None, None)
    return ChosenTree(METHODS["HMMC"].fit(X, 4, 2, 0, {}), data, f"HMMC on {HOSTILE}", "RI")


def test_every_method_that_is_drawn_has_a_style():
    assert {*SWEPT, *SPARSE} <= set(STYLES)
    assert len(set(STYLES.values())) == len(STYLES)


def test_sweep(tmp_path):
    draw_sweep(panels(), "SP", tmp_path / "new" / "sweep")
    check(tmp_path / "new" / "sweep")


@pytest.mark.parametrize("value", [0.5, math.nan])
def test_sparsity(tmp_path, value):
    draw_sparsity(shares(value), tmp_path / "sparsity")
    check(tmp_path / "sparsity")


def test_heights(tmp_path, made):
    for name in ("one", HOSTILE, "empty"):
        made.data(tmp_path, name)
    setup = Setup(tmp_path, n_seeds=1, strengths=(1.0,))
    rng = np.random.default_rng(0)
    store = made.fill(
        tmp_path,
        [job for job in plan_table(setup) if job.dataset != "empty"],
        lambda _: made.outcome(shortest_path=rng.random(), chance_shortest_path=rng.random()),
    )
    jobs = spread_out(store.read(), setup)
    tables = {name: of_table(jobs, setup, name) for name in setup.datasets()}
    draw_heights(tables, tmp_path / "heights")
    check(tmp_path / "heights")


def test_tree(tmp_path, made):
    draw_tree(chosen(made), tmp_path / "tree")
    check(tmp_path / "tree")


def test_equal_results_make_equal_files(tmp_path, made):
    tree = chosen(made)
    for name in ("first", "second"):
        folder = tmp_path / name
        draw_sweep(panels(["one"]), "SP", folder / "sweep")
        draw_sparsity(shares(), folder / "sparsity")
        draw_tree(tree, folder / "tree")
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert len(files) == 6
    for name in files:
        first, second = (tmp_path / which / name for which in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()


def test_a_figure_that_fails_is_closed(tmp_path):
    with pytest.raises(KeyError):
        draw_sparsity({"one": {"nobody": Mean(0.5, 0.0, 1)}}, tmp_path / "sparsity")
    assert not list(tmp_path.iterdir())
