"""Steps, margins and examples where rules choose among nodes further down."""

import dataclasses

import numpy as np
import pytest

from taxarbor import Taxarbor, load_animals
from taxarbor.explain import explain
from taxarbor.tree import LinearRule


def choose_among(taxonomy, ruled):
    """Return the tree with nearest-mean rules at some nodes, and at no others."""

    def frontier(node):
        below = []
        for child in taxonomy.tree.children(node):
            is_end = child in ruled or taxonomy.tree.is_leaf(child)
            below += [child] if is_end else frontier(child)
        return below

    nodes = range(taxonomy.tree.n_nodes)
    rules = [
        LinearRule.nearest(taxonomy.means[frontier(n)]) if n in ruled else None for n in nodes
    ]
    return dataclasses.replace(taxonomy, rules=tuple(rules))


@pytest.fixture(scope="module", name="cases")
def trees_with_frontiers(four_clusters, three_nodes):
    """Explanations: of small trees, of a large one, and of pruned ones, with their rows."""
    animals = load_animals()
    X = animals.X / animals.X.max(axis=0)
    taxonomy = Taxarbor(12, random_state=0).fit(X).taxonomy_
    flat = choose_among(taxonomy, {0})
    inner = [
        node for node in range(1, taxonomy.tree.n_nodes) if not taxonomy.tree.is_leaf(node)
    ]
    mixed = choose_among(taxonomy, {0, *inner[::3]})
    cases = [four_clusters, three_nodes, (flat, X), (mixed, X), (flat.prune(5), X)]
    return [(explain(taxonomy, X), X) for taxonomy, X in cases]


def scores_of(taxonomy, node, x):
    """Return the best score of each node of a frontier."""
    rule, best = taxonomy.tree.rules[node], {}
    scores = rule.weights @ (x - rule.center) + rule.offsets
    for target, score in zip(rule.targets.tolist(), scores.tolist(), strict=True):
        one = taxonomy.tree.frontier(node)[target]
        best[one] = max(score, best.get(one, -np.inf))
    return best


def steps_of(taxonomy, x, leaf):
    """Return the node, the node of its frontier and the margin of each rule on a path."""
    steps, path = [], taxonomy.tree.path(leaf)
    for node in path:
        if taxonomy.tree.rules[node] is not None:
            best = scores_of(taxonomy, node, x)
            (child,) = set(best) & set(path)
            steps.append((node, child, best.pop(child) - max(best.values())))
    return steps


def test_margins_are_between_the_nodes_of_a_frontier(cases):
    for why, X in cases:
        taxonomy = why.taxonomy
        least = np.full(len(X), np.inf)
        for node in range(taxonomy.tree.n_nodes):
            if taxonomy.tree.rules[node] is None:
                assert why.margins[node] is None
                continue
            expected = []
            for row in taxonomy.tree.rows(node).tolist():
                leaf = taxonomy.tree.leaves[taxonomy.tree.labels[row]]
                expected += [m for at, _, m in steps_of(taxonomy, X[row], leaf) if at == node]
            found = why.margins[node] * why.units[node]
            np.testing.assert_allclose(found, expected, atol=1e-9)
            least[taxonomy.tree.rows(node)] = np.minimum(
                least[taxonomy.tree.rows(node)], why.margins[node]
            )
        np.testing.assert_allclose(why.least_margins, least[taxonomy.tree.rows(0)])
        is_own = taxonomy.predict(X) == taxonomy.tree.labels
        assert (least[is_own] >= -1e-9).all()
        assert (least[~is_own] <= 1e-9).all()


def test_the_steps_of_rows_are_the_rules_on_their_paths(cases):
    for why, X in cases:
        taxonomy, frame = why.taxonomy, why.rows()
        for row in range(0, len(X), 5):
            leaf = taxonomy.tree.leaves[taxonomy.tree.labels[row]]
            expected = steps_of(taxonomy, X[row], leaf)
            found = why.row(row)["steps"]
            assert [(one["node"], one["child"]) for one in found] == [s[:2] for s in expected]
            assert found[-1]["child"] == leaf
            lines = frame[frame["row"] == row]
            assert lines["step"].tolist() == [*range(1, len(expected) + 1)]
            assert lines["child"].tolist() == [one["child"] for one in found]
            for one, (node, child, margin) in zip(found, expected, strict=True):
                assert one["margin"] * why.units[node] == pytest.approx(margin, abs=1e-9)
                beside = why.margins_within(node, child)
                share = (beside < one["margin"] - 1e-6).mean()
                assert one["surer_than"] == pytest.approx(share)


def test_features_pull_between_the_two_best_scores(cases):
    for why, X in cases:
        taxonomy = why.taxonomy
        for row in range(0, len(X), 9):
            for one in why.row(row)["steps"]:
                rule, frontier = (
                    taxonomy.tree.rules[one["node"]],
                    taxonomy.tree.frontier(one["node"]),
                )
                own = rule.targets == frontier.index(one["child"])
                scores = rule.weights @ (X[row] - rule.center) + rule.offsets
                here = np.where(own, scores, -np.inf).argmax()
                there = np.where(own, -np.inf, scores).argmax()
                weights = rule.weights[here] - rule.weights[there]
                rival = frontier[rule.targets[there]]
                middle = (taxonomy.means[one["child"]] + taxonomy.means[rival]) / 2
                parts = weights * (X[row] - middle)
                for pull in one["pulls"]:
                    at = pull["feature"]
                    expected = parts[at] / np.abs(parts).sum()
                    assert pull["strength"] == pytest.approx(expected, abs=1e-9)
                    assert pull["other_mean"] == pytest.approx(taxonomy.means[rival][at])


def test_new_rows_are_placed(cases):
    for why, X in cases:
        taxonomy = why.taxonomy
        new = X[::7] + 0.1
        frame = why.place(new)
        last = frame.groupby("row")["child"].last()
        assert (last.to_numpy() == taxonomy.tree.leaves[taxonomy.predict(new)]).all()
        for row, lines in frame.groupby("row"):
            expected = steps_of(taxonomy, new[row], last[row])
            margins = lines["margin"] * why.units[lines["node"]]
            np.testing.assert_allclose(margins, [step[2] for step in expected], atol=1e-9)


def test_nodes_say_who_decides(cases):
    for why, _ in cases:
        taxonomy = why.taxonomy
        for node in range(taxonomy.tree.n_nodes):
            values = why.node(node)
            assert values["decided_by"] == taxonomy.tree.decided_by(node)
            assert (values["n_features"] == 0) == (taxonomy.tree.rules[node] is None)
            if values["decided_by"] is not None and node:
                margins = why.margins_within(taxonomy.tree.parent(node), node)
                if taxonomy.tree.rules[node] is None:
                    assert (margins == why.margins_within(values["decided_by"], node)).all()
                else:
                    margins = why.margins[node]
                order = [one["margin"] for one in values["borderline"]]
                assert order == sorted(order)
                if order:
                    assert order[0] == pytest.approx(margins.min(), abs=1e-6)
        frame = why.nodes()
        expected = [taxonomy.tree.decided_by(node) for node in range(taxonomy.tree.n_nodes)]
        assert frame["decided_by"].tolist() == [-1 if d is None else d for d in expected]


def test_no_ancestor_is_no_ancestor(four_clusters):
    taxonomy, X = four_clusters
    why = explain(taxonomy, X)
    for above, below in ((1, 5), (1, 1), (3, 1), (0, 0)):
        with pytest.raises(ValueError, match="not an ancestor"):
            why.margins_within(above, below)
    assert len(why.margins_within(1, 3)) == 5
