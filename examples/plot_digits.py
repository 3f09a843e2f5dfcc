"""
Digits: a tree of images
========================

1,797 small images of handwritten digits, clustered by their pixels. Plots show the typical
images of each node and the pixels that separate its children.
"""

# %%
# The images
# ----------
# They come with scikit-learn: eight by eight pixels, from 0 to 16. All columns have the same
# unit, so nothing is scaled.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from taxarbor import Taxarbor
from taxarbor.explain import explain
from taxarbor.metrics import tree_scores
from taxarbor.plot import plot_tree

digits = load_digits()
X, images, digit = digits.data, digits.images / 16.0, digits.target

# %%
# A tree of twelve leaves
# -----------------------
# Two more than there are digits, as some digits are written in more than one way.

model = Taxarbor(n_clusters=12, random_state=0).fit(X, feature_names=digits.feature_names)
taxonomy, tree = model.taxonomy_, model.taxonomy_.tree
print(taxonomy.to_text(max_depth=3))

# %%
# The bars of ``plot_tree`` have the true digits, which were not used in the fit.


def describe(node):
    """Return the number of images and the two most frequent digits."""
    counts = pd.Series(digit[tree.rows(node)]).value_counts(normalize=True)
    lines = [f"{share:.0%} are {which}" for which, share in counts.items() if share > 0.1]
    return [f"{len(tree.rows(node))} images", *lines[:2]]


ax = plot_tree(taxonomy, classes=digit, describe=describe, orientation="right")

# %%
# The typical images of each leaf, those nearest to its mean:

why = explain(model, X)
figure, axes = plt.subplots(4, 12, figsize=(9.5, 3.6), layout="constrained")
for label, leaf in enumerate(tree.leaves):
    for ax, example in zip(axes[:, label], why.examples(leaf, 4)["typical"], strict=True):
        ax.imshow(images[example["row"]], cmap="gray_r")
        ax.set_axis_off()
    axes[0, label].set_title(f"c{label}", fontsize=9)
plt.show()

# %%
# Pixels of the rules
# -------------------
# No one or two pixels separate the images well, so a single rule at the root chooses among all
# twelve clusters by 40 of the 64 pixels. The plots show, for each split, the difference of the
# children's mean images: red where the first child has more ink, blue where the second has.
# Circles mark the six pixels of the rule that separate the two most.

# sphinx_gallery_thumbnail_number = 3
figure, axes = plt.subplots(2, 4, figsize=(9.5, 5.8), layout="constrained")
inner = [node for node in range(tree.n_nodes) if not tree.is_leaf(node)]
for node, ax in zip(inner, axes.flat, strict=False):
    first, second = tree.children(node)
    difference = (taxonomy.means[first] - taxonomy.means[second]).reshape(8, 8)
    ax.imshow(difference, cmap="RdBu_r", vmin=-16, vmax=16)
    rows, columns = np.divmod([reason.feature for reason in taxonomy.reasons(first, 6)], 8)
    ax.scatter(columns, rows, s=60, facecolors="none", edgecolors="black", linewidths=1.2)
    ax.set_title(f"node {node} to {first} or {second}", fontsize=9)
    ax.set_axis_off()

# %%
# Borderline images
# -----------------
# The images closest to a boundary.

figure, axes = plt.subplots(1, 10, figsize=(9.5, 1.3), layout="constrained")
for ax, example in zip(axes, why.examples(0, 10)["borderline"], strict=True):
    ax.imshow(images[example["row"]], cmap="gray_r")
    ax.set_title(f"a {digit[example['row']]}", fontsize=9)
    ax.set_axis_off()
plt.show()

# %%
# Comparison with the digits
# --------------------------
# For the training rows:

print({name: round(value, 2) for name, value in tree_scores(taxonomy, digit).items()})
pd.crosstab(tree.labels, digit, rownames=["leaf"], colnames=["digit"])

# %%
# Conclusions
# -----------
# - Most leaves are one digit. Fives and sevens have two leaves each, for two ways of writing
#   them.
# - Eights share a leaf with ones, and another with nines; more leaves would separate them.
# - For photographs, use features of a neural network instead of pixels; :doc:`/rules` has such
#   data.
