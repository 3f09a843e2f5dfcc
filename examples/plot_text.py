"""
Headlines: topics from short texts
==================================

Eighty short headlines as a sparse matrix of words. The rules use these words.
"""

# %%
# The texts
# ---------
# They were written for this example, sixteen for each of five topics. The topics are not used
# in the fit.

from textwrap import wrap

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

from taxarbor import TableEncoder, Taxarbor
from taxarbor.explain import explain
from taxarbor.plot import plot_tree

TOPICS = {
    "baking": """
        bread dough needs a warm oven and time
        flour, water and salt make a simple bread dough
        why the dough for rye bread must rest
        a hot oven gives bread a crisp crust
        butter and sugar for a light cake
        bake the cake in a moderate oven
        how much sugar does a cake need
        flour and butter for a short crust
        yeast makes the dough rise
        a cake without flour and without butter
        let the bread cool before you cut the crust
        knead the dough, then shape the bread
        old yeast, heavy bread
        sugar feeds the yeast in the dough
        an oven for bread and cake
        salt in the dough, butter on the bread""",
    "sky": """
        a new telescope looks for a distant planet
        the moon hides a planet tonight
        astronomers find a planet around a nearby star
        a star explodes and a telescope watches
        the orbit of the moon explained
        how a telescope weighs a star
        a comet crosses the orbit of the planet
        the comet will be visible after the moon sets
        a ring of dust around a young star
        the planet with the strange orbit
        one telescope, a thousand galaxies
        galaxies collide and a star is born
        dust on the moon troubles astronomers
        astronomers map the dust between galaxies
        the tail of the comet points away from the sun
        two moons and one sun in orbit""",
    "football": """
        late goal wins the match for the home team
        the team lost the match and the coach
        a young player scores his first goal
        coach praises the team after the match
        the player left the pitch after a foul
        no goal in the second half of the match
        a foul, a penalty, a goal
        the goalkeeper saves a penalty in the final
        team reaches the final after extra time
        the coach wants a new goalkeeper
        fans cheer the team on the way to the final
        a player and a coach argue on the pitch
        the league starts with a goal after a minute
        penalty decides the match in the league
        the goalkeeper scores a goal
        home fans wait for a goal in the league""",
    "garden": """
        plant the seeds in spring in good soil
        water the roses in the morning
        tomato plants need sun and soil
        when to prune roses in the garden
        compost makes poor soil rich
        snails in the garden eat young plants
        a garden without weeds
        dig the soil before you plant the seeds
        seeds for a small garden
        roses like compost and sun
        pull the weeds before they make seeds
        a hedge around the garden
        prune the hedge in autumn
        plants for a garden with dry soil
        compost for tomato and roses
        weeds grow where soil is bare""",
    "computers": """
        a new chip makes the computer faster
        update the software before the weekend
        a bug in the software stops the network
        how the program uses the memory of the computer
        programmers find a bug in an old program
        the chip needs less memory and less power
        a virus spreads through the network
        the network was slow because of a bug
        write a program that sorts data
        the software stores data on a server
        a server without memory for the data
        programmers test the software on a new chip
        the computer that beats programmers
        data moves from the server to the network
        an update of the program repairs the bug
        software and data in one computer""",
}
titles = [line.strip() for texts in TOPICS.values() for line in texts.strip().splitlines()]
topic = np.repeat(list(TOPICS), [16] * len(TOPICS))
print(len(titles), "headlines, such as:", titles[0])

# %%
# Words as columns
# ----------------
# :class:`~sklearn.feature_extraction.text.TfidfVectorizer` returns a CSR matrix, which is
# never made dense. Rows are scaled to unit length by ``metric="cosine"`` below.

vectorizer = TfidfVectorizer(stop_words="english", min_df=2, norm=None)
X = vectorizer.fit_transform(titles)
print(type(X).__name__, X.shape, f"{X.nnz / np.prod(X.shape):.1%} of the cells nonzero")

# %%
# The tree
# --------
# A sparse matrix has no column names; ``rename_features`` adds the words. One rule chooses
# among all clusters. It needs many words, as each headline has only a few; those with the
# largest share come first.

cosine = TableEncoder(metric="cosine")
model = Taxarbor(n_clusters=5, encoder=cosine, random_state=0).fit(X)
taxonomy = model.taxonomy_.rename_features(vectorizer.get_feature_names_out())
tree = taxonomy.tree
print(taxonomy)

# %%
# A plot
# ------
# Each box has the number of headlines and the words that lead into it. Leaves also show their
# most typical headline, the one nearest to the mean.

why = explain(taxonomy, X, row_names=titles)


def describe(node):
    """Return the size, then the words of the rule, then one headline for a leaf."""
    lines = [f"{len(tree.rows(node))} headlines", *map(str, taxonomy.reasons(node, 4))]
    if tree.is_leaf(node):
        headline = why.examples(node, 1)["typical"][0]["name"]
        lines += wrap(headline, 24)
    return lines


ax = plot_tree(taxonomy, describe=describe)

# %%
# The distinctive words of a leaf, compared with all headlines:

for label, leaf in enumerate(tree.leaves):
    words = [one["feature"] for one in why.distinctive_features(leaf, 6)]
    print(f"leaf {label}: {', '.join(words)}")

# %%
# Comparison with the topics
# --------------------------
# For the training rows. Baking, the sky and computers are a leaf each. Football is divided:
# headlines about a match and a team have a leaf, and the others are with the garden.

print(pd.crosstab(tree.labels, topic, rownames=["leaf"], colnames=["topic"]))
print("ARI of the training rows:", round(adjusted_rand_score(topic, tree.labels), 2))

# %%
# Conclusions
# -----------
# - A branch is described by words that occur in it, such as ``higher bread``, and its sibling
#   by their absence. Values are those of rows of unit length.
# - Eighty short texts are few: with another ``random_state`` topics are mixed much more.
#   Assess the model before relying on a split.
# - ``place`` explains the clusters of new headlines:

new = ["the astronomers and the comet", "sugar and butter, bake the cake", "a late penalty"]
for headline, steps in why.place(vectorizer.transform(new), row_names=new).groupby("row_name"):
    print(headline)
    for step in steps.itertuples():
        print(f"    {step.child_name}, as {step.why}")
