"""A short run of the mutated models; ``make attack`` runs more."""

from tests.attack.models import attack


def test_mutated_models_are_trees_or_refused():
    counts = attack(seed=16, seconds=3)
    kinds = {outcome.partition(":")[0] for outcome in counts}
    assert kinds >= {"bytes", "member", "header", "array", "document", "classes"}
    assert any(outcome.endswith("used") for outcome in counts)
    assert sum(counts.values()) > 15
