"""Categories with a natural order."""

import random

import pytest

from taxarbor.tables._ordered import find_order


@pytest.mark.parametrize(
    "ordered",
    [
        *("1. <=Good|2. ok|3. bad", "1: low|2: ok|10: high", "1 - low|2 - mid|3 - high"),
        *("(1) no|(2) maybe|(3) yes", "a) none|b) some|c) all"),
        *("1. 18-25|2. 26-35|3. older", "Level 1|Level 2|Level 10"),
        *("Stage I|Stage II|Stage III|Stage IV", "<18|18-25|26-35|36-64|65+"),
        *("under 18|18 to 25|over 25", "$0-$10k|$10k-$20k|$20k-$100k|$100k+"),
        "Less than $10,000|$10,000 - $14,999|$15,000 or more",
        *("< 1 year|1 year|2 years|9 years|10+ years", "[0, 10)|[10, 20)|[20, 100)"),
        *("0|1-2|3 or more", "0-10%|10-20%|20-100%"),
        "Strongly disagree|Disagree|Neither agree nor disagree|Agree|Strongly agree",
        "disagree|somewhat disagree|neutral|somewhat agree|agree",
        "Very dissatisfied|Dissatisfied|Neutral|Satisfied|Very satisfied",
        "very unlikely|unlikely|likely|very likely",
        "Not at all important|Slightly important|Important|Very important|Extremely important",
        *("not at all|a little|somewhat|very much", "Never|Rarely|Sometimes|Often|Always"),
        *("low|mid|high", "Very low|Low|Medium|High|Very high"),
        *("low risk|medium risk|high risk", "none|low|medium|high|critical"),
        *("Small|Medium|Large|X-Large", "XS|S|M|L|XL|XXL"),
        *("Poor|Fair|Good|Very good|Excellent", "Fair|Good|Very Good|Premium|Ideal"),
        *("none|mild|moderate|severe", "First|Second|Third", "Bronze|Silver|Gold|Platinum"),
        *("worse|about the same|better", "January|February|March"),
        *("primary|secondary|tertiary", "no|maybe|yes", "never|former|current"),
        *("1_0-10|2_11-20|3_21-50", "1_98-98.9F|2_99-99.9F|3_100F+"),
        *("1_Good|2_Fair|3_Poor", "Bad|Good|Better|Best", "Low|Med|High|Urgent"),
        *("High school|Bachelor's degree|Master|PhD", "Not true|Somewhat true|Certainly true"),
        "Not at all|Several days|More than half the days|Nearly every day",
        *("2019Q1|2019Q2|2019Q3", "0-39g/day|40-79|80-119|120+", "0-5yrs|6-11yrs|12+ yrs"),
        *("1-9km/h|10-24|25-39|55+", "Too Little|About Right|Too Much"),
    ],
)
def test_order(ordered):
    expected = tuple(ordered.split("|"))
    for seed in range(3):
        values = random.Random(seed).sample(expected, len(expected))
        assert find_order(values) == expected
        assert find_order([*values, "elsewhere"]) is None


@pytest.mark.parametrize(
    "values",
    [
        *("low|high", "Monday|Tuesday|Wednesday", "red|green|blue", "D|E|F|G|H|I|J"),
        *("S|M|D|W", "1|2|3", "0-1|0-2|1-2", "3-0|1-1|2-1", "under 18|under 25|under 65"),
        *("Region 1|Region 2|Region 3", "1. a|1. b|2. c", "fair|average|good"),
        *("Low|low|high", "medium|large|high", "private|public|other"),
        *("north|south|east|west", "1_2|2_3|3_1", "1_2_3|2_1_1|3_0_1"),
    ],
)
def test_no_order(values):
    assert find_order(values.split("|")) is None
    assert find_order([]) is None
