"""
Cells: marker genes along a lineage
===================================

Counts shaped like those of single cells: most are zero, cells are read to different depths,
and a few genes tell each lineage from the rest. The tree should find the lineages, and its
rules should name the genes.
"""

# %%
# Counts
# ------
# 1,500 cells and 800 genes, made up. A cell has the marker genes of its type and of every
# lineage above it: a helper T cell those of *helper T*, of *T* and of *lymphoid*. All other
# genes differ between cells by chance only.

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from taxarbor import Taxarbor
from taxarbor.exchange import to_frame
from taxarbor.metrics import score_hierarchy
from taxarbor.plot import plot_tree

LINEAGE = {
    "helper T": ["lymphoid", "T"],
    "killer T": ["lymphoid", "T"],
    "B": ["lymphoid"],
    "monocyte": ["myeloid"],
    "dendritic": ["myeloid"],
    "red": [],
}
SHARE = [0.28, 0.2, 0.15, 0.2, 0.1, 0.07]
n_cells, n_genes = 1500, 800
rng = np.random.default_rng(0)
types = rng.choice(list(LINEAGE), n_cells, p=SHARE)

rate = np.tile(rng.gamma(0.6, 0.8, n_genes), (n_cells, 1))
genes = np.array([f"gene {j}" for j in range(n_genes)], dtype=object)
free = list(rng.permutation(n_genes))
for name in ["lymphoid", "myeloid", "T", *LINEAGE]:
    markers = [free.pop() for _ in range(6)]
    genes[markers] = [f"{name} {letter}" for letter in "abcdef"]
    has_them = np.array([name == kind or name in LINEAGE[kind] for kind in types])
    rate[np.ix_(has_them, markers)] += 3.0

depth = rng.lognormal(0.0, 0.4, (n_cells, 1))
counts = rng.poisson(rate * depth * rng.gamma(3.0, 1 / 3, rate.shape))
print(f"{(counts == 0).mean():.0%} of the counts are zero")

# %%
# Normalise
# ---------
# As usual for such data: counts per cell to a common sum, then logarithms. Without the first
# step the tree would divide cells by how deeply they were read.

X = pd.DataFrame(np.log1p(1e3 * counts / counts.sum(axis=1, keepdims=True)), columns=genes)

# %%
# Six clusters
# ------------

model = Taxarbor(n_clusters=6, random_state=0).fit(X)
tree = model.hierarchy_
print(tree.to_text(n_top=4))

# %%
# The names of the genes tell the story: the first split turns on lymphoid markers, the next
# ones on those of single types. Each rule has one to six of the 800 genes, all of them markers.

used = sorted({genes[j] for rule in tree.rules if rule for j in rule.features})
print(fill(f"{len(used)} genes in all rules: {', '.join(used)}", 90))

# %%
# Here we know the types:

pd.crosstab(tree.labels, types, rownames=["leaf"], colnames=["type"])

# %%
# How many clusters?
# ------------------
# Without labels, the rules themselves give a hint. A split between real clusters is reproduced
# by few genes. A split through the middle of one needs many, as nothing in particular tells its
# two sides apart.

large = Taxarbor(n_clusters=10, random_state=0).fit(X).hierarchy_
frame = to_frame(large).set_index("node")
splits = frame[~frame.is_leaf]
first_child = [large.children(node)[0] for node in splits.index]
splits = splits.assign(clusters=large.birth[first_child] + 1).sort_values("clusters")
splits = splits[["clusters", "n_rows", "n_features_used", "fidelity"]]
splits.round(3)

# %%

figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
axes.bar(splits.clusters, splits.n_features_used, color="#05668d")
axes.set(xlabel="number of clusters after the split", ylabel="genes in its rule")
axes.set_xticks(splits.clusters)
plt.show()

# %%
# Five splits, into six clusters, take a few genes each; those after them take fifty or more. So
# we keep six, and no refit is needed: ``prune`` undoes the later splits.

six = large.prune(6)
drawn = plot_tree(six, classes=types)

# %%

scores = score_hierarchy(six, types)
print({name: round(value, 2) for name, value in scores.items()})

# %%
# What to conclude
# ----------------
# - The tree found the lineages, B cells apart before T cells are divided, and named their
#   markers, though it was given all 800 genes.
# - Rules that suddenly need many features are a sign that the tree divides noise. It is a sign,
#   not a test: on real data the step is seldom as clear as here.
# - For real blood cells see the column *pbmc68k_reduced* of :doc:`/defaults`.
