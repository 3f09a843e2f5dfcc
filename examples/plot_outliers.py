"""
Outliers: wrong values in a table
=================================

569 tumours with 30 measurements each. In twelve rows one value is a thousand times too large.
"""

# %%
# The table
# ---------
# The breast cancer data of scikit-learn, with errors added.

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
# ``Taxarbor`` excludes isolated rows that are far from all others, and then routes them like
# new rows. Small groups are kept.

model = Taxarbor(n_clusters=3, encoder=TableEncoder(), random_state=0).fit(table)
taxonomy, tree = model.taxonomy_, model.taxonomy_.tree
print(taxonomy)

# %%
# Outliers have weight 0. All twelve wrong rows are among them.

outliers = np.flatnonzero(tree.weights == 0)
print(f"{len(outliers)} outliers: {outliers.tolist()}")
print(f"found: {np.isin(wrong, outliers).sum()} of {len(wrong)}")

# %%
# Outlier scores
# --------------
# ``outlier_score_`` is the distance of a row from the nearest cluster, divided by the mean
# distance of that cluster's rows: 1 is usual. The errors have scores in the hundreds; the next
# ones are unusual tumours.

# sphinx_gallery_thumbnail_number = 1
figure, axes = plt.subplots(figsize=(6.5, 3.0), layout="constrained")
ranked = np.sort(model.outlier_score_)[::-1]
axes.semilogy(np.arange(1, 61), ranked[:60], ".", color="#05668d")
axes.set(xlabel="rows, by score", ylabel="outlier score")
plt.show()

# %%
# Label noise
# -----------
# With ``noise=0.05`` the 5 % of the rows with the highest scores have the label -1, in
# ``labels_`` and in ``predict``, and are in no cluster.

quiet = Taxarbor(n_clusters=3, noise=0.05, encoder=TableEncoder(), random_state=0).fit(table)
noise = quiet.taxonomy_.tree.noise
print(quiet.taxonomy_)
print(f"noise: {len(noise)} rows, all errors among them:", end=" ")
print(np.isin(wrong, noise).all(), quiet.predict(table.iloc[wrong]))

# %%
# Comparison
# ----------
# The adjusted Rand index with the diagnosis, for three methods, with and without the errors,
# on the training rows without errors.

right = np.setdiff1d(np.arange(len(table)), wrong)
scale = StandardScaler()
methods = {
    "Taxarbor": Taxarbor(3, encoder=TableEncoder(), random_state=0),
    "bisecting k-means": BisectingKMeans(3, random_state=0),
    "Ward": AgglomerativeClustering(3),
}
scores = {}
for name, method in methods.items():
    for which, rows in (("without errors", tumours.data), ("with errors", table)):
        X = rows if name == "Taxarbor" else scale.fit_transform(rows)
        labels = method.fit_predict(X)[right]
        scores.setdefault(name, {})[which] = adjusted_rand_score(tumours.target[right], labels)
pd.DataFrame(scores).T.round(2)

# %%
# A plot
# ------

ax = plot_tree(taxonomy, classes=np.array(tumours.target_names)[tumours.target])
plt.show()

# %%
# Conclusions
# -----------
# - An outlier is not deleted: it has a label. Inspect such rows.
# - Many wrong values in the same column form a group and are not excluded; the tree shows them
#   as a small cluster with an unusual mean.
# - :doc:`/robustness` measures the effect of outliers on more data.
