"""Records: their span and usual step, windows of one series each, rows beside."""

import numpy as np
import pytest
import torch

from deeplfm.statespace import Record


def record(lengths: tuple[int, ...], outputs: int = 2, seed: int = 0) -> Record:
    """Series of such lengths at uneven times, rows shuffled; a target says series and time."""
    rng = np.random.default_rng(seed)
    series = np.repeat(np.arange(len(lengths)), lengths)
    times = np.concatenate([np.cumsum(rng.uniform(0.5, 1.5, n)) for n in lengths])
    targets = (1000 * series + times)[:, None] + np.zeros(outputs)
    targets[rng.uniform(size=targets.shape) < 0.2] = np.nan
    order = rng.permutation(len(times))
    return Record(times[order], series[order], targets[order])


def test_whole_has_every_entry_once() -> None:
    one = record((30, 7, 1))
    cut = one.whole()
    assert cut.targets.shape == (3, 30, 2)
    assert int(cut.observed.sum()) == int((~np.isnan(one.targets)).sum())
    expected = 1000 * torch.arange(3)[:, None, None] + cut.times[..., None]
    assert bool((cut.targets == expected)[cut.observed].all())


@pytest.mark.parametrize("lengths", [(80,), (50, 30), (60, 1, 19), (4,) * 20])
def test_a_window_never_mixes_series(lengths: tuple[int, ...]) -> None:
    one = record(lengths)
    generator = torch.Generator().manual_seed(0)
    seen = np.zeros(len(one.times), dtype=int)
    for _ in range(300):
        cut = one.windows(2, 20, generator)
        assert cut.rows is not None
        own = one.series[cut.rows[:, 0]]
        expected = 1000 * torch.tensor(own)[:, None, None] + cut.times[..., None]
        assert bool((cut.targets == expected)[cut.observed].all())
        steps = cut.timeline.steps[cut.timeline.step.long()]
        np.testing.assert_allclose(steps[:, 1:], cut.times.diff(dim=1), atol=1e-12)
        # About as many rows as 2 windows of 20 have, whatever the lengths of series are.
        assert cut.rows.shape[1] <= min(20, max(lengths))
        assert cut.rows.shape[0] * min(20, max(lengths)) >= 40
        np.add.at(seen, cut.rows[cut.observed.any(-1).numpy()], 1)
    assert (seen[~np.isnan(one.targets).all(1)] > 0).all()


def test_a_window_longer_than_the_record_is_the_record() -> None:
    one = record((12,))
    cut = one.windows(1, 50, torch.Generator())
    whole = one.whole()
    assert len(cut.targets) == 4  # about as many rows as were asked for
    for targets, observed in zip(cut.targets, cut.observed, strict=True):
        assert torch.equal(targets[None], whole.targets)
        assert torch.equal(observed[None], whole.observed)


def test_windows_repeat_with_the_generator() -> None:
    one = record((50, 30))
    first, again = (one.windows(3, 10, torch.Generator().manual_seed(4)) for _ in range(2))
    assert torch.equal(first.times, again.times)
    assert torch.equal(first.targets, again.targets)


def test_rows_beside_change_nothing_but_the_rows() -> None:
    one = record((30, 7))
    more, places = one.beside(np.array([-50.0, 3.0, 1e9]), np.array([0, 1, 1]))
    assert places.tolist() == [37, 38, 39]
    assert more.span == one.span
    assert np.isnan(more.targets[places]).all()
    np.testing.assert_array_equal(more.targets[:37], one.targets)
    assert more.timeline.rows(more.whole().times.numpy())[places].tolist() == [-50.0, 3.0, 1e9]


def test_the_usual_step_is_that_of_most_rows() -> None:
    times = np.delete(np.arange(100), np.arange(40, 60)) / 50
    one = Record(times, np.zeros(80, dtype=np.int64), np.zeros((80, 1)))
    assert one.step == pytest.approx(0.02)
    again = Record(np.repeat(times, 3), np.zeros(240, dtype=np.int64), np.zeros((240, 1)))
    assert again.step == pytest.approx(0.02)
