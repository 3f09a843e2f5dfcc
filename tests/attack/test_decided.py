"""The table of decided outcomes holds, and is as long as it should be."""

import pytest

from tests.attack.data import COLUMNS, ESTIMATORS, broken, lines


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_bad_input_ends_as_decided(estimator):
    pytest.importorskip("dask.dataframe")
    pytest.importorskip("polars")
    checked = [*broken(estimator)]
    assert len(checked) > 100
    wrong = [f"{line['call']}: {came}" for line, came in checked if came is not None]
    assert not wrong


def test_each_line_is_there_once():
    table = [tuple(line[name] for name in COLUMNS) for line in lines()]
    assert len(table) > 700
    assert len({line[:2] for line in table}) == len(table)
    assert {line[0] for line in table} == {*ESTIMATORS}
    assert all(outcome for _, _, outcome in table)
