"""Short runs of the attack; ``make attack`` runs longer ones."""

import pytest

from tests.attack import data, files, models, names, signals
from tests.attack.mutations import FORBIDDEN


def test_bad_data_and_parameters():
    outcomes = data.attack(seed=0, seconds=0)
    assert outcomes.forbidden == []
    assert min(outcomes["fits"], outcomes["refused"]) > 40


@pytest.mark.parametrize("part", [files, models, names], ids=lambda part: part.__name__)
def test_damage_and_hostile_names(part, monkeypatch):
    for name in ("TERM", "FORCE_COLOR", "COLUMNS"):  # which a part may set
        monkeypatch.setenv(name, "")
    monkeypatch.setattr("sys.argv", [])
    outcomes = part.attack(seed=16, seconds=2)
    assert outcomes.forbidden == []
    assert outcomes.total() > 5


@pytest.mark.long
def test_ctrl_c():
    outcomes = signals.attack(seed=16, seconds=20)
    assert outcomes[FORBIDDEN] == 0, outcomes.forbidden
    assert outcomes["ended"] > 0
