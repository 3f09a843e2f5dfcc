"""
Customers: segments that can be explained
=========================================

A table of customers, made up so that we know what is in it. The columns are in different
units, some are skewed, and one is a yes or no. What to do with these before the fit decides
what comes out.
"""

# %%
# The table
# ---------
# 1,200 customers of five kinds. The tree will not see the kinds.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from taxarbor import Taxarbor
from taxarbor.metrics import adjusted_rand_score
from taxarbor.plot import plot_tree

KINDS = ["bargain hunter", "regular", "occasional", "business", "newcomer"]
rng = np.random.default_rng(0)
n = 1200
kind = rng.choice(5, n, p=[0.25, 0.2, 0.3, 0.1, 0.15])


def of(*values):
    """Return one value per customer, by kind."""
    return np.array(values)[kind]


customers = pd.DataFrame(
    {
        "orders per year": rng.poisson(of(14, 24, 4, 30, 3)),
        "basket value": rng.gamma(8, of(3, 7, 6, 45, 6)),
        "discount share": rng.beta(of(8, 2, 2, 1, 4), of(3, 8, 6, 12, 5)),
        "returns share": rng.beta(2, of(10, 20, 12, 40, 8)),
        "days since last order": rng.exponential(of(25, 10, 120, 12, 20)),
        "years as customer": rng.gamma(2, of(1.5, 3.5, 2, 2.5, 0.15)),
        "visits per order": rng.gamma(4, of(4, 1, 2, 0.6, 3)),
        "newsletter": rng.random(n) < of(0.9, 0.6, 0.2, 0.1, 0.5),
        "mobile share": rng.beta(of(4, 3, 2, 1, 6), of(3, 3, 3, 8, 2)),
    }
)
customers.describe().loc[["mean", "std", "max"]].round(2)

# %%
# Scale first
# -----------
# Basket values vary by a hundred and shares by a tenth, so unscaled the tree would see baskets
# only. ``StandardScaler`` gives every column the same weight; ``set_output`` keeps the names.

scale = StandardScaler().set_output(transform="pandas")
plain = Taxarbor(n_clusters=5, random_state=0).fit(scale.fit_transform(customers))
print(plain.hierarchy_)

# %%
# Two of the four splits turn on the newsletter, though it says little about customers: a column
# of zeros and ones has its two values far apart, while a skewed column has most of its values
# close together. Logarithms undo the skew.

SKEWED = [
    "orders per year",
    "basket value",
    "days since last order",
    "years as customer",
    "visits per order",
]


def unskew(table):
    """Return the table with logarithms of the columns that have a long tail."""
    return table.assign(**{name: np.log1p(table[name]) for name in SKEWED})


pipeline = make_pipeline(
    FunctionTransformer(unskew),
    StandardScaler().set_output(transform="pandas"),
    Taxarbor(n_clusters=5, random_state=0),
).fit(customers)
tree = pipeline[-1].hierarchy_
print(tree)

# %%
# Read the segments
# -----------------
# The same in a picture, with the kinds, which we know, as bars.

drawn = plot_tree(tree, classes=np.array(KINDS)[kind])

# %%
# The means of each segment, in the units of the table, are what one would show to others.

segments = customers.groupby(tree.labels).mean().round(2)
segments.insert(0, "customers", np.bincount(tree.labels))
segments.rename_axis("segment").transpose()

# %%
# How far each segment lies from the average customer, in standard deviations:

# sphinx_gallery_thumbnail_number = 2
level = pipeline[:-1].transform(customers).groupby(tree.labels).mean()
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
image = axes.imshow(level.T, cmap="RdBu_r", vmin=-1.8, vmax=1.8, aspect="auto")
axes.set_xticks(range(len(level)), [f"segment {label}" for label in level.index])
axes.set_yticks(range(level.shape[1]), level.columns)
figure.colorbar(image, label="standard deviations")
plt.show()

# %%
# Was it right?
# -------------
# Here we know the kinds.

for name, labels in (("scaled", plain.hierarchy_), ("logarithms, then scaled", tree)):
    print(f"ARI, {name}: {adjusted_rand_score(labels, kind):.2f}")
pd.crosstab(tree.labels, np.array(KINDS)[kind], rownames=["segment"], colnames=["kind"])

# %%
# Tomorrow's customers
# --------------------
# The pipeline scales new rows as it scaled the old ones, and puts them into the segments.

new = customers.sample(3, random_state=1).assign(**{"basket value": [25.0, 60.0, 400.0]})
new.assign(segment=pipeline.predict(new)).transpose()

# %%
# What to conclude
# ----------------
# - Give each column the same weight, and undo skew, before the fit. It mattered more here than
#   any setting of the tree.
# - A segment is a path of two or three conditions: that is what to write into a brief.
# - A split that uses one yes-or-no column is worth a second look: is it that column which
#   interests you?
