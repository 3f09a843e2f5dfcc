"""
Survey: sample weights
======================

Half of these 152 vertebrates are mammals, though few species are. Sample weights correct for
that: the weight of a row is the number of species that it represents.
"""

# %%
# The data
# --------
# The vertebrates among the bundled animals, with approximate numbers of living species.

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
X = X.loc[:, X.nunique() > 1]
asked = kind.value_counts()
weight = kind.map(SPECIES) / kind.map(asked)
survey = pd.DataFrame({"in the sample": asked, "species": pd.Series(SPECIES)})
survey.assign(weight=(survey["species"] / survey["in the sample"]).round())

# %%
# Without weights
# ---------------

plain = Taxarbor(n_clusters=5, random_state=0).fit(X)
print(plain.taxonomy_)

# %%
# With weights
# ------------
# Integer weights are equivalent to repeating rows. Rows of weight 0 are excluded from the fit
# and still labelled.

model = Taxarbor(n_clusters=5, random_state=0).fit(X, sample_weight=weight)
taxonomy, tree = model.taxonomy_, model.taxonomy_.tree
print(taxonomy)

# %%
# Without weights, two of the five clusters are mammals. With weights, all mammals are one
# cluster, and reptiles and amphibians are separated.

counts = [
    pd.crosstab(one.labels, kind.to_numpy(), rownames=["cluster"], colnames=[name])
    for name, one in (("without", plain.taxonomy_.tree), ("with weights", tree))
]
counts[0]

# %%

counts[1]

# %%
# Weighted sizes
# --------------
# ``node_weights`` are the sums of weights by node. Means are weighted, too.

share = tree.node_weights / tree.node_weights[0]
why = explain(model, X)
for label, leaf in enumerate(tree.leaves):
    words = ", ".join(one["words"] for one in why.distinctive_features(leaf, 3))
    size = f"{len(tree.rows(leaf))} animals, {share[leaf]:.0%} of all species"
    print(f"c{label}: {size}: {words}")

# %%
# Plots show the rows without weights.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.0), layout="constrained")
for ax, one, title in zip(axes, (plain.taxonomy_, taxonomy), ("without", "with"), strict=True):
    plot_tree(one, ax=ax, classes=kind.to_numpy())
    ax.set_title(f"{title} weights")
plt.show()

# %%
# Conclusions
# -----------
# - Bounds on sizes, such as ``min_leaf_size``, count weights.
# - Weights do not make rows more certain: eight amphibians represent 8,700 species here.
