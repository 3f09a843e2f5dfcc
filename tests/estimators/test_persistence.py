import copy
import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from taxarbor import HMMC, MMC, FileFormatError, Hierarchy

MODELS = {
    "tree": HMMC(6, random_state=0),
    "three-way": HMMC(7, branching=3, penalty="l2", balance=1.0, random_state=0),
    "greedy": HMMC(6, refine=False, random_state=0),
    "greedy three-way": HMMC(
        7, refine=False, branching=3, penalty="l2", balance=1.0, random_state=0
    ),
    "one leaf": HMMC(1),
    "flat": MMC(4, random_state=0),
}


@pytest.fixture(params=["float64", "float32"])
def rows(request, X):
    return pd.DataFrame(X.astype(request.param)).add_prefix("f")


@pytest.fixture(params=list(MODELS))
def model(request, rows):
    return clone(MODELS[request.param]).fit(rows)


def with_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def with_skops(model):
    data = skops.io.dumps(model)
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


WAYS = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "old pickle": lambda model: pickle.loads(pickle.dumps(model, protocol=2)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "joblib": with_joblib,
    "skops": with_skops,
}


@pytest.mark.parametrize("way", list(WAYS))
def test_copy_is_the_same_model(model, rows, way):
    other = WAYS[way](model)
    assert type(other) is type(model)
    assert other.get_params() == model.get_params()
    assert other.hierarchy_.to_json() == model.hierarchy_.to_json()
    np.testing.assert_array_equal(other.labels_, model.labels_)
    np.testing.assert_array_equal(other.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(other.predict(rows), model.predict(rows))
    with pytest.raises(ValueError, match="read-only"):
        other.hierarchy_.order[0] = 0


@pytest.mark.parametrize("way", list(WAYS))
def test_unfitted_copy(X, way):
    other = WAYS[way](HMMC(3, alpha=0.5))
    assert other.get_params() == HMMC(3, alpha=0.5).get_params()
    with pytest.raises(NotFittedError):
        other.predict(X)


@pytest.mark.parametrize("estimator", [HMMC, MMC])
def test_skops_is_asked_to_trust_the_model_and_its_tree_only(X, estimator):
    data = skops.io.dumps(estimator(4, random_state=0).fit(X))
    module = estimator.__module__
    assert skops.io.get_untrusted_types(data=data) == [
        f"{module}.{estimator.__name__}",
        "taxarbor.hierarchy._tree.Hierarchy",
    ]
    with pytest.raises(skops.io.exceptions.UntrustedTypesFoundException):
        skops.io.loads(data)


def test_clone_forgets_the_fit(X):
    model = HMMC(4, alpha=0.01, random_state=3).fit(X)
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not [name for name in vars(other) if name.endswith("_")]
    assert other.fit(X).hierarchy_.to_json() == model.hierarchy_.to_json()


@pytest.mark.parametrize("form", ["file", "json"])
def test_saved_tree_predicts_alike(model, rows, tmp_path, form):
    path = tmp_path / "tree"
    if form == "file":
        model.hierarchy_.save(path)
        tree = Hierarchy.load(path)
    else:
        model.hierarchy_.to_json(path)
        tree = Hierarchy.from_json(path)
    X = rows.to_numpy()
    expected = model.predict(rows)
    np.testing.assert_array_equal(tree.predict(X), expected)
    np.testing.assert_array_equal(tree.predict(sparse.csr_array(X)), expected)
    np.testing.assert_array_equal(tree.labels, model.labels_)
    visited = model.decision_path(rows).toarray()
    np.testing.assert_array_equal(tree.decision_path(X).toarray(), visited)
    assert tree.feature_names == tuple(rows.columns)


@pytest.mark.parametrize("form", ["file", "json"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_file_cut_short(model, tmp_path, form, share):
    path = tmp_path / "tree"
    (model.hierarchy_.save if form == "file" else model.hierarchy_.to_json)(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(FileFormatError, match=r"tree|hierarchy"):
        (Hierarchy.load if form == "file" else Hierarchy.from_json)(path)
