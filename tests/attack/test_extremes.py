"""Extreme weights and numbers, odd types, hostile names work, or are refused in a line."""

import io
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from taxarbor import HMMC, FileFormatError, TableWarning, Taxarbor, Taxonomy
from taxarbor._errors import MAX_MESSAGE, InputError
from taxarbor.report import report
from taxarbor.tables import read_table
from taxarbor.taxonomy.model_file import _write_archive, pack

ESTIMATORS = [Taxarbor, HMMC]


@pytest.fixture(name="X")
def make_rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)) + 6.0 * (np.arange(60) % 3 == 0)[:, None]


@pytest.mark.parametrize("model", [Taxarbor(3), HMMC(3), Taxarbor(3, noise=0.1)], ids=str)
@pytest.mark.parametrize("factor", [1e308, 4e-200, 5e-324])
def test_a_common_factor_of_weights_has_no_effect(model, factor, X, tmp_path):
    shares = np.where(np.arange(60) % 2, 1.0, 0.5 if factor > 1e-300 else 1.0)
    given = None if factor < 1e-300 else shares
    expected = model.set_params(random_state=0).fit(X, sample_weight=given).labels_
    model.fit(X, sample_weight=factor * shares)
    np.testing.assert_array_equal(model.labels_, expected)
    report(model, X, tmp_path / "page.html")
    model.taxonomy_.save(tmp_path / "m")
    loaded = Taxonomy.load(tmp_path / "m")
    report(loaded, X, tmp_path / "page.html")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_row_of_weight_zero_may_hold_any_number(X, tmp_path):
    weights = np.ones(60)
    X[7], weights[7] = 1e308, 0.0
    model = Taxarbor(3, random_state=0).fit(X, sample_weight=weights)
    rest = np.delete(np.arange(60), 7)
    expected = Taxarbor(3, random_state=0).fit(X[rest]).labels_
    np.testing.assert_array_equal(model.labels_[rest], expected)
    report(model, X, tmp_path / "page.html")


@pytest.mark.parametrize("name", ["sums", "counts", "noise_centers"])
def test_means_that_no_fit_makes_are_refused(name, X, tmp_path):
    arrays = pack(Taxarbor(3, noise=0.05, random_state=0).fit(X).taxonomy_)
    arrays[name] = arrays[name].copy()
    arrays[name].flat[0] = 1e308
    with (tmp_path / "m").open("wb") as file:
        _write_archive(file, arrays)
    with pytest.raises(FileFormatError, match=r"means|counts|centers"):
        Taxonomy.load(tmp_path / "m")


@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
@pytest.mark.parametrize("kind", [">f8", ">f4", ">i4", ">u2"])
def test_big_endian_columns(kind, X):
    frame = pd.DataFrame((20 + 3 * X).round(), columns=[*"abc"])
    expected = Taxarbor(3, random_state=0).fit(frame.astype(kind[1:]))
    model = Taxarbor(3, random_state=0).fit(frame.astype(kind))
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(frame.astype(kind)), expected.predict(frame))
    mixed = frame.astype({"a": kind}).assign(text=["u", "v"] * 30)
    assert len(Taxarbor(3, random_state=0).fit(mixed).labels_) == 60


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_arrays_are_not_printed(estimator, X):
    model = estimator(3, random_state=0).fit(X)
    for odd in (np.arange(5000.0), X + 1j, np.arange(5000) * 1j, [*range(5000)]):
        for use in (estimator(3).fit, model.predict):
            with pytest.raises(InputError) as caught:
                use(odd)
            assert len(str(caught.value)) < 200


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("seed", [-1, 2**40, "x", "\x1b[2J" * 10_000])
def test_a_seed_is_named(estimator, seed, X):
    with pytest.raises(InputError) as caught:
        estimator(3, random_state=seed).fit(X)
    assert caught.value.parameter == "random_state"
    assert len(str(caught.value)) <= MAX_MESSAGE


HOSTILE = "\x1b[31m\0\r\n" + "n" * 100_000 + "\u202e"


def is_harmless(message):
    return message.isprintable() and len(message) <= MAX_MESSAGE


@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_messages_are_short_and_printable(X):
    frame = pd.DataFrame(X, columns=[HOSTILE, "b", "c"])
    model = Taxarbor(3, random_state=0).fit(frame)
    csv = io.BytesIO(f'"{HOSTILE}",b\n1,2\n2,3\n'.encode())
    for call in (
        lambda: Taxarbor(3).fit(frame.replace(X[0, 0], np.inf)),
        lambda: model.predict(frame + np.inf),
        lambda: model.predict(pd.DataFrame({"z" + HOSTILE: [1.0]})),
        lambda: Taxarbor(3, encoder=HOSTILE).fit(frame),
        lambda: read_table(csv, columns=["a" + HOSTILE]),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert is_harmless(str(caught.value))
    for odd in (frame.assign(**{HOSTILE: None}), pd.concat([frame, frame], axis=1)):
        with pytest.warns(TableWarning) as warned:
            Taxarbor(3, random_state=0).fit(odd)
        lines = [line for one in warned for line in str(one.message).split("\n")]
        assert len(lines) <= 5
        assert all(map(is_harmless, lines))


def test_long_messages_keep_their_end():
    error = InputError(f"holds {'x' * 5000}; fix it", "X")
    assert str(error).startswith("X holds xxx")
    assert str(error).endswith("xxx; fix it")
    assert error.message(lambda name: f"--{name}").startswith("--X holds")


def test_a_lack_of_memory_is_no_damage(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.eye(3))
    for read in ("numpy.load", "numpy.memmap", "numpy.lib.format.open_memmap"):
        monkeypatch.setattr(read, Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        read_table(tmp_path / "x.npy")


def test_a_partition_without_the_first_column(X):
    pytest.importorskip("dask.dataframe")
    import dask
    import dask.dataframe as dd

    frame = pd.DataFrame(X, columns=[*"abc"])
    parts = [dask.delayed(frame), dask.delayed(frame.drop(columns="a"))]
    rows = dd.from_delayed(parts, meta=frame[:0], verify_meta=False)
    with pytest.raises(InputError, match="partition 1 of X lacks 'a'"):
        Taxarbor(3).fit(rows)
