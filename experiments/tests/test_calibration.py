"""Calibration: the parts by hand, and the page."""

import numpy as np
import pytest

from experiments import __main__ as command
from experiments.calibration import expected_calibration_error, measure
from taxarbor import Taxarbor, make_planted_tree


def test_errors_of_known_probabilities():
    sure, half = np.full(1000, 0.9), np.full(1000, 0.5)
    hits = np.arange(1000) % 10 > 0
    assert expected_calibration_error(sure, hits) == pytest.approx(0.0)
    assert expected_calibration_error(half, hits) == pytest.approx(0.4)
    both = expected_calibration_error(np.r_[sure, half], np.r_[hits, hits])
    assert both == pytest.approx(0.2)
    assert expected_calibration_error(np.ones(3), np.ones(3, dtype=bool)) == 0.0


def test_clear_clusters_are_certain():
    X = make_planted_tree(400, random_state=0).X
    found = measure(Taxarbor(8), X, seed=0)
    assert found.hits >= 0.99
    assert found.measured > 0.99
    assert found.measured_error < 0.01


@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")  # of halves of few rows
def test_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("experiments.calibration.N_REFITS", 1)
    assert command.main(["calibration", "--quick", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'calibration.md'}\n"
    text = (tmp_path / "calibration.md").read_text("utf-8")
    for part in ("at most 1,000 rows", "## Taxarbor", "| noise | 8 |", "| mean of the real"):
        assert part in text
    assert [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| H")] == [
        "| HMMC",
        "| HKM-D",
    ]
