"""
A survey: rows that stand for many
==================================

Surveys ask too many of some people and too few of others, and give each answer a weight that
makes up for it. Here 152 vertebrates were chosen by what people know: half are mammals, though
few vertebrates are. Weights say how many species each one stands for.
"""

# %%
# The sample, and what it stands for
# ----------------------------------
# The bundled animals, as far as they have a backbone. The numbers of living species are round.

import matplotlib.pyplot as plt
import pandas as pd

from taxarbor import Taxarbor, load_animals
from taxarbor.explain import explain
from taxarbor.metrics import ClassTree
from taxarbor.plot import plot_tree

SPECIES = {
    "mammals": 6_500,
    "birds": 11_000,
    "reptiles": 12_000,
    "amphibians": 8_700,
    "fish": 36_000,
}
animals = load_animals()
X = pd.DataFrame(animals.X / animals.X.max(axis=0), animals.names, animals.feature_names)
kind = pd.Series(ClassTree.read(animals.tree).ancestors_of(animals.names, 2), animals.names)
kind = kind[kind.isin(SPECIES)]
X = X.loc[kind.index]
asked = kind.value_counts()
weight = kind.map(SPECIES) / kind.map(asked)
survey = pd.DataFrame({"in the sample": asked, "species": pd.Series(SPECIES)})
survey.assign(weight=(survey["species"] / survey["in the sample"]).round())

# %%
# Without weights
# ---------------

plain = Taxarbor(n_clusters=5, random_state=0).fit(X)
print(plain.hierarchy_)

# %%
# With weights
# ------------
# ``sample_weight`` is what each row counts for: a weight of 2 is as good as the same row twice,
# and 0 leaves a row out of the fit. It is still labelled.

model = Taxarbor(n_clusters=5, random_state=0).fit(X, sample_weight=weight)
tree = model.hierarchy_
print(tree)

# %%
# Five clusters, and what is in them. Unweighted, two of the five go to mammals. Weighted, all
# mammals are one cluster, and reptiles and amphibians are divided.

counts = [
    pd.crosstab(one.labels, kind.to_numpy(), rownames=["cluster"], colnames=[name])
    for name, one in (("without", plain.hierarchy_), ("with weights", tree))
]
counts[0]

# %%

counts[1]

# %%
# All that is counted is weighed
# ------------------------------
# ``node_weights`` are what the rows of each node stand for, and means are weighted.

share = tree.node_weights / tree.node_weights[0]
why = explain(model, X)
for label, leaf in enumerate(tree.leaves):
    words = ", ".join(one["words"] for one in why.standout(leaf, 3))
    size = f"{len(tree.rows(leaf))} animals, {share[leaf]:.0%} of all species"
    print(f"c{label}: {size}: {words}")

# %%
# Pictures show the rows themselves.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.0), layout="constrained")
for ax, one, title in zip(axes, (plain.hierarchy_, tree), ("without", "with"), strict=True):
    plot_tree(one, ax=ax, classes=kind.to_numpy())
    ax.set_title(f"{title} weights")
plt.show()

# %%
# What to conclude
# ----------------
# - Bounds on sizes, such as ``min_leaf_size``, count weights as well: a cluster of few rows may
#   stand for many.
# - Weights do not make rows more certain. Eight amphibians stand for 8,700 species here, and
#   what is particular to one of them looks like a thousand.
# - The measures of :mod:`taxarbor.metrics` take ``sample_weight``, too.
