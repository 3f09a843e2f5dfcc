"""The page on numbers of clusters, and the methods that it compares with."""

import numpy as np
from sklearn.cluster import KMeans

from experiments import __main__ as command
from experiments import stability


def test_rivals_find_what_is_there():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 2)) + np.array([[0, 0], [40, 0], [0, 40]])[np.arange(150) % 3]
    fits = [KMeans(k, n_init=3, random_state=0).fit(X) for k in (1, 2, 3, 4, 6)]
    assert stability.by_silhouette(X, fits) == 3
    assert stability.by_gap(X, fits, seed=0) == 3
    X = rng.random((150, 2))
    fits = [KMeans(k, n_init=3, random_state=0).fit(X) for k in (1, 2, 3, 4, 6)]
    assert stability.by_gap(X, fits, seed=0) == 1


def test_planted_leaves():
    X = stability.plant(5, 0, n_rows=100)
    assert X.shape == (100, 20)
    assert KMeans(5, n_init=5, random_state=0).fit(X).inertia_ < 1.5 * X.size


def test_the_page_keeps_what_is_around_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stability, "_known", lambda kind, n_seeds: [str(kind), *"111"])
    monkeypatch.setattr(stability, "_suggested", lambda X, seed: 7)
    page = tmp_path / "stability.md"
    for _ in range(2):
        assert command.main(["stability", "--quick", "--report", str(page)]) == 0
        assert "| animals | 206 | 85 | " in page.read_text(encoding="utf-8")
    page.write_text(
        f"before\n{stability.BEGIN}\nold\n{stability.END}\nafter\n", encoding="utf-8"
    )
    command.main(["stability", "--report", str(page)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert capsys.readouterr().out.count("wrote ") == 3
