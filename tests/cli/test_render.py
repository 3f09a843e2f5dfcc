import math

import pytest

from taxarbor.cli._render import counted, number


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (17592.3, "17,590"),
        (-17592.3, "-17,590"),
        (123456789.0, "123,500,000"),
        (999_960.0, "1,000,000"),
        (9.9996, "10"),
        (3.14159, "3.142"),
        (0.5, "0.5"),
        (0.00012345, "0.0001234"),
        (0.0, "0"),
        (1200.0, "1200"),
        (2.5e9, "2.5e+09"),
        (0.00002, "2e-05"),
        (None, "-"),
        (math.nan, "nan"),
        (math.inf, "inf"),
    ],
)
def test_numbers_as_people_write_them(value, told):
    assert number(value) == told


def test_counts():
    assert counted(1, "row") == "1 row"
    assert counted(1200, "row") == "1,200 rows"
    assert counted(1, "class", "classes") == "1 class"
    assert counted(2, "class", "classes") == "2 classes"
