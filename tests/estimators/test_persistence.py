"""Fitted models and their taxonomies, copied, saved and loaded."""

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

from taxarbor import HMMC, TableEncoder, Taxarbor, Taxonomy, TextColumn
from taxarbor.exchange import to_json

MODELS = {
    "taxarbor": Taxarbor(6, random_state=0),
    "three-way": Taxarbor(7, branching=3, min_leaf_size=9, random_state=0),
    "hmmc": HMMC(6, random_state=0),
    "hmmc, three-way": HMMC(7, branching=3, penalty="l2", balance=1.0, random_state=0),
    "one leaf": Taxarbor(1),
}


@pytest.fixture(params=MODELS)
def fitted(request, X):
    """The same model, fitted on named columns of either type, and these."""
    frames = [pd.DataFrame(X.astype(kind)).add_prefix("f") for kind in ("float64", "float32")]
    return [(clone(MODELS[request.param]).fit(frame), frame) for frame in frames]


def with_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def with_skops(model):
    data = skops.io.dumps(model)
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


COPIES = [
    lambda model: pickle.loads(pickle.dumps(model)),
    lambda model: pickle.loads(pickle.dumps(model, protocol=2)),
    copy.copy,
    copy.deepcopy,
    with_joblib,
    with_skops,
]


def test_a_copy_is_the_same_model(fitted):
    for model, rows in fitted:
        for make in COPIES:
            other = make(model)
            assert type(other) is type(model)
            assert other.get_params() == model.get_params()
            assert to_json(other.taxonomy_) == to_json(model.taxonomy_)
            np.testing.assert_array_equal(other.labels_, model.labels_)
            np.testing.assert_array_equal(other.feature_names_in_, model.feature_names_in_)
            np.testing.assert_array_equal(other.predict(rows), model.predict(rows))
            with pytest.raises(ValueError, match="read-only"):
                other.taxonomy_.tree.order[0] = 0


def test_skops_must_trust_the_model_and_its_taxonomy_only(X):
    for estimator in (Taxarbor, HMMC):
        data = skops.io.dumps(estimator(4, random_state=0).fit(X))
        kinds = [f"{kind.__module__}.{kind.__name__}" for kind in (estimator, Taxonomy)]
        assert skops.io.get_untrusted_types(data=data) == kinds
        with pytest.raises(skops.io.exceptions.UntrustedTypesFoundException):
            skops.io.loads(data)


def test_a_saved_taxonomy_predicts_alike(fitted, tmp_path):
    for model, rows in fitted:
        taxonomy, X, expected = model.taxonomy_, rows.to_numpy(), model.predict(rows)
        path = tmp_path / "tree"
        taxonomy.save(path)
        again = Taxonomy.load(path)
        np.testing.assert_array_equal(again.predict(X), expected)
        np.testing.assert_array_equal(again.predict(sparse.csr_array(X)), expected)
        np.testing.assert_array_equal(again.tree.labels, model.labels_)
        assert again.feature_names == tuple(rows.columns)


def test_parameters_of_all_types_are_saved(tmp_path):
    frame = pd.DataFrame({"t": ["late again", "broken"] * 10, "k": ["u", "v", "v", "u"] * 5})
    encoder = TableEncoder(
        text_features=[TextColumn("t")], categorical_features=frame.columns[1:]
    )
    model = Taxarbor(2, encoder=encoder, random_state=0).fit(frame)
    model.taxonomy_.save(tmp_path / "tree")
    again = Taxonomy.load(tmp_path / "tree")
    np.testing.assert_array_equal(again.predict(frame), model.labels_)
    parameters = again.made_by["encoder"]
    assert parameters["text_features"][0]["name"] == "t"
    assert parameters["categorical_features"] == ["k"]
