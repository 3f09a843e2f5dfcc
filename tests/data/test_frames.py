import io

import pandas as pd
import pytest

from taxarbor._errors import FileFormatError
from taxarbor.data import read_table

FORMATTED = "text that looks like numbers with signs such as %, $ or separators of thousands"


def dropped(cells, **options):
    frame = pd.DataFrame({"x": range(len(cells)), "y": cells})
    return dict(read_table(io.BytesIO(frame.to_csv(index=False, **options).encode())).dropped)


@pytest.mark.parametrize(
    "cells",
    [
        ["47,903.03", "1,200.00", "7,000,000.5"],
        ["$47903", "$12.50", "-$3"],
        ["2.7%", "10 %", "-3%"],
        ["1 200", "47 903,5", "1\u00a0200"],
        ["1'200", "47'903.50", "12'000'000"],
        ["12 EUR", "13,5 \u20ac", "+4 EUR"],
        ["2.7%"] * 18 + ["none", "3%"],
    ],
)
def test_formatted_numbers_are_told_from_text(cells):
    assert dropped(cells)["y"].startswith(FORMATTED)


def test_thousands_beside_decimal_commas():
    assert dropped(["47.903,03", "1.000.200,5"], sep=";")["y"].startswith(FORMATTED)


@pytest.mark.parametrize(
    "cells",
    [
        ["12.05.2024", "13.05.2024"],
        ["192.168.1.1", "10.0.0.1"],
        ["5 apples", "7 pears"],
        ["A-1", "B-2"],
        ["12,34,56", "1,2,3"],
        ["2.7%", "none", "few"],
    ],
)
def test_other_text_stays_text(cells):
    assert dropped(cells)["y"].startswith("text, ")


def test_formatted_numbers_come_first():
    columns = {f"t{j}": ["u", "v"] for j in range(12)} | {"pay": ["$1", "$2"], "x": [1, 2]}
    content = pd.DataFrame(columns).to_csv(index=False).encode()
    assert read_table(io.BytesIO(content)).dropped[0][0] == "pay"
    content = pd.DataFrame(columns).drop(columns="x").to_csv(index=False).encode()
    with pytest.raises(FileFormatError, match="to use: 'pay'"):
        read_table(io.BytesIO(content))
