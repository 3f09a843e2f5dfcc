import json
import warnings

import numpy as np
import pytest

from taxarbor.bench import METHODS, Method, load_dataset
from taxarbor.bench._jobs import CLOSING
from taxarbor.bench._work import fit, measure, open_dataset, run_job
from taxarbor.metrics import rand_score, shortest_path_score


def test_a_job_is_fitted_and_measured(made):
    data = load_dataset("animals", None)
    settings = json.dumps({"alpha": 0.5, "penalty": "group"})
    job = made.job(settings=settings, n_clusters=6)
    found = run_job(job, None)
    assert found.status == "done"
    assert 0.0 < found.seconds < 60.0
    assert found.peak_mb >= 0.0
    tree = METHODS["HMMC"].fit(data.X, 6, 2, 0, json.loads(settings))
    weights = np.concatenate([rule.weights.ravel() for rule in tree.rules if rule is not None])
    assert found.measures["zero_weights"] == pytest.approx(np.mean(weights == 0.0))
    assert 0.0 < found.measures["zero_weights"] < 1.0
    assert found.measures["rand"] == rand_score(tree, data.y)
    assert found.measures["shortest_path"] == shortest_path_score(tree, data.y, data.truth)
    assert found.measures["height"] == tree.height
    assert found.measures["n_leaves"] == 6.0


def test_equal_jobs_have_equal_measures(made):
    job = made.job(n_clusters=6)
    assert run_job(job, None).measures == run_job(job, None).measures


def test_the_last_measure_closes_a_job(tmp_path, made):
    made.data(tmp_path, "some", truth=False)
    for name in METHODS:
        outcome = run_job(made.job(name, dataset="some"), tmp_path)
        assert list(outcome.measures)[-1] == CLOSING
        assert "shortest_path" not in outcome.measures


def test_what_goes_wrong_is_an_outcome(tmp_path, made):
    made.data(tmp_path, "some")
    outcome = run_job(made.job("KM", dataset="some", n_clusters=25), tmp_path)
    assert outcome.status.startswith("failed: ")
    assert "25" in outcome.status
    assert not outcome.measures


def test_a_bug_is_no_outcome(made, monkeypatch):
    def fail(*_):
        raise TypeError("a bug")

    monkeypatch.setitem(METHODS, "bad", Method("bad", "ours", fail))
    with pytest.raises(TypeError, match="a bug"):
        run_job(made.job("bad"), None)


def test_warnings_of_a_fit_do_not_matter(made, monkeypatch):
    def warn(X, *rest):
        warnings.warn("look", UserWarning, stacklevel=1)
        return METHODS["BKM"].fit(X, *rest)

    monkeypatch.setitem(METHODS, "loud", Method("loud", "ours", warn))
    assert run_job(made.job("loud"), None).status == "done"


def test_data_is_thinned_then_scaled(tmp_path, made):
    made.data(tmp_path, "some")
    data = open_dataset("some", "standard", 10, tmp_path)
    expected = load_dataset("some", tmp_path).thinned(10).scaled("standard")
    assert np.array_equal(data.X, expected.X)
    assert data.X.shape == (10, 5)
    assert np.allclose(data.X.mean(axis=0), 0.0, atol=1e-6)
    assert open_dataset("some", "standard", 10, tmp_path) is data


def test_without_rules_there_are_no_zero_weights(made):
    data = load_dataset("animals", None)
    tree = fit(made.job("Ward"), data)
    used = [rule for rule in tree.rules if rule is not None]
    expected = measure(tree, data)["zero_weights"]
    assert used or expected == 0.0
    assert 0.0 <= expected <= 1.0


def test_how_a_tree_reads(made):
    data = load_dataset("animals", None)
    tree = fit(made.job(n_clusters=6), data)
    found = measure(tree, data)
    inner = [node for node in range(tree.n_nodes) if tree.rules[node] is not None]
    used = {node: set(np.flatnonzero(tree.rules[node].weights.any(axis=0))) for node in inner}
    sizes = [len(used[node]) for node in inner]
    assert found["median_features"] == np.median(sizes)
    assert found["most_features"] == max(sizes)
    assert found["mean_fidelity"] == pytest.approx(np.mean(tree.fidelity[inner]))
    assert found["least_fidelity"] == min(tree.fidelity[inner])
    shares = [len(used[n] & used[tree.parent(n)]) / len(used[n]) for n in inner[1:]]
    assert found["parent_overlap"] == pytest.approx(np.mean(shares))


def test_what_is_not_known_of_rules_is_no_measure(made):
    data = load_dataset("animals", None)
    greedy = measure(fit(made.job(settings='{"refine": false}'), data), data)
    assert greedy["most_features"] >= greedy["median_features"] >= 1.0
    assert not {"mean_fidelity", "least_fidelity"} & set(greedy)
    assert "median_features" not in measure(fit(made.job("AL"), data), data)
    stump = measure(fit(made.job(n_clusters=2), data), data)
    assert "parent_overlap" not in stump
    assert list(stump)[-1] == CLOSING
