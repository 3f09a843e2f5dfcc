"""Against the table of the paper, copied by hand."""

import pytest

from taxarbor.bench import METHODS
from taxarbor.bench._published import PUBLISHED, STAND_INS

SOME = {
    ("KM", "awa_attr"): (77.95, 92.83, 96.04, 5.2),
    ("MMC", "awa_attr"): (77.08, 83.67, 83.71, 15958),
    ("SC", "awa_pca"): (77.16, 88.72, 91.21, 172),
    ("SL", "tiny_imagenet20/X_sift"): (45.85, 32.97, 5.24, 84.5),
    ("AL", "tiny_vehicle15/X_sift"): (58.24, 29.17, 5.45, 48),
    ("HKM-D", "awa_attr"): (92.59, 91.01, 95.97, 6),
    ("HSC-D", "tiny_imagenet20/X_sift"): (48.19, 37.01, 11.00, 893),
    ("HMMC", "awa_attr"): (94.40, 91.03, 95.96, 1987),
    ("HMMC", "awa_pca"): (93.69, 89.66, 95.65, 1550),
    ("HMMC", "tiny_vehicle15/X_sift"): (90.48, 85.08, 90.16, 994),
    ("HMMC", "tiny_imagenet20/X_sift"): (86.94, 84.63, 90.59, 1412),
    ("HMMC-1", "awa_attr"): (87.77, 77.49, 77.84, 558),
    ("HMMC-2", "tiny_imagenet20/X_sift"): (86.13, 84.08, 89.94, 1158),
}


@pytest.mark.parametrize("key", SOME)
def test_numbers(key):
    *scores, seconds = PUBLISHED[key]
    assert tuple(scores) == SOME[key][:3]
    assert seconds == pytest.approx(SOME[key][3], abs=0.5)  # most are rounded here


def test_every_method_of_the_paper_on_its_four_data_sets():
    ours_alone = {"Ward", "BKM"}
    assert set(PUBLISHED) == {
        (method, name) for method in set(METHODS) - ours_alone for name in STAND_INS
    }
    assert [*STAND_INS.values()] == ["AWA-ATTR", "AWA-PCA", "VEHICLE", "IMAGENET"]
    for one in PUBLISHED.values():
        assert all(0.0 < score < 100.0 for score in one[:3])
        assert one.seconds > 1.0


@pytest.mark.parametrize("name", STAND_INS)
def test_hmmc_or_its_group_variant_has_the_best_sp(name):
    """Which is the paper's claim, and would not survive a slipped column."""
    ranking = sorted(METHODS, key=lambda m: -PUBLISHED.get((m, name), (0.0,))[0])
    assert ranking[0] in {"HMMC", "HMMC-G"}
