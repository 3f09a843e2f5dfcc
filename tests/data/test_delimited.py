import io

import numpy as np
import pandas as pd
import pytest

from taxarbor.data import read_table


def read(text, **options):
    return read_table(io.BytesIO(text.encode()), **options)


@pytest.mark.parametrize("with_index", [False, True])
def test_the_header_that_pandas_gives_an_array_is_no_row(with_index):
    X = np.random.default_rng(0).normal(size=(5, 4))
    table = read(pd.DataFrame(X).to_csv(index=with_index))
    np.testing.assert_array_equal(table.X, X)
    assert table.feature_names == ("0", "1", "2", "3")


@pytest.mark.parametrize("header", ["0,1,2", "1,2,3", "2019,2020,2021", "1;2;3", '"1","2","3"'])
def test_a_first_line_that_counts_is_a_header(header):
    separator = ";" if ";" in header else ","
    table = read(f"{header}\n7,8,9\n1,2,2\n".replace(",", separator))
    assert table.feature_names == tuple(header.replace('"', "").split(separator))
    assert len(table.X) == 2
    (note,) = table.notes
    assert "was taken for the names of the columns" in note


@pytest.mark.parametrize(
    "header", ["0,2,3", "3,2,1", "1.0,2.0,3.0", "-1,0,1", "1,1,1", "0.5,1,2"]
)
def test_other_numbers_are_a_row_and_it_is_said(header):
    table = read(f"{header}\n7,8,9\n")
    assert table.feature_names is None
    assert len(table.X) == 2
    assert table.notes == (
        "the first line holds numbers only and was taken for a row; give the columns names if "
        "it is a header",
    )


def test_one_number_counts_nothing():
    assert read("1\n0\n1\n").X.shape == (3, 1)


def test_a_header_of_names_needs_no_note():
    assert read("a,b\n1,2\n").notes == ()
