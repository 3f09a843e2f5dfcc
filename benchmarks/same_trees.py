"""Check that fits still give the same trees, to the bit.

    python benchmarks/same_trees.py [--only NAME ...] [--quick] [--write]

A digest covers the labels, the rules and the objectives of a fit. Each fit runs
with one thread and with two, which must agree. ``same_trees.json`` holds the digests;
``--write`` replaces them, for a change of the method that means to change its trees.
Digests hold on one kind of processor: another may round its sums differently.
"""

import argparse
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import taxarbor

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("TAXARBOR_DATA", HERE.parents[1] / "shared" / "data"))
DIGESTS = HERE / "same_trees.json"
SETS = (
    "animals",
    "pbmc68k_reduced",
    "tiny_vehicle15",
    "tiny_imagenet20",
    "wordnet_gloss",
    "awa_attr",
    "awa_pca",
)
ROWS = 3000
"""Rows of a set in most fits, evenly spaced."""

RELATIVE = {"alpha": 0.003, "beta": 0.003, "balance": 0.5, "center": "node", "n_init": 4}
PAPER = {
    "units": "raw",
    "alpha": 1e-2,
    "beta": 1e-2,
    "balance": (0.9, 1.1),
    "center": "data",
    "n_init": 1,
}


def read(name: str) -> np.ndarray:
    """Return the rows of a set, in float64."""
    if name == "animals":
        return taxarbor.load_animals().X.astype(np.float64)
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        return file["X"].astype(np.float64)


def cases(name: str) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield the name, the model and the rows of each fit on one set."""
    X = read(name)
    few = X[np.arange(min(len(X), ROWS)) * len(X) // min(len(X), ROWS)]
    for K in (2, 3):
        models = {
            "taxarbor": taxarbor.Taxarbor(13, branching=K),
            "hmmc": taxarbor.HMMC(13, branching=K, **RELATIVE),
            "paper": taxarbor.HMMC(13, branching=K, **PAPER),
        }
        for method, model in models.items():
            for dtype in (np.float32, np.float64):
                dense = few.astype(dtype)
                yield f"{name} {method} K={K} {dtype.__name__} dense", model, dense
                yield f"{name} {method} K={K} {dtype.__name__} CSR", model, csr_array(dense)
    if name.startswith("awa"):
        whole = X.astype(np.float32)
        yield f"{name} taxarbor K=2 float32 whole", taxarbor.Taxarbor(50), whole
        yield f"{name} hmmc K=2 float32 whole", taxarbor.HMMC(50, **RELATIVE), whole
        yield f"{name} paper K=2 float32 whole", taxarbor.HMMC(50, **PAPER), whole
    if name == "animals":
        yield from others(X)


def others(X: np.ndarray) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield the variants, on the animals."""
    for penalty in ("group", "exclusive", "l1", "l2"):
        model = taxarbor.HMMC(9, penalty=penalty, **RELATIVE)
        yield f"animals hmmc {penalty}", model, X
    for K in (2, 3):
        yield f"animals taxarbor K={K} 3 features", few_features(K), X
    flat = taxarbor.HMMC(6, branching=6, penalty="group", balance=0.3, center="node")
    yield "animals hmmc flat", flat, X


def few_features(K: int) -> Any:
    return taxarbor.Taxarbor(9, branching=K, max_features=3)


def digest_model(model: Any) -> str:
    """Return a digest of all that a fit decided."""
    tree = model.taxonomy_.tree
    digest = hashlib.sha256()
    parts = [model.labels_.astype(np.int64), tree.parents.astype(np.int64), tree.objective]
    rules = [rule for rule in tree.rules if rule is not None]
    for rule in rules:
        parts += [rule.weights, rule.center, rule.offsets]
    for part in parts:
        digest.update(str((part.dtype, part.shape)).encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=SETS, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="the animals alone")
    parser.add_argument("--write", action="store_true", help="replace the digests")
    arguments = parser.parse_args()
    known = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    digests, wrong = {}, []
    for name in ("animals",) if arguments.quick else arguments.only:
        if name != "animals" and not (DATA / f"{name}.npz").exists():
            print(f"{name}: no such file, skipped")
            continue
        for case, model, X in cases(name):
            both = []
            for threads in (1, 2):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.set_params(random_state=0, n_jobs=threads).fit(X)
                both.append(digest_model(model))
            digests[case] = both[0]
            if both[0] != both[1] or (not arguments.write and known.get(case) != both[0]):
                wrong.append(case)
                print(f"DIFFERS {case}: {' '.join(both)}, known {known.get(case)}", flush=True)
    if arguments.write:
        text = json.dumps(known | digests, indent=0, sort_keys=True)
        DIGESTS.write_text(text + "\n", encoding="utf-8")
    print(f"{len(digests)} fits, {len(wrong)} of them different")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
