"""Draw the README's picture: the first levels of the animals' tree.

python docs/picture.py docs/animals.png
"""

import sys
from pathlib import Path
from textwrap import wrap

import matplotlib as mpl
import numpy as np

from taxarbor import HMMC, load_animals
from taxarbor.plot import lay_out

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from demo import reasons

mpl.use("Agg")
from matplotlib import pyplot as plt

INK, BRANCH, YES, NO = "#1f2933", "#b8c4d0", "#05668d", "#9b2c1f"


def main(path: Path) -> None:
    animals = load_animals()
    tree = HMMC(n_clusters=8, random_state=0).fit(animals.X / animals.X.max(axis=0)).hierarchy_
    layout = lay_out(tree)  # of the whole tree, so that the position of a node is its id
    at = np.column_stack([1.5 * layout.depth, -layout.breadth])
    figure, axes = plt.subplots(figsize=(14.5, 6.2), dpi=110)
    axes.set_axis_off()
    for node, (x, y) in enumerate(at):
        parent = tree.parent(node)
        if parent is not None:
            px, py = at[parent]
            axes.plot([px + 0.06, px + 0.12, x - 0.1], [py, y, y], color=BRANCH, lw=2, zorder=0)
            lines = [
                (line, NO if name.startswith(("not ", "lower ")) else YES)
                for name in reasons(tree, node, animals, n_top=3).split(", ")
                for line in wrap(name, 22)
            ]
            for n, (line, color) in enumerate(reversed(lines)):
                axes.text(x - 1.34, y + 0.1 + 0.21 * n, line, color=color, fontsize=8)
        axes.text(
            x, y, str(tree.n_rows[node]), color="white", ha="center", va="center", fontsize=9,
            bbox={"boxstyle": "circle,pad=0.35", "color": INK},
        )  # fmt: skip
        if tree.is_leaf(node):
            told = [animals.names[row] for row in tree.rows(node)]
            spread = np.linspace(0, len(told) - 1, 4).astype(int)
            axes.text(
                x + 0.14, y, ", ".join(told[n] for n in spread) + ", ...", va="center",
                fontsize=9, color=INK,
            )  # fmt: skip
    axes.set_xlim(-0.15, at[:, 0].max() + 1.5)
    axes.set_ylim(at[:, 1].min() - 0.4, 0.75)
    figure.savefig(path, bbox_inches="tight", facecolor="white")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
