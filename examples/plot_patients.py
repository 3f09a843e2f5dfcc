"""
Patients: numbers and categories
================================

442 patients with diabetes: age, blood pressure, six blood values, and two categorical columns,
which are one-hot encoded.
"""

# %%
# The table
# ---------
# It comes with scikit-learn, where sex is coded as 1 and 2. We make it a category, and divide
# the body mass index into the usual three classes.

import warnings

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_diabetes

from taxarbor import TableEncoder, Taxarbor
from taxarbor.plot import plot_tree

NAMES = {"bp": "blood pressure", "s1": "cholesterol", "s2": "LDL", "s3": "HDL"}
NAMES |= {"s4": "cholesterol/HDL", "s5": "log triglycerides", "s6": "blood sugar"}
diabetes = load_diabetes(as_frame=True, scaled=False)
patients = diabetes.data.rename(columns=NAMES)
patients["sex"] = patients["sex"].map({1.0: "sex 1", 2.0: "sex 2"})
CLASSES = ["normal", "overweight", "obese"]
patients["weight"] = pd.cut(patients.pop("bmi"), [0, 25, 30, 100], labels=CLASSES)
patients.head()

# %%
# Fit
# ---
# Text with few values and columns of type category are one-hot encoded, and scaled as in
# factor analysis of mixed data, so that each column has variance 1.

model = Taxarbor(n_clusters=6, encoder=TableEncoder(), random_state=0).fit(patients)
taxonomy, tree = model.taxonomy_, model.taxonomy_.tree
print(*taxonomy.columns.notes, sep="\n")
print(taxonomy)

# %%
# The same as a plot:

ax = plot_tree(taxonomy)

# %%
# Each category is a feature, 1 or 0, so its mean is the share of the patients who have it.

names = [f"c{label}" for label in range(tree.n_leaves)]
means = pd.DataFrame(taxonomy.means[tree.leaves].T, taxonomy.feature_names, names)
means.assign(all=taxonomy.means[0]).round(2)

# %%
# Unknown categories
# ------------------
# A category that is not in the training data counts as a missing value, and a warning says so.

new = patients.head(2).astype({"weight": str})
new["weight"] = ["underweight", None]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(model.predict(new), caught[0].message)

# %%
# Comparison with the outcome
# ---------------------------
# The progression of the disease after a year was not used in the fit.

figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
axes.boxplot([diabetes.target[tree.labels == label] for label in range(tree.n_leaves)])
axes.set_xticklabels(names)
axes.set(xlabel="cluster", ylabel="progression after a year")
plt.show()

# %%
# Conclusions
# -----------
# - Do not encode categories as 1, 2, 3: that would make 3 farther from 1 than 2 is.
# - Name numeric codes, such as a region from 1 to 9, in
#   ``TableEncoder(categorical_features=["region"])``.
# - Clusters often follow a category. If it is not of interest, drop it:
#   ``patients.drop(columns="sex")``.
# - :doc:`/how_to/tables` has the same from a file, with an identifier and a date.
