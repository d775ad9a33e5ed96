"""Sites on the phase of a rhythm: what they do to it, and that other rows and outputs stay."""

import numpy as np
import pytest
import torch

from deeplfm.statespace import Observations, Record, System
from deeplfm.statespace.phase_sites import PhaseSites, no_sites, sites_of
from deeplfm.statespace.rhythm import phase_of, position, strongest

f64 = torch.float64


def rhythm(count: int = 80) -> tuple[System, Record, Observations]:
    """One strong mode at uneven times, with a gap in the middle."""
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.1, 0.5, count))
    targets = np.stack([np.cos(times), np.sin(times)], 1)
    targets[30:50] = np.nan
    record = Record(times, np.zeros(count, dtype=np.int64), targets)
    system = System(
        torch.tensor([0.05], dtype=f64),
        torch.tensor([1.0], dtype=f64),
        None,
        torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=f64),
        torch.tensor([0.02, 0.02], dtype=f64),
    )
    cut = record.whole()
    none = torch.zeros(1, count, 2, 0, dtype=f64)
    return system, record, Observations(cut.timeline, cut.targets, cut.observed, none)


def moments(
    sites: PhaseSites, system: System, record: Record, rows: Observations
) -> tuple[torch.Tensor, torch.Tensor]:
    own = sites.beside(rows, record.timeline)
    mean, covariance = position(sites.joined(system), own, sites.directions)
    phase, variance = phase_of(mean, covariance)
    return phase[0], variance[0]


def test_no_sites_change_nothing() -> None:
    system, record, rows = rhythm()
    directions = strongest(system)
    phase, variance = moments(no_sites(record, directions), system, record, rows)
    plain, spread = phase_of(*position(system, rows, directions))
    np.testing.assert_allclose(phase, plain[0], atol=1e-12)
    np.testing.assert_allclose(variance, spread[0], rtol=1e-12)


@pytest.mark.parametrize("row", range(2, 80, 7))
def test_a_site_adds_its_precision_to_that_of_the_phase(row: int) -> None:
    system, record, rows = rhythm()
    directions = strongest(system)
    mean, covariance = position(system, rows, directions)
    phase, variance = (part[0] for part in phase_of(mean, covariance))
    # As sure of the phase as the rows are, and a third of its spread ahead.
    precision, ahead = torch.zeros(1, 80).double(), torch.zeros(1, 80).double()
    precision[0, row], ahead[0, row] = 1 / variance[row], variance[row].sqrt() / 3
    sites = sites_of(record, directions, mean, ahead, precision)
    assert (~np.isnan(sites.targets)).sum() == 1
    moved, left = moments(sites, system, record, rows)
    assert float(left[row] / variance[row]) == pytest.approx(0.5, rel=0.06)
    expected = float(ahead[0, row]) / 2
    turned = float(torch.sin(moved[row] - phase[row]))
    # Ways are up to 1/20 rad off: then a little of the step is along the radius.
    assert turned == pytest.approx(expected, rel=0.15)
    assert (left < 1.03 * variance).all()  # the radius, by which it is divided, changes a little


def test_rows_that_are_only_asked_for_have_no_site() -> None:
    system, record, rows = rhythm()
    directions = strongest(system)
    mean, _ = position(system, rows, directions)
    one = torch.ones(1, 80, dtype=f64)
    sites = sites_of(record, directions, mean, 0 * one, one)
    whole, _ = record.beside(np.array([1.234, 99.0]), np.zeros(2, dtype=np.int64))
    cut = whole.whole()
    none = torch.zeros(1, 82, 2, 0, dtype=f64)
    more = Observations(cut.timeline, cut.targets, cut.observed, none)
    joined = sites.beside(more, whole.timeline)
    assert int(joined.observed[..., 2:].sum()) == 80
    asked = torch.tensor(whole.timeline.table(np.arange(82.0)) >= 80)
    assert not joined.observed[..., 2:][asked].any()
