"""
Pictures: one tree, two ways
============================

Two pictures of ``taxarbor.plot``, all of one small tree, and when to use which. Every
function draws on the axes that you pass, or on a new figure, and returns what it drew.
"""

# %%
# A tree
# ------

import matplotlib.pyplot as plt
import pandas as pd

from taxarbor import Taxarbor, load_animals
from taxarbor.metrics import ClassTree
from taxarbor.plot import plot_dendrogram, plot_tree
from taxarbor.trust import assess

animals = load_animals()
X = pd.DataFrame(animals.X / animals.X.max(axis=0), animals.names, animals.feature_names)
model = Taxarbor(n_clusters=10, random_state=0).fit(X)
tree = model.hierarchy_
classes = ClassTree.read(animals.tree).ancestors_of(animals.names, 2)

# %%
# Boxes
# -----
# ``plot_tree`` is for reading: each box says how many rows there are and what leads to them.
# With ``classes`` it shows what is inside, with ``images`` examples; ``describe`` writes the
# text.

drawn = plot_tree(tree, max_depth=3, classes=classes)

# %%
# What to trust
# -------------
# Of a tree that was assessed, the nodes that are not stable are drawn in pale colours: fitted
# to other rows, the model does not find them again.

drawn = plot_tree(assess(model, X, random_state=0))

# %%
# Dendrogram
# ----------
# ``plot_dendrogram`` is for choosing a cut: a line across it shows the clusters that ``cut``
# returns.

drawn = plot_dendrogram(tree)
plt.show()

# %%
# And a page
# ----------
# :func:`taxarbor.report.report` writes one HTML file with the tree, its reasons and its rows,
# to be looked at in a browser, without a network. Large trees open there as an icicle, in
# which each node is as high as its share of the rows.
