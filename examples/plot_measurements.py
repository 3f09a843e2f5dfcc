"""
Wines: different units and missing values
=========================================

178 wines and 13 chemical measurements. One column runs to 1,680 and another stays below 1, and
a tenth of the values is missing: a table as laboratories have it.
"""

# %%
# The table
# ---------
# scikit-learn's wines are complete, so we remove values at random. ``wine.target`` says which
# of three growers a wine is from; the tree will not see it.

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
# A frame goes in as it is. ``Taxarbor(3).fit(table)`` does the same, and says in a warning what
# it did to the columns; with an encoder of one's own the notes are on the tree.

model = Taxarbor(n_clusters=3, encoder=TableEncoder(), random_state=0).fit(table)
tree = model.hierarchy_
print(*tree.encoding.notes, sep="\n")

# %%
# *Units.* Columns were standardized, as otherwise proline alone would decide. That happens
# inside the fit only: all that the tree says is in the units of the table.
#
# *Missing values* are imputed by the mean of their column, which pulls the wine to neither
# side.

print(tree)

# %%
# Read the clusters
# -----------------
# The means of the clusters, in the table's units, with missing values imputed.

names = [f"c{label}" for label in range(tree.n_leaves)]
means = pd.DataFrame(tree.means[tree.leaves].T, tree.feature_names, names)
means.assign(all=tree.means[0]).round(2)

# %%
# ``missing`` has the share of each node's wines without a value. Where it is large, the mean of
# that column says little.

columns = [column.name for column in tree.encoding.columns]
pd.DataFrame(tree.missing[tree.leaves].T, columns, names).map("{:.0%}".format)

# %%
# What stands out in a cluster against all other wines, and a picture, with the growers as bars.

why = explain(model, table)
for name, leaf in zip(names, tree.leaves, strict=True):
    print(f"{name}: {', '.join(one['words'] for one in why.standout(leaf, 4))}")
drawn = plot_tree(tree, classes=np.array(wine.target_names)[wine.target])

# %%
# What missing values cost
# ------------------------
# Only one wine in four has all of its values: to drop the others would leave few. Beside the
# fit of the complete table, for the rows of the fit:

whole = Taxarbor(n_clusters=3, encoder=TableEncoder(), random_state=0).fit(wine.data)
print(f"complete rows: {table.notna().all(axis=1).sum()} of {len(table)}")
for which, one in (("with missing values", tree), ("complete", whole.hierarchy_)):
    score = adjusted_rand_score(wine.target, one.labels)
    print(f"ARI with the growers, {which}: {score:.2f}")

# %%
# A new wine
# ----------
# New rows may have missing values, too.

model.predict(table.head(3).assign(proline=np.nan))

# %%
# What to conclude
# ----------------
# - Nothing needs to be imputed, scaled or dropped before the fit.
# - :doc:`/gaps` measures what missing values cost on a dozen sets. Where columns are
#   correlated, as here, ``KNNImputer`` before the fit keeps more of the clusters once many
#   values are missing.
# - If it means something that a value is missing, such as a test that was not done for a
#   reason, add a column that says so: then rules may use it.
