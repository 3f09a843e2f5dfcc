"""Mutated model files, trees in JSON and trees of classes.

A mutated file gives a tree, with which all that one does with trees works or says why not, or
FileFormatError, and little memory is taken. ``python -m tests.attack.models SECONDS [SEED]``
runs it alone; ``python -m tests.attack.models 0 SEED NUMBER`` repeats one case, with its
traceback.
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from taxarbor import Taxarbor, TaxarborError, make_planted_tree
from taxarbor._errors import FileFormatError, InputError
from taxarbor.exchange import from_labels, to_json
from taxarbor.explain import explain
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._file import pack
from taxarbor.hierarchy._remade import without_rows
from taxarbor.metrics import ClassTree
from taxarbor.report import report
from taxarbor.trust import assess
from tests.attack.tally import MEMORY, ROOT, limit_addresses, most_memory, ran_out

LONG = 20
"""Seconds that a case may take."""
NUMBERS = [0, 1, -1, 2, 7, 255, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**30, 10**400]
FLOATS = [0.0, -0.0, 0.5, -1.0, 1e-320, 1e39, 1e308, -1e308, float("nan"), float("inf")]
TEXTS = [
    "",
    "inf",
    "nan",
    "1",
    "\0",
    "a/b",
    "../x",
    "\ud800",
    "\x1b[2J",
    "<script>",
    "x" * 9999,
]
VALUES = [None, True, False, [], {}, [[]], [None], *NUMBERS, *FLOATS[:-2], *TEXTS]
NEWICK = ["((cat,dog)mammal:1.5,owl[a comment],'it''s')animal;", "(((a,b),c),(d,(e,f)));"]
CLASSES = [
    '{"name": "x", "children": [{"name": "a"}, {"name": "b", "children": [{"name": "c"}]}]}',
    '{"cat": ["animal", "mammal"], "owl": ["animal", "bird"]}',
]
CROWDS = b"()[]{},:;'\"0123456789eE+-. \0\\"


@cache
def sound():
    """Return the arrays of trees of all kinds, and rows to ask each about."""
    warnings.simplefilter("ignore")
    X = make_planted_tree(60, depth=2, random_state=0).X[:, :4].copy()
    far = X.copy()
    far[:3] += 100.0
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(
        origin=rng.choice(["japan", "usa", "europe"], 60), sold=rng.random(60) < 0.5
    )
    table.loc[::7, "a"] = np.nan
    table.loc[3::9, "origin"] = None
    model = Taxarbor(4, random_state=0)
    plain = model.fit(X)
    trees = {
        "labels": (from_labels(np.arange(9) % 4), X[:9]),
        "rows": (plain.hierarchy_, X),
        "root": (from_labels([0, 0]), X[:2]),
        "counts": (without_rows(plain.hierarchy_), X),
        "trust": (assess(plain, X, n_refits=3), X),
        "noise": (Taxarbor(4, noise=0.05, random_state=0).fit(far).hierarchy_, far),
        "table": (model.fit(table, sample_weight=np.arange(60) % 3 + 1).hierarchy_, table),
    }
    trees["single"] = (model.fit(X.astype("float32")).hierarchy_, X.astype("float32"))
    return {name: (pack(tree), rows) for name, (tree, rows) in trees.items()}


# How bytes, values and archives are spoilt.


def spoil_bytes(rng, data):
    """Flip bits, cut, repeat or move a part, or put other bytes in."""
    data = bytearray(data or b"\0")
    for _ in range(int(rng.integers(1, 4))):
        at, to = sorted(rng.integers(0, len(data), 2).tolist())
        some = int(rng.integers(1, 40))
        changes = [
            (at, at + 1, bytes([data[at] ^ 1 << int(rng.integers(8))])),
            (to, to + 1, bytes([data[to] ^ 1 << int(rng.integers(8))])),
            (at, at + some, b""),
            (at, at, bytes(data[at : min(to, at + 200)])),
            (to, to + some, bytes(data[at : at + some])),
            (at, at + 4, [b"\xff" * 4, b"\0" * 4, rng.bytes(4)][rng.integers(3)]),
            (at if rng.random() < 0.3 else to, len(data), b""),
        ]
        first, last, new = changes[rng.integers(len(changes))]
        data[first:last] = new
        data = data or bytearray(1)
    return bytes(data)


def spoil_text(rng, text):
    """Replace single letters by those that mean something."""
    data = bytearray(text.encode())
    for place in rng.integers(0, len(data), int(rng.integers(1, 5))):
        data[place] = CROWDS[rng.integers(len(CROWDS))]
    if rng.random() < 0.2:
        data = spoil_bytes(rng, data)
    if rng.random() < 0.05:
        data = bytes(rng.choice([b"(", b"[", b"{", b'{"a":', b'[{"children":'])) * 100_000
    return bytes(data).decode("utf-8", "replace")


def places(value, path=()):
    """Yield the path to every value of a document."""
    yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, item in value.items() if isinstance(value, dict) else ():
        yield from places(item, (*path, key))


def spoil_value(rng, value):
    """Return something else than this value, near to it or not."""
    kind = rng.integers(5)
    if kind == 0 and isinstance(value, list):
        return value[:-1] if rng.random() < 0.5 else value + value[-1:]
    if kind == 1 and isinstance(value, list) and value:
        return [value[k] for k in rng.permutation(len(value))]
    if kind == 1 and isinstance(value, int | float):
        return value + int(rng.integers(-3, 4))
    if kind == 2:
        nested = deepcopy(VALUES[rng.integers(len(VALUES))])  # or it were changed later on
        for _ in range(int(rng.choice([1, 3, 500]))):
            nested = [nested] if rng.random() < 0.5 else {"a": nested}
        return nested
    return deepcopy(VALUES[rng.integers(len(VALUES))])


def spoil_document(rng, text):
    """Change a few values of a JSON text, which stays JSON; some names stand twice."""
    document = json.loads(text)
    for _ in range(int(rng.integers(1, 3))):
        found = [path for path in places(document) if path]
        by_depth = sorted({len(path) for path in found})
        depth = by_depth[rng.integers(len(by_depth))]  # else all would be of long lists
        found = [path for path in found if len(path) == depth]
        path = found[rng.integers(len(found))]
        owner = document
        for key in path[:-1]:
            owner = owner[key]
        if rng.random() < 0.15:
            del owner[path[-1]]
        else:
            owner[path[-1]] = spoil_value(rng, owner[path[-1]])
    told = json.dumps(document)
    if rng.random() < 0.1:
        told = told.replace("0.5", str(rng.choice(["1e999", "-1e999", "5e-324", "9" * 5000])))
    return "{" + told[1:-1] + "," + told[1:] if rng.random() < 0.05 else told


def spoil_array(rng, array):
    """Return an array of other values, another type or shape."""
    kind = rng.integers(6)
    if kind == 0:
        types = ["f4", "f8", "f2", "i1", "i8", "u8", "?", "c16", ">f8", "S3", "U2", "M8[D]"]
        with np.errstate(all="ignore"), contextlib.suppress(ValueError, TypeError):
            return array.astype(str(rng.choice(types)))
    if kind == 1:
        array = array[..., :-1] if array.ndim else array
    elif kind == 2:
        array = np.concatenate([array, array]) if array.ndim else array[None]
    elif kind == 3:
        array = array.T if rng.random() < 0.5 else array[None]
    if not array.size or array.dtype.kind not in "iufb":
        return array
    array = array.copy()
    pool = FLOATS if array.dtype.kind == "f" else [n for n in NUMBERS if abs(n) < 2**63]
    for _ in range(int(rng.integers(1, 4))):
        with np.errstate(all="ignore"), contextlib.suppress(OverflowError):
            array.flat[rng.integers(array.size)] = pool[rng.integers(len(pool))]
    return array


def npy_bytes(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def spoil_header(rng, data):
    """Change what a header states; its length stays right, mostly."""
    length = int.from_bytes(data[8:10], "little")
    header, body = data[10 : 10 + length], data[10 + length :]
    swaps = [
        *((b"'<f8'", b"'|O'"), (b"'<i8'", b"'<f8'"), (b"<", b">"), (b"False", b"True")),
        *((b"(", b"(999999999999, "), (b",)", b",0)"), (b"8", b"0"), (b"'", b'"')),
        *((b"{", b"{{"), (b"}", b""), (b"(", b"(" * 200), (b"8", b"8" * 99), (b"(", b"(-")),
        *((b"shape", b"shap\0"), (b":", b":\n"), (b"'<U", b"'<U99"), (b"d", b"\xff")),
    ]
    old, new = swaps[rng.integers(len(swaps))]
    header = header.replace(old, new) if rng.random() < 0.8 else spoil_bytes(rng, header)
    stated = len(header) if rng.random() < 0.8 else int(rng.integers(65536))
    return data[:8] + min(stated, 65535).to_bytes(2, "little") + header + body


def archived(members):
    """Return an archive of these, deflated."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # of names that stand twice
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def spoil_directory(rng, data):
    """Change the fields of the archive's directory: sizes, flags, places, names."""
    data = bytearray(data)
    starts = [k for k in range(len(data) - 46) if data[k : k + 4] == b"PK\1\2"]
    ends = [k for k in range(len(data) - 8) if data[k : k + 4] in (b"PK\3\4", b"PK\5\6")]
    for _ in range(int(rng.integers(1, 3))):
        at = starts[rng.integers(len(starts))] if rng.random() < 0.8 else ends[-1]
        field = int(rng.choice([6, 8, 10, 16, 20, 24, 28, 30, 38, 42, 46]))
        width = 2 if field in (6, 8, 10, 28, 30) else 4
        value = int(rng.choice([0, 1, 99, 65535, 2**31, 2**32 - 1]))
        data[at + field : at + field + width] = (value % 256**width).to_bytes(width, "little")
    return bytes(data)


def spoilt_file(rng, arrays):
    """Return the bytes of a model, spoilt in one of many ways, and the way."""
    kind = str(
        rng.choice(
            ["bytes", "member", "header", "array", "document", "directory", "names"],
            p=[0.12, 0.12, 0.15, 0.25, 0.25, 0.07, 0.04],
        )
    )
    members = {f"{name}.npy": npy_bytes(array) for name, array in arrays.items()}
    name = list(arrays)[rng.integers(len(arrays))]
    if kind == "member":
        members[f"{name}.npy"] = spoil_bytes(rng, members[f"{name}.npy"])
    elif kind == "header":
        members[f"{name}.npy"] = spoil_header(rng, members[f"{name}.npy"])
    elif kind == "array":
        members[f"{name}.npy"] = npy_bytes(spoil_array(rng, arrays[name]))
    elif kind == "document":
        text = spoil_document(rng, str(arrays["meta"]))
        members["meta.npy"] = npy_bytes(np.array(text))
    entries = list(members.items())
    if kind == "names":
        at = int(rng.integers(len(entries)))
        names = ["../x.npy", "a\0b.npy", "start.npy", "/start.npy", "start.npy/", "x" * 60000]
        entries[at] = (str(rng.choice(names)), entries[at][1])
    data = archived(entries)
    if kind == "bytes":
        data = spoil_bytes(rng, data)
    return spoil_directory(rng, data) if kind == "directory" else data, kind


# What is asked of what was loaded.


def use(rng, tree, rows, folder):
    """Do what one does with a tree; what it cannot do, it says."""
    one = rows.iloc[:1] if hasattr(rows, "iloc") else rows[:1]
    asks = [
        lambda: repr(tree),
        tree.to_text,
        tree._repr_html_,
        lambda: tree.labels,
        lambda: tree.predict(one),
        lambda: tree.predict(rows),
        lambda: tree.predict_proba(one),
        lambda: [tree.reasons(node) for node in range(tree.n_nodes)],
        lambda: tree.cut(min(2, tree.n_leaves)),
        lambda: tree.prune(min(2, tree.n_leaves)).to_text(),
        lambda: tree.attach(rows).labels,
        lambda: to_json(tree),
        lambda: tree.save(folder / "again"),
        lambda: Hierarchy.load(folder / "again"),
        lambda: str(explain(tree, rows)),
    ]
    if rng.random() < 0.1:
        asks.append(lambda: report(tree, rows, folder / "page.html"))
    refused = 0
    for ask in asks:
        try:
            ask()
        except TaxarborError as error:
            if ran_out(error):
                raise
            refused += 1
    return "used" if not refused else "used in part"


def check_refusal(error):
    """Raise AssertionError if this is not how something is refused."""
    if len(str(error)) > 2000 or "\n" in str(error):
        raise AssertionError(f"told at length: {str(error)[:200]!r}") from error
    if ran_out(error):
        raise AssertionError(f"memory ran out: {error}") from error


def run_case(seed, number, folder):
    """Run one case; return its outcome, or raise what may not be raised."""
    rng = np.random.default_rng([seed, number])
    names = list(sound())
    name = names[rng.integers(len(names))]
    arrays, rows = sound()[name]
    kind = rng.random()
    if kind < 0.08:
        pool = NEWICK + CLASSES
        spoilt = spoil_text(rng, pool[rng.integers(len(pool))])
        path = folder / "classes"
        path.write_bytes(spoil_bytes(rng, spoilt.encode()))
        try:
            ClassTree.read(path if rng.random() < 0.2 else spoilt)
        except InputError:
            return "classes: refused"
        return "classes: read"
    data, what = spoilt_file(rng, arrays)
    path = folder / "model"
    path.write_bytes(data)
    try:
        tree = Hierarchy.load(path)
    except FileFormatError as error:
        check_refusal(error)
        return f"{what}: refused"
    return f"{what}: {use(rng, tree, rows, folder)}"


def _too_long(*_):
    raise TimeoutError(f"a case took more than {LONG} seconds")


def run_cases(seed, seconds):
    """Run cases for some time, in this process; print what came of them as JSON."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    sound()
    limit_addresses()
    before = most_memory()
    signal.signal(signal.SIGALRM, _too_long)
    counts, wrong, number, end = Counter(), [], 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        while time.monotonic() < end:
            signal.alarm(LONG)
            try:
                outcome = run_case(seed, number, Path(name))
                more, before = most_memory() - before, max(before, most_memory() - MEMORY)
                if more > MEMORY:
                    raise AssertionError(f"took {more >> 20:,} MB of memory: {outcome}")
                counts[outcome] += 1
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                told = f"{type(error).__name__}: {str(error)[:200]}"
                where = f"{Path(place.filename).name}:{place.lineno}"
                wrong.append(f"case {seed} {number}: {told} ({where})")
            signal.alarm(0)
            number += 1
    sys.stdout.write(json.dumps({"counts": counts, "wrong": wrong}) + "\n")


def attack(seed: int, seconds: float) -> dict[str, int]:
    """Run seeded cases in a process of bounded memory; return how many ended how.

    Raises AssertionError with the cases that ended as none may.
    """
    command = [sys.executable, "-m", "tests.attack.models", str(seconds), str(seed)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    how = {"env": env, "cwd": ROOT, "capture_output": True, "text": True}
    done = subprocess.run(command, check=False, timeout=seconds + 300, **how)
    if done.returncode:
        raise AssertionError(f"seed {seed}: status {done.returncode}\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    if found["wrong"]:
        raise AssertionError("\n".join(found["wrong"]))
    return dict(sorted(found["counts"].items()))


if __name__ == "__main__":
    if len(sys.argv) > 3:
        warnings.simplefilter("ignore")
        limit_addresses()
        with tempfile.TemporaryDirectory() as chosen:
            case = run_case(int(sys.argv[2]), int(sys.argv[3]), Path(chosen))
        sys.stdout.write(f"{case}\n")
    else:
        run_cases(int(sys.argv[2]) if len(sys.argv) > 2 else 0, float(sys.argv[1]))
