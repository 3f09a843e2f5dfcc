"""Short runs of the attack; ``make attack`` runs longer ones."""

import pytest

from tests.attack.__main__ import PARTS
from tests.attack.damage import FORBIDDEN


@pytest.mark.parametrize("part", PARTS)
def test_nothing_forbidden_happens(part, monkeypatch):
    for name in ("TERM", "FORCE_COLOR", "COLUMNS"):  # which a part may set
        monkeypatch.setenv(name, "")
    monkeypatch.setattr("sys.argv", [])
    outcomes = PARTS[part].attack(seed=16, seconds=2)
    assert not [outcome for outcome in outcomes if outcome.startswith(FORBIDDEN)]
    assert outcomes.total() > 5
