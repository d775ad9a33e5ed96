"""Promises of every data set that is registered: its records load, with its tasks, as its kinds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.data import Observations, Series, Table, cardiac
from deeplfm.paper.datasets import registered_data_sets
from deeplfm.paper.datasets.physio import physio
from deeplfm.paper.datasets.toy import toy
from deeplfm.paper.datasets.uci import uci
from deeplfm.paper.datasets.uneven import uneven

SHARED = Path(__file__).parents[4] / "shared" / "data"
needs_files = pytest.mark.skipif(
    not SHARED.exists(), reason="needs the data files beside the project"
)


def load(name: str, record: str, seed: int = 0) -> Any:
    """The observations of a record; the test is skipped where their files are not."""
    try:
        return registered_data_sets()[name].load(record, seed, SHARED)
    except dlfm.InputError as error:
        if "must be on this machine" not in str(error):
            raise
        pytest.skip(f"needs the files of {name}")


def equal(one: Observations, other: Observations) -> bool:
    arrays: list[tuple[Any, Any]] = [(one.inputs, other.inputs), (one.values, other.values)]
    arrays += [(mask, other.tests[name]) for name, mask in one.tests.items()]
    return all(np.array_equal(a, b, equal_nan=True) for a, b in arrays)


@pytest.mark.parametrize("name", registered_data_sets())
def test_records_load_with_their_tasks_as_their_kinds(name: str) -> None:
    entry = registered_data_sets()[name]
    for record in entry.records:
        data = load(name, record)
        assert set(entry.tasks) <= set(data.tests)
        for task in entry.tasks:
            scored = np.isfinite(data.test(task)).any(0)
            assert scored.all() if "series" in entry.kinds else scored.any(), task
            assert np.isfinite(data.training(task)).any(0).all()
        assert equal(data, load(name, record))
        if "series" in entry.kinds:
            assert isinstance(data, Series)
        if "grid" in entry.kinds:
            np.testing.assert_allclose(np.diff(data.times), data.times[1] - data.times[0])
        if "table" in entry.kinds:
            assert isinstance(data, Table)


def test_seeds_reach_the_data() -> None:
    for seed in range(2):
        assert equal(load("toy", "figure", seed), toy("figure", seed=seed))
        assert equal(load("toy", "equations", seed), toy("equations", seed=seed))
        assert equal(load("cardiac", "cardiac", seed), cardiac(seed=seed))


@needs_files
def test_a_seed_is_a_split_of_a_table() -> None:
    for split in range(2):
        assert equal(load("uci", "power", split), uci("power", split, SHARED))


@needs_files
def test_a_record_loses_the_same_observations_for_good() -> None:
    """Half of them, by its place among the records: recorded results depend on it."""
    records = (
        "3083337", "3555523", "3262086", "3269261", "3379471", "3460047", "3600995", "3646209",
    )  # fmt: skip
    for place, record in enumerate(records):
        whole = physio(record, SHARED)
        for seed in range(2):
            assert equal(load("physio", record, seed), whole)
            assert equal(load("uneven", record, seed), uneven(whole, share=0.5, seed=place))
