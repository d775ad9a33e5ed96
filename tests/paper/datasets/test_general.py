"""What the series of `general` hide: gaps, forecasts from ten places or more, every output once."""

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.paper.datasets.general import RECORDS, SOURCES, TASK, general_record, parts_of

pytest.importorskip("statsmodels")


def test_forecasts_see_only_what_lies_before() -> None:
    for record in RECORDS:
        name, kind, place = parts_of(record)
        if kind != "forecast":
            continue
        series = general_record(record, 0, None)
        ahead = SOURCES[name].ahead
        assert len(series.times) == place + ahead
        assert np.isnan(series.training(TASK)[place:]).all()
        assert np.isfinite(series.training(TASK)[:place]).all()
        assert np.isfinite(series.test(TASK)[place:]).all()


def test_forecasts_have_ten_origins_inside_the_series() -> None:
    for name, source in SOURCES.items():
        if source.origins and not source.panel:
            assert len(source.origins) >= 10, name
            assert source.origins[-1] + source.ahead <= len(source.make(0).times)


@pytest.mark.parametrize(
    ("record", "rows"), [("co2-gap@90", 18), ("sunspots-gap@150", 15), ("nile-gap@50", 10)]
)
def test_a_gap_has_its_length_and_two_sides(record: str, rows: int) -> None:
    series = general_record(record, 0, None)
    place = parts_of(record)[2]
    assert np.flatnonzero(series.tests[TASK]).tolist() == list(range(place, place + rows))
    assert len(series.times) > place + rows


def test_one_output_of_two_has_a_gap() -> None:
    series = general_record("rbf-gap@90", 1, None)
    assert series.tests[TASK].sum(0).tolist() == [30, 0]
    assert series.truth is not None
    assert not np.array_equal(series.values, general_record("rbf-gap@90", 0, None).values)


def test_every_output_of_the_economy_is_missing_once_and_never_with_another() -> None:
    hidden = [general_record(f"macrodata-gap@{k}", 0, None).tests[TASK] for k in range(3)]
    assert np.sum(hidden, axis=(0, 1)).tolist() == [20] * 12
    assert all(mask.sum(1).max() == 1 for mask in hidden)


def test_a_wrong_record() -> None:
    with pytest.raises(dlfm.InputError, match="a record must be one of"):
        general_record("co2-gap@91", 0, None)
