"""What does not depend on the results: how they were made and how to read them."""

SCALED = {
    "none": "as they are",
    "unit": "scaled to unit length, each row",
    "standard": "with columns of mean 0 and variance 1",
}

INTRODUCTION = """\
# Results

Written by `taxarbor bench`, not by hand: run it again rather than edit this page.

The experiment of *Hierarchical Maximum-Margin Clustering* (Zhou, Hwang, Schmidt, Sigal and
Mori, ICML 2015) on data that can be had: rows {scaling}, {rows}, {seeds} of every
method that is random. {n_jobs} fits, {hours} hours of one core. Commit {commits}; {machine};
one thread per fit, as many fits side by side as there were workers.

Two protocols stand side by side.

- **best**, the paper's: for every seed and every measure, the alpha and beta, each out of
  {strengths}, at which that very measure is highest. The labels choose,
  and for each measure anew. Methods without such parameters have one setting; k-means, HKM
  and HKM-D take the best of ten starts. HMMC has the paper's setting: greedy, from one start,
  raw strengths, children within a tenth of an equal share, one origin (the mean of all rows)
  for all nodes.
- **default**: what a user without labels gets, the estimator with only the number of clusters
  set. It is not one of those that *best* chooses from, and may be better: children of equal
  shares can cost more than the labels gain.

Numbers are percent, means over seeds ± their standard deviation. SP, PS: agreement of the
learned tree with the true one, by shortest paths and by shared paths. RI: Rand index of the
leaves. aSP, aPS, ARI, AMI: corrected for chance, 0 for shuffled rows and 100 for the truth.
DP: dendrogram purity. *SP shuffled*: the SP of the same tree when its rows are shuffled. KM:
k-means; SC: spectral; MMC: flat maximum-margin clustering; SL, AL, CL: single, average,
complete link; BKM: scikit-learn's bisecting k-means; HKM, HSC: top-down k-means and spectral
clustering, the most compact children first; HKM-D, HSC-D: the most scattered leaf first;
HMMC-G, -E, -1, -2: with group, exclusive, l1, squared l2 penalty; with two children, -G and
-1 are the same but for the scale of alpha, and by default the same. Seconds are of one fit; MB
is how much the process grew beyond what it had, so 0 where that was enough.
{lost}"""

HEIGHTS = """\
### What SP rewards

SP is one minus a mean squared error, and most pairs of rows are far apart in the true tree. A
tree whose leaves are far apart on average fits them well, whatever is in the leaves. So each
tree has an SP that it would have with its rows shuffled, known in closed form; the figure
shows the SP of every tree of the table against that. Trees on the diagonal know nothing of
the classes that SP could see. Where the first correlation below is near 1, how high a method
is on SP is decided by how far right it is, that is by the shape of the tree, rather than by
how far above the diagonal.

![SP of every tree, against the same tree with shuffled rows]({picture})

Correlations over the trees of all methods and settings; the mean SP of HMMC and its variants
by the height of the tree; and, of HMMC's trees with the best SP, the aSP, with the one that
trees of that shape would need to have the paper's SP:"""

CHECKS = """\
## What we aimed for, and what came out

The two AWA sets are the paper's images, with attributes learned anew and one kind of feature
less. VEHICLE and IMAGENET stand for other images of other classes (tiny_vehicle15 and
tiny_imagenet20, visual words; under their own names the same with features of a network), so
that there only the methods compare, not the numbers. Means are compared: a difference within
the spread is a tie. *Rows scaled*, below, has the first three lines on rows scaled in other
ways. The paper's seconds are of 2015, on other hardware."""

CLAIMS = """\
### What the paper says of its results

Claim by claim, protocol best unless it says otherwise, by the means. Where one holds on fewer
than all data sets, our results contradict the paper, on AWA, or did not find the same on
other data; the tables below have the evidence."""

DIFFERENCES = """\
### Far from the paper's numbers

Values that differ by five points or more. The stand-ins for VEHICLE and IMAGENET have 8,250
images in 15 classes and 11,000 in 20, the paper 26,624 and 28,957 in 20, so that SP, PS and RI
have other levels there."""

RANKS = """\
### Corrected for chance

HMMC, its place among all methods but its own variants, and the best of the others (or, where
HMMC is first, the second):"""

SCALINGS = """\
## Rows scaled

HMMC by the paper's protocol, beside the paper's numbers and HKM-D, on rows as they are (none),
of unit length (unit), and with columns of mean 0 and variance 1 (standard). The raw strengths
of the paper act on the scale of the rows, and so the shape of the tree depends on it. Bold:
at least the paper's."""

SWEEP = """\
## More clusters, more children per split

The paper's Figure 2, protocol best. Above: as many clusters as classes, half as many again,
twice as many, with two children per split. Below: two to five children per split, as many
clusters as classes; flat and bottom-up methods have no such choice. Two seeds, and one of
spectral clustering, which takes long and hardly depends on it."""

SPARSITY = """\
## Sparsity

The paper's Figure 3: the share of zeros among all weights of a tree, alpha = beta = 1,
paper's setting."""

TREE = """\
## A tree

The paper's Figure 4: the first four layers of a tree ({told}, seed 0; the setting that is
best by {measure}). In each node its number of rows, the three largest classes with their
counts, and the three features that decide its split, by the length of their weights. No label
was seen in growing it, but for the choice of alpha and beta."""
