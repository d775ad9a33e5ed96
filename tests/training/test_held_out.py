"""Held-out blocks: where they lie, how they are scored, and where the training stops for them."""

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from deeplfm.objectives import Batch
from deeplfm.training import Trainer, Training
from deeplfm.training import held_out as module
from deeplfm.training.held_out import best_steps, split
from deeplfm.training.progress import Report
from small_models import deep, deep_batch, noise_variance


def shuffled_series(rows: int = 200) -> Batch:
    """Two outputs at times in no order, each with gaps of its own."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randperm(rows, generator=generator)[:, None].double() / rows
    observed = torch.rand(rows, 2, generator=generator) > torch.tensor([0.1, 0.4])
    return Batch(x, torch.randn(rows, 2, generator=generator).double(), observed, rows)


def runs(hidden: Tensor) -> list[int]:
    """The lengths of the runs of True."""
    lengths, current = [], 0
    for one in [*hidden.tolist(), False]:
        if one:
            current += 1
        elif current:
            lengths.append(current)
            current = 0
    return lengths


@pytest.mark.parametrize("seed", range(5))
def test_a_series_loses_three_blocks_of_neighbours_per_output(seed: int) -> None:
    """In the order of time, among what was observed; two blocks that touch look like one."""
    data, share = shuffled_series(), 0.3
    kept, test = split(data, share, torch.Generator().manual_seed(seed))
    order = data.x[:, 0].argsort()
    places = []
    for output in range(2):
        rows = order[data.observed[order, output]]
        hidden = test.observed[rows, output]
        size = round(share * len(rows) / 3)
        lengths = runs(hidden)
        assert 1 <= len(lengths) <= 3
        assert max(lengths) >= size
        assert sum(lengths) <= 3 * size
        if len(lengths) == 3:
            assert lengths == [size] * 3
        third = len(rows) // 3  # blocks are spread: each third of the series begins one, or nearly
        assert all(hidden[part : part + third + size].any() for part in (0, third))
        places.append(set(data.x[rows[hidden], 0].tolist()))
    assert places[0] != places[1]
    assert torch.equal(kept.observed | test.observed, data.observed)
    assert not (kept.observed & test.observed).any()
    assert torch.equal(kept.x, data.x)
    assert torch.equal(test.y, data.y)


def test_a_table_loses_single_rows() -> None:
    """Several inputs have no order: a share of the rows of each output, wherever they are."""
    data = shuffled_series()
    table = data._replace(x=torch.cat([data.x, data.x.flip(0)], dim=1))
    kept, test = split(table, 0.3, torch.Generator().manual_seed(0))
    for output in range(2):
        count = int(data.observed[:, output].sum())
        assert int(test.observed[:, output].sum()) == round(0.3 * count)
        rows = data.observed[:, output].nonzero()[:, 0]
        assert len(runs(test.observed[rows, output])) > 10
    assert torch.equal(kept.observed, table.observed & ~test.observed)


def planned(
    monkeypatch: pytest.MonkeyPatch, densities: dict[int, float], steps: int
) -> tuple[int, int]:
    """The number of steps that is found and the step of the last look; no arithmetic is done."""
    trainer = Trainer(deep(), deep_batch(), Training(steps=steps, num_samples=1), 0)

    def density(asked: Trainer, test: Batch) -> Tensor:
        assert asked is trainer
        assert test is blocks
        return torch.tensor(densities[asked.step])

    def run(until: int, report: Report | None = None) -> None:
        trainer.step = min(until, steps)

    blocks = deep_batch(5)
    trainer.run = run  # type: ignore[method-assign, assignment]
    monkeypatch.setattr(module, "_log_density", density)
    return best_steps(trainer, blocks), trainer.step


def test_training_stops_where_the_density_was_highest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty looks over the steps; five in a row without a better one end the search."""
    peak = {step: -abs(step - 12.0) for step in range(2, 41, 2)}
    assert planned(monkeypatch, peak, 40) == (12, 22)
    rising = {step: float(step) for step in range(2, 41, 2)}
    assert planned(monkeypatch, rising, 40) == (40, 40)
    falling = {step: -float(step) for step in range(2, 41, 2)}
    assert planned(monkeypatch, falling, 40) == (2, 12)
    second = dict.fromkeys(range(2, 41, 2), -9.0) | {2: -5.0, 10: -4.0, 20: -3.0, 32: 0.0}
    assert planned(monkeypatch, second, 40) == (20, 30)  # 32 would be better, and is too late


def test_the_density_of_blocks_is_that_of_the_mixture() -> None:
    """Σ log mean_s N(y | f_s, σ²) over held-out entries, one by one; the same draws each time."""
    data = deep_batch()
    trainer = Trainer(deep(), data, Training(steps=1, num_samples=1), 0)
    _, test = split(data, 0.5, torch.Generator().manual_seed(0))
    f = trainer.model.draw(50, torch.Generator().manual_seed(0))(test.x).detach()
    std = noise_variance(trainer.model).sqrt().detach()
    total = 0.0
    for n, d in test.observed.nonzero().tolist():
        total += math.log(float(Normal(f[:, n, d], std[d]).log_prob(test.y[n, d]).exp().mean()))
    found = module._log_density(trainer, test)
    assert float(found) == pytest.approx(total, rel=1e-9)
    assert torch.equal(found, module._log_density(trainer, test))
