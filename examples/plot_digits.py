"""
Digits: what images have in common
==================================

1,797 small images of handwritten digits. The tree divides them by their pixels, and pictures
say what it found: which images are in a node, which ones are typical, and where the ink
decides.
"""

# %%
# The images
# ----------
# They come with scikit-learn: eight by eight pixels, from 0 to 16. All columns are in one unit,
# so nothing is scaled.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from taxarbor import Taxarbor
from taxarbor.explain import explain
from taxarbor.metrics import tree_scores
from taxarbor.plot import plot_tree

digits = load_digits(as_frame=True)
X, images, digit = digits.data, digits.images / 16.0, digits.target.to_numpy()

# %%
# A tree of twelve leaves
# -----------------------
# Two more than there are digits, as people write some of them in more than one way.

model = Taxarbor(n_clusters=12, random_state=0).fit(X)
tree = model.hierarchy_
print(tree.to_text(max_depth=3))

# %%
# The typical rows of a node are those nearest to its mean. ``plot_tree`` shows them in the
# boxes. Below each strip, a bar has the true digits, which the tree did not see.

why = explain(model, X)
typical = {
    node: [example["row"] for example in why.typical(node, 4)] for node in range(tree.n_nodes)
}


def describe(node):
    """Return the number of images and the two most frequent digits."""
    counts = pd.Series(digit[tree.rows(node)]).value_counts(normalize=True)
    lines = [f"{share:.0%} are {which}" for which, share in counts.items() if share > 0.1]
    return [f"{len(tree.rows(node))} images", *lines[:2]]


drawn = plot_tree(
    tree,
    images=1.0 - images,
    examples=typical,
    classes=digit,
    describe=describe,
    orientation="right",
)

# %%
# Where the ink decides
# ---------------------
# No one or two pixels divide the images well, so a single rule at the root chooses among all
# twelve clusters by 40 of the 64 pixels. For each split, the picture is the difference of the
# two children's mean images: red where the first child has more ink, blue where the second has.
# Circles mark the six pixels of the rule that separate the two most.

# sphinx_gallery_thumbnail_number = 2
figure, axes = plt.subplots(2, 4, figsize=(9.5, 5.8), layout="constrained")
inner = [node for node in range(tree.n_nodes) if not tree.is_leaf(node)]
for node, ax in zip(inner, axes.flat, strict=False):
    first, second = tree.children(node)
    difference = (tree.means[first] - tree.means[second]).reshape(8, 8)
    ax.imshow(difference, cmap="RdBu_r", vmin=-16, vmax=16)
    rows, columns = np.divmod([reason.feature for reason in tree.reasons(first, 6)], 8)
    ax.scatter(columns, rows, s=60, facecolors="none", edgecolors="black", linewidths=1.2)
    ax.set_title(f"node {node} to {first} or {second}", fontsize=9)
    ax.set_axis_off()

# %%
# On the border
# -------------
# The images that lie closest to a border could have gone elsewhere.

figure, axes = plt.subplots(1, 10, figsize=(9.5, 1.3), layout="constrained")
for ax, example in zip(axes, why.borderline(0, 10), strict=True):
    ax.imshow(images[example["row"]], cmap="gray_r")
    ax.set_title(f"a {digit[example['row']]}", fontsize=9)
    ax.set_axis_off()
plt.show()

# %%
# Against the digits
# ------------------
# For the rows of the fit:

print({name: round(value, 2) for name, value in tree_scores(tree, digit).items()})
pd.crosstab(tree.labels, digit, rownames=["leaf"], colnames=["digit"])

# %%
# What to conclude
# ----------------
# - Most leaves are one digit. Fives and sevens have two leaves each, for two ways to write
#   them: the strips of typical images show it.
# - Eights share a leaf with ones, and another with nines: more leaves would tell them apart.
# - For images, a picture of the rule says more than a list of names.
# - For photographs take features of a network instead of pixels; :doc:`/results` has such sets.
