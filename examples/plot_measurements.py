"""
Wines: different units and missing values
=========================================

178 wines and 13 chemical measurements in different units, with a tenth of the values missing.
"""

# %%
# The table
# ---------
# scikit-learn's wines are complete, so values are removed at random. ``wine.target`` is one of
# three growers and is not used in the fit.

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from taxarbor import TableEncoder, Taxarbor
from taxarbor.explain import explain
from taxarbor.plot import plot_tree

wine = load_wine(as_frame=True)
rng = np.random.default_rng(0)
table = wine.data.rename(columns={"od280/od315_of_diluted_wines": "od280/od315"})
table = table.mask(rng.random(table.shape) < 0.1)
table.head().round(2)

# %%
# Fit
# ---
# The data frame needs no preprocessing. With an explicit encoder the notes are in the
# taxonomy; ``Taxarbor(3).fit(table)`` gives them in a warning.

model = Taxarbor(n_clusters=3, encoder=TableEncoder(), random_state=0).fit(table)
taxonomy, tree = model.taxonomy_, model.taxonomy_.tree
print(*taxonomy.columns.notes, sep="\n")

# %%
# Columns are standardized, as otherwise proline alone would decide; the taxonomy is in the
# units of the table. Missing values are imputed by the column mean.

print(taxonomy)

# %%
# Read the clusters
# -----------------
# The means of the clusters, in the units of the table:

names = [f"c{label}" for label in range(tree.n_leaves)]
means = pd.DataFrame(taxonomy.means[tree.leaves].T, taxonomy.feature_names, names)
means.assign(all=taxonomy.means[0]).round(2)

# %%
# ``missing`` has the share of missing values by node and column:

columns = [column.name for column in taxonomy.columns]
pd.DataFrame(taxonomy.missing[tree.leaves].T, columns, names).map("{:.0%}".format)

# %%
# Distinctive features of the clusters, and a plot with the growers as bars:

why = explain(model, table)
for name, leaf in zip(names, tree.leaves, strict=True):
    print(f"{name}: {', '.join(one['words'] for one in why.distinctive_features(leaf, 4))}")
ax = plot_tree(taxonomy, classes=np.array(wine.target_names)[wine.target])

# %%
# What missing values cost
# ------------------------
# Only one wine in four has no missing value. Compared with a fit to the complete table, for
# the training rows:

whole = Taxarbor(n_clusters=3, encoder=TableEncoder(), random_state=0).fit(wine.data)
print(f"complete rows: {table.notna().all(axis=1).sum()} of {len(table)}")
for which, one in (("with missing values", tree), ("complete", whole.taxonomy_.tree)):
    score = adjusted_rand_score(wine.target, one.labels)
    print(f"ARI with the growers, {which}: {score:.2f}")

# %%
# A new wine
# ----------
# New rows may have missing values, too:

model.predict(table.head(3).assign(proline=np.nan))

# %%
# Conclusions
# -----------
# - Nothing needs to be imputed, scaled or dropped before the fit.
# - :doc:`/robustness` measures what missing values cost. Where columns are correlated, as
#   here, ``KNNImputer`` before the fit may keep more of the clusters.
# - If missingness is informative, such as a test that was not done, add a boolean column for
#   it.
