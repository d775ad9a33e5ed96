"""Series of a Markov state at random: uneven steps, gaps, oscillators beside a dense block."""

from collections.abc import Sequence

import torch
from torch import Tensor

from reference.markov import Series, covariances

f64 = torch.float64
LEARNT = ("decay", "turn", "transition", "diffusion", "start", "loadings", "noise", "targets")


def random_series(
    series: int = 1,
    rows: int = 20,
    outputs: int = 2,
    columns: int = 1,
    oscillators: int = 2,
    dense: int = 0,
    *,
    steps: int | None = None,
    noise: tuple[int, int] = (1, 1),
    missing: float = 0.3,
    scale: float = 1.0,
    seed: int = 0,
) -> Series:
    """Rates of .01 to 1 a step of length 1, noise of a tenth of the variance and more.

    `noise` is what the noise has of series and of rows; `scale` multiplies outputs.
    """
    generator = torch.Generator().manual_seed(seed)

    def rand(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=f64)

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=f64)

    kinds = rows if steps is None else steps
    length = 10 ** (2 * rand(kinds, 1) - 1.5)
    decay, turn = length * 10 ** (2 * rand(oscillators) - 2), length * 3 * randn(oscillators)
    transition = randn(kinds, dense, dense) / (2 * max(dense, 1) ** 0.5)
    root, first = randn(kinds, dense, dense), randn(dense, dense)
    loadings = scale * randn(outputs, 2 * oscillators + dense)
    variance = loadings.square().sum(1) + scale**2
    return Series(
        decay,
        turn,
        transition,
        root @ root.mT / 4,
        first @ first.mT,
        loadings,
        variance * (0.1 + rand(*noise, outputs)),
        scale * randn(series, rows, outputs, columns),
        torch.randint(0, kinds, (series, rows), generator=generator).to(torch.int32),
        rand(series, rows, outputs) >= missing,
    )


def on_a_line(
    rates: Sequence[float],
    turns: Sequence[float],
    deltas: Sequence[float],
    noise: float,
    seed: int = 0,
) -> Series:
    """A draw of two outputs of oscillators, after steps `deltas`; noise as a share of variance."""
    generator = torch.Generator().manual_seed(seed)
    length = torch.tensor(deltas, dtype=f64)[:, None]
    rows = len(length)
    loadings = torch.randn(2, 2 * len(rates), generator=generator, dtype=f64)
    nothing = torch.zeros(rows, 0, 0, dtype=f64)
    of = Series(
        length * torch.tensor(rates, dtype=f64),
        length * torch.tensor(turns, dtype=f64),
        nothing,
        nothing,
        nothing[0],
        loadings,
        noise * loadings.square().sum(1)[None, None],
        torch.zeros(1, rows, 2, 1, dtype=f64),
        torch.arange(rows, dtype=torch.int32)[None],
        torch.rand(1, rows, 2, generator=generator) >= 0.2,
    )
    covariance = covariances(of, 0, loadings).reshape(2 * rows, 2 * rows)
    factor = torch.linalg.cholesky(covariance + of.noise.expand(1, rows, 2).reshape(-1).diag())
    drawn = factor @ torch.randn(2 * rows, generator=generator, dtype=f64)
    return of._replace(targets=drawn.reshape(1, rows, 2, 1))


def learning(of: Series) -> Series:
    """The same with leaves that have gradients."""
    return of._replace(**{name: getattr(of, name).clone().requires_grad_() for name in LEARNT})


def some_readout(of: Series, count: int = 3) -> Tensor:
    """Functions of the state: those that are observed, and others."""
    generator = torch.Generator().manual_seed(9)
    more = torch.randn(count, of.loadings.shape[1], generator=generator, dtype=f64)
    return torch.cat((of.loadings.detach(), more))
