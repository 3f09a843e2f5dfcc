import pytest

from taxarbor.cli._words import in_options

GAPS = "a.csv has a cell that is missing or infinite; fill or drop them, or leave the columns "


@pytest.mark.parametrize(
    ("library", "fit", "predict"),
    [
        (
            GAPS + "out with columns=",
            GAPS + "out with --columns",
            GAPS.partition(";")[0] + "; fill them, or leave these rows out",
        ),
        ("n_clusters must be 1", "-k must be 1", "-k must be 1"),
        (
            "X varies by 9e+199; divide X by a constant",
            *["the table varies by 9e+199; divide it by a constant"] * 2,
        ),
        ("the tree has 1 leaves, 11 leaves", *["the tree has 1 leaf, 11 leaves"] * 2),
        ("2 of the 1 classes in y", *["2 of the 1 class of the rows"] * 2),
        (
            "columns has 'd', which is the id or label column",
            "--columns has 'd', which is the id or label column",
            "the model has the feature 'd', which cannot be the id or label column as well",
        ),
    ],
)
def test_parameters_become_options(library, fit, predict):
    assert in_options(library, "fit") == fit
    assert in_options(library, "predict") == predict


def test_names_of_columns_stay():
    message = "a.csv has no column called 'n_clusters': it has 'depth', 'X'"
    assert in_options(message, "fit") == message
