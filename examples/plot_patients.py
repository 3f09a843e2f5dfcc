"""
Patients: numbers and categories
================================

442 patients with diabetes: age, blood pressure, six blood values, and two columns of words.
Categories take part in the tree beside numbers, and rules name their values.
"""

# %%
# The table
# ---------
# It comes with scikit-learn. Sex is coded there as 1 and 2, without saying which is which; a
# code is no quantity, so we make it a word. Of the body mass index we take the usual three
# classes, as questionnaires often have them.

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
# Text of few values and columns of type category are categories. They are encoded as in factor
# analysis of mixed data, in which rare values are farther apart than common ones, and each
# column, of numbers or of words, has variance 1.

model = Taxarbor(n_clusters=6, encoder=TableEncoder(), random_state=0).fit(patients)
tree = model.hierarchy_
print(*tree.encoding.notes, sep="\n")
print(tree)

# %%
# The same in a picture.

drawn = plot_tree(tree)

# %%
# Each value is a feature of the tree, 1 where it holds and 0 where not. So the mean of such a
# feature is the share of the patients who have it.

names = [f"c{label}" for label in range(tree.n_leaves)]
means = pd.DataFrame(tree.means[tree.leaves].T, tree.feature_names, names)
means.assign(all=tree.means[0]).round(2)

# %%
# A category that was not seen
# ----------------------------
# A category that was not seen in the fit counts as a missing value: the other columns decide.

new = patients.head(2).astype({"weight": str})
new["weight"] = ["underweight", None]
model.predict(new)

# %%
# Is it of use?
# -------------
# The data have what the tree did not see: how far the disease has progressed a year later.

figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
axes.boxplot([diabetes.target[tree.labels == label] for label in range(tree.n_leaves)])
axes.set_xticklabels(names)
axes.set(xlabel="cluster", ylabel="progression after a year")
plt.show()

# %%
# What to conclude
# ----------------
# - Leave categories as words. To code them as 1, 2, 3 would say that 3 is farther from 1 than
#   2 is.
# - A number of few values that is a code, such as a region from 1 to 9, can be named in
#   ``TableEncoder(categorical_features=["region"])``.
# - A category divides rows sharply, so that clusters often follow it. If it is not of interest,
#   leave it out: ``patients.drop(columns="sex")``.
# - :doc:`/how_to/tables` has the same from a file, with an identifier and a date, by one
#   command.
