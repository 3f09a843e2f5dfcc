"""Damaged model files: FileFormatError, or a tree that works or says why not."""

import io
import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from tests.attack.mutations import Outcomes, mutate, mutate_member

VALUES = (None, True, [], {}, [[]], 0, 1, -1, 7, 2**31, 2**63, 10**30, 0.5, 1e308, "", "nan")
VALUES += ("\0", "a/b", "\x1b[2J", "<script>", "x" * 9999)
FLOATS = (0.0, -1.0, 1e-320, 1e308, np.nan, np.inf)
INTEGERS = (0, 1, -1, 7, 2**31, 2**63 - 1, -(2**63))
TYPES = ("f4", "f8", "f2", "i1", "i8", "u8", "?", "c16", ">f8", "S3", "U2", "M8[D]")


def make_samples(folder):
    """Return the bytes of valid models, each with rows to predict."""
    import pandas as pd

    from taxarbor import HMMC, Taxarbor, make_planted_tree

    X = make_planted_tree(60, depth=2, random_state=0).X[:, :4].copy()
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X, columns=[*"abcd"]).assign(
        origin=rng.choice(["japan", "usa", "europe"], 60), sold=rng.random(60) < 0.5
    )
    table.loc[::7, "a"] = np.nan
    far = np.vstack([X, X[:3] + 100.0])
    models = [(Taxarbor(4, random_state=0), X.astype("f4")), (HMMC(4, random_state=0), X)]
    models += [(Taxarbor(4, random_state=0), table)]
    models += [(Taxarbor(4, noise=0.05, random_state=0), far)]
    samples = []
    for model, rows in models:
        model.fit(rows).taxonomy_.save(folder / "model")
        samples.append(((folder / "model").read_bytes(), rows))
    return samples


def change_array(rng, array):
    """Return an array of other values, another type or shape."""
    kind = rng.integers(5)
    if kind == 0:
        with np.errstate(all="ignore"):
            return array.astype(str(rng.choice(TYPES))) if array.dtype.kind in "iufb" else array
    if kind == 1:
        return array[..., :-1] if array.ndim else array[None]
    if kind == 2:
        return np.concatenate([array, array]) if array.ndim else array[None]
    array = array.copy()
    values = {"f": FLOATS, "i": INTEGERS}.get(array.dtype.kind)
    for _ in range(int(rng.integers(1, 4)) if values and array.size else 0):
        with np.errstate(all="ignore"):
            value = np.asarray(values[rng.integers(len(values))]).astype(array.dtype)
            array.flat[rng.integers(array.size)] = value
    return array


def change_document(rng, text):
    """Replace or remove a value of a JSON text, which stays JSON."""
    document = owner = json.loads(text)
    while True:
        keys = [*owner] if isinstance(owner, dict) else [*range(len(owner))]
        key = keys[rng.integers(len(keys))]
        if not isinstance(owner[key], dict | list) or not owner[key] or rng.random() < 0.3:
            break
        owner = owner[key]
    owner[key] = VALUES[rng.integers(len(VALUES))]
    if rng.random() < 0.15:
        del owner[key]
    return json.dumps(document)


def change_content(rng, member):
    """Change an npy member of a model within: its array, or the JSON text that it holds."""
    array, file = np.load(io.BytesIO(member), allow_pickle=False), io.BytesIO()
    is_text = array.dtype.kind == "U" and array.ndim == 0
    changed = (
        np.array(change_document(rng, str(array))) if is_text else change_array(rng, array)
    )
    np.save(file, changed, allow_pickle=False)
    return file.getvalue()


def use(taxonomy, rows, folder):
    """Do with a tree what users do."""
    from taxarbor import TaxarborError
    from taxarbor.explain import explain
    from taxarbor.report import report

    outcome = "used"
    for ask in (
        lambda: repr(taxonomy) + taxonomy.to_text() + taxonomy._repr_html_(),
        lambda: taxonomy.predict(rows),
        lambda: taxonomy.predict_proba(rows[:1]),
        lambda: taxonomy.prune(min(2, taxonomy.tree.n_leaves)).to_text(),
        lambda: taxonomy.save(folder / "again"),
        lambda: str(explain(taxonomy, rows)),
        lambda: report(taxonomy, rows, folder / "page.html"),
    ):
        try:
            ask()
        except TaxarborError:
            outcome = "used in part"
    return outcome


def attack(seed, seconds):
    """Load and use damaged models, one after another."""
    from taxarbor import FileFormatError, Taxonomy

    ways = {"bytes": mutate, "member": mutate_member}
    ways["content"] = lambda rng, data: mutate_member(rng, data, change_content)
    outcomes, end, number = Outcomes(), time.monotonic() + seconds, 0
    with (
        tempfile.TemporaryDirectory() as name,
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        folder = Path(name)
        samples = make_samples(folder)
        while time.monotonic() < end:
            rng = np.random.default_rng([seed, number])
            data, rows = samples[number % len(samples)]
            way = [*ways][rng.choice(len(ways), p=[0.2, 0.2, 0.6])]
            (folder / "damaged").write_bytes(ways[way](rng, data))
            number += 1
            try:
                taxonomy = Taxonomy.load(folder / "damaged")
            except FileFormatError:
                outcomes[f"{way}: refused"] += 1
                continue
            except Exception as error:
                outcomes.forbid(f"case {number}, {way}, load: {type(error).__name__}: {error}")
                continue
            try:
                outcomes[f"{way}: {use(tree, rows, folder)}"] += 1
            except Exception as error:
                outcomes.forbid(f"case {number}, {way}, use: {type(error).__name__}: {error}")
    return outcomes
