"""The page on missing values and outliers."""

import numpy as np

from experiments import __main__ as command
from experiments import robustness


def test_blanked_and_planted():
    X = robustness.blank(np.ones((200, 30), dtype=np.float32), 0.5, seed=0)
    assert X.dtype == np.float32
    assert 0.45 < np.isnan(X).mean() < 0.55
    assert not np.isnan(robustness.blank(np.ones((1, 9)), 0.99, seed=0)).any()
    X = np.random.default_rng(0).standard_normal((100, 4))
    cells, far_from = (4, 1, 4, 1), (99, 99, 3, 5)
    for kind, n_cells, least in zip(robustness.KINDS.values(), cells, far_from, strict=True):
        far = np.abs(kind(X, 20, np.random.default_rng(1))) > least
        assert far.sum(axis=1).max() == n_cells
        assert far.any(axis=1).mean() > 0.8


def test_the_page_tells_each_set(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.standard_normal((60, 3)) + 9.0 * y[:, None]
    one = robustness.Known("two clouds", X, y, 2)
    monkeypatch.setattr(robustness, "all_sets", lambda folder, max_rows: [one])
    page = tmp_path / "robustness.md"
    assert command.main(["robustness", "--quick", "--report", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "| 5 % | 100.0 | 100.0 | 100.0 | 100.0 | 1 of 1 sets | " in text
    assert text.count("| two clouds ") == 1
    assert "| two clouds | 0.0 | 0.0 | 0.0 | " in text
    assert "wrote " in capsys.readouterr().out
