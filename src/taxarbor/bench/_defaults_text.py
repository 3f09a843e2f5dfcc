"""What does not depend on the results, of the page on the defaults."""

INTRODUCTION = """\
# Why the defaults are what they are

Written by `taxarbor bench defaults`, not by hand: run it again rather than edit this page.

HMMC as it comes, beside other methods as they come and beside itself with one choice made
otherwise: rows {scaling}, {rows}, as many clusters as classes unless it says otherwise,
{seeds} of every method that is random. No method saw a label. {n_jobs} fits, {hours} hours of
one core. Commit {commits}; {machine}. Seconds are of one thread, with two fits side by side
(`--n-jobs` unless changed): they compare with each other, and a fit alone may be faster.

Numbers are points, that is percent: means over seeds ± their standard deviation. aSP, aPS:
agreement of the learned tree with the true one, by shortest paths and by shared paths; ARI,
AMI: of the leaves with the classes; all four corrected for chance, 0 for shuffled rows and 100
for the truth. DP: dendrogram purity. A mean over data sets has a dash where a data set is
missing. Ward, AL: SciPy's Ward and average link; HKM, HKM-D: top-down k-means, the most compact
children or the most scattered leaf first; BKM: scikit-learn's bisecting k-means; KM+Ward:
k-means with ten times as many centres as clusters, a third of the rows at most, then Ward's
method on the centres.

The defaults were chosen by tables like these, of the shared data sets (awa, tiny, wordnet,
pbmc), so that the labels of those had a say in them: on other data they may do worse.
{lost}"""

SUMMARY = """\
## In short"""

MEANS = """\
## Means over data sets

The same weight for each data set; measures of trees over those with a true tree. Seconds are
means over data sets of the median fit."""

EVERYWHERE = """\
## Every data set

The highest mean of each column in bold."""

GROUPS = """\
## One choice at a time

The default is the first line of each table. In brackets: the difference to it, of the mean
over data sets. Then aSP and ARI on each data set, the highest in bold; a difference within the
spread is a tie."""

READABILITY = """\
## How the rules read

Means over seeds, of the trees of HMMC: how many features the rule of a split uses, of how many
there are; its fidelity, the share of a node's rows that it sends to their own child; and the
share of its features that the rule of its parent uses too."""

SPARSER = """\
On one data set, with the rules sought otherwise; the tree is the same:"""
