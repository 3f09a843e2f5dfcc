"""Layers of AnnData, in memory and in files, and raw counts."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor import Taxarbor, Taxonomy
from taxarbor._errors import InputError, TableWarning
from taxarbor.explain import explain
from taxarbor.stability import assess
from tests.sources.places import AnnData, write_h5ad

N = 200
NAMES, RAW_NAMES = ["g0", "g1", "g2"], ["g3", "g2", "g1", "g0"]
CHOICES = [{}, {"layer": "logs"}, {"use_raw": True}]


@pytest.fixture(scope="module", name="matrices")
def make_matrices():
    """X, a layer, and raw, which have groups of their own."""
    rng = np.random.default_rng(0)
    groups = (np.arange(N) % 3, 3), (np.arange(N) // 67, 3), (np.arange(N) % 2, 4)
    return [10.0 * group[:, None] + rng.normal(size=(N, width)) for group, width in groups]


def in_memory(matrices, cast=np.asarray, names=NAMES):
    X, logs, raw = map(cast, matrices)
    order = [NAMES.index(name) for name in names]
    raw = AnnData(raw, RAW_NAMES)
    return AnnData(X[:, order], names, layers={"logs": logs[:, order]}, raw=raw)


def in_a_file(matrices, folder, cast=np.asarray):
    X, logs, raw = map(cast, matrices)
    return write_h5ad(folder / "x.h5ad", X, NAMES, {"logs": logs}, (raw, RAW_NAMES))


@pytest.mark.parametrize("choice", CHOICES, ids=["X", "layer", "raw"])
@pytest.mark.parametrize("cast", [np.asarray, sparse.csr_array])
def test_predict_reads_what_fit_read(matrices, tmp_path, kind, cast, choice):
    matrix = matrices[CHOICES.index(choice)]
    names = RAW_NAMES if "use_raw" in choice else NAMES
    expected = kind(3, random_state=0).fit(cast(matrix), feature_names=names)
    memory, file = in_memory(matrices, cast), in_a_file(matrices, tmp_path, cast)
    others = in_memory(matrices, cast, NAMES[::-1])
    for rows in (memory, file):
        model = kind(3, random_state=0).fit(rows, **choice)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        assert [*model.taxonomy_.feature_names] == names
        model.taxonomy_.save(tmp_path / "model.tax")
        loaded = Taxonomy.load(tmp_path / "model.tax")
        for new in (memory, others, file, pd.DataFrame(matrix, columns=names)):
            np.testing.assert_array_equal(loaded.predict(new), expected.predict(cast(matrix)))
    if kind is Taxarbor:
        fitted = kind(3, random_state=0).fit(memory, **choice)
        assert assess(fitted, memory, n_refits=2).stability is not None
    assert explain(model, memory).names == explain(expected, cast(matrix)).names


def test_layers_that_are_not_there(matrices, tmp_path):
    memory, file, array = in_memory(matrices), in_a_file(matrices, tmp_path), matrices[0]
    model = Taxarbor(2, random_state=0).fit(memory, layer="logs")
    calls = [partial(model.predict, AnnData(array, NAMES))]
    calls.append(partial(Taxarbor(2).fit, AnnData(array, NAMES), use_raw=True))
    for choice in ({"layer": "counts"}, {"layer": "logs", "use_raw": True}):
        calls += [partial(Taxarbor(2).fit, rows, **choice) for rows in (memory, file, array)]
    for call in calls:
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.parameter == "layer"


@pytest.mark.parametrize("form", ["dense", "csr", "AnnData", "h5ad"])
def test_raw_counts_are_noted(tmp_path, kind, form):
    rng = np.random.default_rng(0)
    depth = np.array([0.3, 1.0, 1.0, 2.0])[np.arange(N) % 4][:, None]
    counts = rng.poisson(rng.gamma(0.4, 2.0, (N, 80)) * depth).astype(np.float32)
    names = [f"g{j}" for j in range(80)]
    csr = sparse.csr_array(counts)
    rows = {"dense": counts, "csr": csr, "AnnData": AnnData(csr, names)}
    rows["h5ad"] = write_h5ad(tmp_path / "counts.h5ad", csr, names)
    with pytest.warns(TableWarning, match="counts.*log1p"):
        kind(3, random_state=0).fit(rows[form])
