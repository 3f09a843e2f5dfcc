"""
Plots of a tree
===============

The functions of ``taxarbor.plot`` draw on the given axes, or on a new figure, and return the
axes.
"""

# %%
# A tree
# ------

import matplotlib.pyplot as plt
import pandas as pd

from taxarbor import Taxarbor, load_animals
from taxarbor.metrics import ClassTree
from taxarbor.plot import plot_dendrogram, plot_stability, plot_tree
from taxarbor.stability import assess

animals = load_animals()
X = pd.DataFrame(animals.X / animals.X.max(axis=0), animals.names, animals.feature_names)
model = Taxarbor(n_clusters=10, random_state=0).fit(X)
taxonomy = model.taxonomy_
classes = ClassTree.read(animals.tree).ancestors_of(animals.names, 2)

# %%
# Boxes
# -----
# In ``plot_tree`` each box has the number of rows and the features that lead to them.
# ``classes`` adds bars of known classes, and ``describe`` replaces the text.

ax = plot_tree(taxonomy, max_depth=3, classes=classes)

# %%
# Stability
# ---------
# After ``assess``, nodes that are not recovered in refits are drawn in pale colors.

assessed = assess(model, X, random_state=0)
ax = plot_tree(assessed)

# %%
# ``plot_stability`` shows the stability of each number of clusters, and that of data without
# clusters.

ax = plot_stability(assessed)

# %%
# Dendrogram
# ----------
# A vertical line across ``plot_dendrogram`` shows the clusters of a ``cut``.

ax = plot_dendrogram(taxonomy)
plt.show()

# %%
# Report
# ------
# :func:`taxarbor.report.report` writes an interactive HTML file; see :doc:`/how_to/report`.
