"""
Outliers: cells that went wrong
===============================

569 tumours, 30 measurements of each, and in a dozen rows a comma has slipped by three places.
A few such cells outweigh the whole table. What becomes of them, and of the tree?
"""

# %%
# The table
# ---------
# The breast tumours of scikit-learn, with the mistakes put in.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import AgglomerativeClustering, BisectingKMeans
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from taxarbor import TableEncoder, Taxarbor
from taxarbor.plot import plot_tree

tumours = load_breast_cancer(as_frame=True)
table = tumours.data.copy()
rng = np.random.default_rng(0)
wrong = np.sort(rng.choice(len(table), 12, replace=False))
for row in wrong:
    table.iat[row, rng.integers(table.shape[1])] *= 1000
table.iloc[wrong].max(axis=1).round(0).tolist()

# %%
# Fit
# ---
# ``Taxarbor`` looks for rows that are far from all others, and alone, before it grows the tree.
# These outliers are excluded from the fit; then the rules route them like new rows. A small
# group that is far away stays.

model = Taxarbor(n_clusters=3, encoder=TableEncoder(), random_state=0).fit(table)
tree = model.hierarchy_
print(tree)

# %%
# Outliers have weight 0. All twelve wrong rows are among them.

apart = np.flatnonzero(tree.weights == 0)
print(f"{len(apart)} outliers: {apart.tolist()}")
print(f"found: {np.isin(wrong, apart).sum()} of {len(wrong)}")

# %%
# How far is far?
# ---------------
# ``outlier_score_`` says how far a row is from the nearest cluster, in units of how far that
# cluster's rows are on average: 1 is usual. The mistakes have hundreds; the next ones are real
# tumours that are like no others.

# sphinx_gallery_thumbnail_number = 1
figure, axes = plt.subplots(figsize=(6.5, 3.0), layout="constrained")
ranked = np.sort(model.outlier_score_)[::-1]
axes.semilogy(np.arange(1, 61), ranked[:60], ".", color="#05668d")
axes.set(xlabel="rows, the farthest first", ylabel="outlier score")
plt.show()

# %%
# Set noise apart
# ---------------
# With ``noise=0.05`` the twentieth of the rows that is farthest from every cluster gets the
# label -1, in ``labels_`` and in ``predict``, and is kept apart in the tree, on the page and in
# files.

quiet = Taxarbor(n_clusters=3, noise=0.05, encoder=TableEncoder(), random_state=0).fit(table)
print(quiet.hierarchy_)
print(f"noise: {len(quiet.hierarchy_.noise)} rows, all mistakes among them:", end=" ")
print(np.isin(wrong, quiet.hierarchy_.noise).all(), quiet.predict(table.iloc[wrong]))

# %%
# Beside methods that have no such step
# -------------------------------------
# The clusters of three methods, with the mistakes and without, against the diagnosis: the
# adjusted Rand index of the rows of the fit that have no mistake.

right = np.setdiff1d(np.arange(len(table)), wrong)
scale = StandardScaler()
methods = {
    "Taxarbor": Taxarbor(3, encoder=TableEncoder(), random_state=0),
    "bisecting k-means": BisectingKMeans(3, random_state=0),
    "Ward": AgglomerativeClustering(3),
}
scores = {}
for name, method in methods.items():
    for which, rows in (("without mistakes", tumours.data), ("with", table)):
        X = rows if name == "Taxarbor" else scale.fit_transform(rows)
        labels = method.fit_predict(X)[right]
        scores.setdefault(name, {})[which] = adjusted_rand_score(tumours.target[right], labels)
pd.DataFrame(scores).T.round(2)

# %%
# A picture
# ---------

drawn = plot_tree(tree, classes=np.array(tumours.target_names)[tumours.target])
plt.show()

# %%
# What to conclude
# ----------------
# - An outlier is not deleted: it has a label. Look at such rows: most are mistakes, and some
#   are discoveries.
# - A row is an outlier where it is several times as far out as nine in ten rows, and has fewer
#   than five others around it. A long tail loses its last rows only.
# - Many wrong values in one and the same column pass for a group: then the tree shows them, as
#   a small cluster with a strange mean.
# - :doc:`/gaps` measures outliers on a dozen sets.
