"""Damaged model files: FileFormatError, or a model that works or raises a TaxarborError."""

import io
import json
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from tests.attack.damage import attack_files, damage, damage_member, replace_some

SCALAR = r'"[^"]*"|-?\d[\d.e+-]*|true|false|null|\[[^\[\]]*\]'
VALUES = (None, True, [], {}, [[]], 0, 1, -1, 7, 2**31, 2**63, 10**30, 0.5, 1e308, "", "nan")
VALUES += ("\0", "a/b", "\x1b[2J", "<script>", "x" * 9999)
JSON = [json.dumps(value) for value in VALUES]
NUMBERS = {"f": (0.0, -1.0, 1e-320, 1e308, np.nan, np.inf), "i": (0, 1, -1, 7, 2**31, -(2**63))}
TYPES = ("f4", "f8", "f2", "i1", "i8", "u8", "?", "c16", ">f8", "S3", "U2", "M8[D]")


def make_samples(path):
    """Return the bytes of valid models and rows to predict, by the ends of file names."""
    import pandas as pd

    from taxarbor import HMMC, Taxarbor

    rng = np.random.default_rng(0)
    X = 5.0 * rng.integers(0, 2, (60, 4)) + rng.normal(size=(60, 4))
    table = pd.DataFrame(X, columns=[*"abcd"]).assign(
        origin=rng.choice(["japan", "usa", "europe"], 60), sold=rng.random(60) < 0.5
    )
    table.iloc[::7, 0], table.iloc[:3, 1:4] = np.nan, 100.0
    rows = {"-rows.taxarbor": X.astype("f4"), "-table.taxarbor": table}
    samples = {}
    for suffix, estimator in zip(rows, (HMMC(4), Taxarbor(4, noise=0.05)), strict=True):
        estimator.set_params(random_state=0).fit(rows[suffix]).taxonomy_.save(path)
        samples[suffix] = path.read_bytes()
    return samples, rows


def change_array(rng, array):
    """Return an array of another type, shape or other values."""
    kind = rng.integers(4)
    if kind == 0 and array.dtype.kind in "iufb":
        return array.astype(str(rng.choice(TYPES)))
    if kind == 1 and array.ndim:
        return array[:-1] if rng.random() < 0.5 else np.concatenate([array, array])
    array, values = array.copy(), NUMBERS.get(array.dtype.kind)
    for _ in range(int(rng.integers(1, 4)) if values and array.size else 0):
        array.flat[rng.integers(array.size)] = values[rng.integers(len(values))]
    return array


def change_content(rng, member):
    """Change the array of an npy member, or values of the JSON text."""
    if not member.startswith(b"\x93NUMPY"):
        return replace_some(rng, member.decode(), SCALAR, JSON).encode()
    array, file = np.load(io.BytesIO(member), allow_pickle=False), io.BytesIO()
    with np.errstate(all="ignore"):
        np.save(file, change_array(rng, array), allow_pickle=False)
    return file.getvalue()


def use(samples, path):
    """Load a model and call the methods that users call."""
    from taxarbor import TaxarborError, Taxonomy
    from taxarbor.explain import explain
    from taxarbor.report import report

    model, outcome = Taxonomy.load(path), "used"
    rows = next(rows for suffix, rows in samples.items() if path.name.endswith(suffix))
    for call in (
        lambda: repr(model) + model.to_text() + model._repr_html_(),
        lambda: model.predict(rows),
        lambda: model.predict_proba(rows[:1]),
        lambda: model.prune(2).to_text(),
        lambda: model.save(path.with_suffix(".again")),
        lambda: str(explain(model, rows)),
        lambda: report(model, rows, path.with_suffix(".html")),
    ):
        try:
            call()
        except TaxarborError:
            outcome = "used in part"
    return outcome


def damage_model(rng, _, data):
    """Damage the bytes of a model, or more often the contents of one of its members."""
    is_inside = rng.random() < 0.7
    return damage_member(rng, data, change_content) if is_inside else damage(rng, data)


def attack(seed, seconds):
    """Load and use damaged models, one after another."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        samples, rows = make_samples(Path(folder) / "model")
    return attack_files(samples, damage_model, partial(use, rows), seed, seconds)
