"""The main job on bundled data: fit, print the tree, write a page to look at.

Run by ``make demo``.
"""

import time
from html import escape
from pathlib import Path

import numpy as np

from taxarbor import HMMC, Hierarchy, load_animals
from taxarbor.data import Bundle

PAGE = Path("demo.html")

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem;
       padding: 0 1rem; color: #222; background: #fff }
details { margin: .3rem 0 .3rem 1.2rem; border-left: 2px solid #8aa4bf66; padding-left: .8rem }
summary { cursor: pointer } b { font-weight: 600 } .why { color: #05668d }
.n { color: #667; white-space: nowrap }
p { margin: .2rem 0 .6rem 1.2rem; color: #445 }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #16191d } .why { color: #7cc6e8 } p, .n { color: #9aa } }
"""


def main() -> None:
    animals = load_animals()
    begun = time.perf_counter()
    model = HMMC(n_clusters=12, random_state=0).fit(animals.X / animals.X.max(axis=0))
    seconds = time.perf_counter() - begun
    tree = model.hierarchy_
    print(f"{len(animals.names)} animals, {len(animals.feature_names)} attributes, no labels.")
    print(f"{tree.n_leaves} groups in {seconds:.2f} s:\n")
    for depth, node in walk(tree):
        print("  " * depth + line(tree, node, animals))
        if tree.is_leaf(node):
            print("  " * (depth + 1) + members(tree, node, animals.names, 8))
    PAGE.write_text(page(tree, animals), encoding="utf-8")
    print(f"\nThe same to look at, with all animals: {PAGE}")


def walk(tree: Hierarchy) -> list[tuple[int, int]]:
    """Return (depth, node) from left to right, parents first."""
    found, ahead = [], [tree.root]
    while ahead:
        node = ahead.pop()
        found.append((int(tree.depth[node]), node))
        ahead.extend(reversed(tree.children(node)))
    return found


def reasons(tree: Hierarchy, node: int, animals: Bundle, n_top: int = 4) -> str:
    """Say what tells this child's rows from its siblings': weight times difference of means."""
    parent = tree.parent(node)
    if parent is None:
        return "all animals"
    weights = tree.rules[parent].weights
    own = weights[tree.children(parent).index(node)] - weights.mean(axis=0)
    mean = animals.X[tree.rows(node)].mean(axis=0)
    rest = animals.X[np.setdiff1d(tree.rows(parent), tree.rows(node))].mean(axis=0)
    part = own * (mean - rest)
    top = [j for j in np.argsort(-part)[:n_top] if part[j] > 0.2 * part.max()]
    return ", ".join(phrase(animals, j, mean[j] > rest[j]) for j in top)


def phrase(animals: Bundle, feature: int, more: bool) -> str:
    name = animals.feature_names[feature].replace("_", " ")
    if animals.X[:, feature].max() > 1:
        return f"{'higher' if more else 'lower'} {name}"
    return name if more else f"not {name}"


def line(tree: Hierarchy, node: int, animals: Bundle) -> str:
    return f"{reasons(tree, node, animals)} [{tree.n_rows[node]}]"


def members(tree: Hierarchy, node: int, names: tuple[str, ...], most: int) -> str:
    rows = tree.rows(node)
    told = ", ".join(names[row] for row in rows[:most])
    return told + (f" and {len(rows) - most} more" if len(rows) > most else "")


def page(tree: Hierarchy, animals: Bundle) -> str:
    """Return one self-contained page; every name is escaped."""
    parts, depth = [], -1
    for level, node in walk(tree):
        parts.append("</details>" * (depth - level + 1))
        depth = level
        why = escape(reasons(tree, node, animals))
        parts.append(
            f'<details open><summary><b class="why">{why}</b> '
            f'<span class="n">{tree.n_rows[node]} rows</span></summary>'
        )
        if tree.is_leaf(node):
            parts.append(f"<p>{escape(members(tree, node, animals.names, 10**6))}</p>")
    parts.append("</details>" * (depth + 1))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>taxarbor demo</title>'
        f"<style>{STYLE}</style><h1>Animals, divided by their attributes</h1>"
        f"<p>{tree.n_leaves} groups found without labels. Each line names what tells its rows "
        "from their siblings', the strongest first.</p>" + "".join(parts) + "</html>"
    )


if __name__ == "__main__":
    main()
