"""The filter where it is stiff: rates, steps and noise over many orders, against 50 digits.

Every step rounds a covariance by a few ε of its size, and n steps by n times as much; a relative
change δ of the covariance K of the entries changes its inverse by κ(K) δ.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
import torch
from mpmath import mp
from torch import Tensor

from deeplfm.sums import Backend, markov_evidence, markov_smooth
from deeplfm.sums.c import library
from markov_series import learning, on_a_line, random_series, some_readout
from reference.markov import Series, precise

FORMS: list[Backend] = ["plain", "c"] if library.is_built() else ["plain"]
f64, EPS = torch.float64, torch.finfo(torch.float64).eps


class Line(NamedTuple):
    rates: Sequence[float]
    turns: Sequence[float]
    deltas: Sequence[float]


WIDE = [1.0, 1e-9, 1e-7, 1e-5, 1e-9, 1e3, 1e-3, 1e-1, 1e-8, 1e6, 1e-6, 1.0]
LINES = {
    "regular": Line([0.1, 0.02, 1.0], [0.5, 2.0, 0.1], [1.0] * 12),
    "slow": Line([1e-6, 1e-6, 1e-6], [0.5, 2.0, 0.1], [1.0] * 12),
    "stiff": Line([1e-6, 1e3, 1e-2], [0.5, 2.0, 0.0], [1.0] * 12),
    "steps of 1e-9 to 1e6": Line([1e-3, 1.0], [0.5, 2.0], WIDE),
    "steps of 1e-9": Line([1e-3, 1.0], [0.5, 2.0], [1e-9] * 12),
    "repeated times": Line([1e-3, 1.0], [0.5, 2.0], [1.0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1]),
}
NOISES = (1e-8, 1e-4, 1e2)


def rounded(numbers: Any) -> Tensor:
    """Numbers of mpmath in float64, in rows of one column or of none."""
    flat = [float(row[0] if isinstance(row, list) else row) for row in numbers]
    return torch.tensor(flat, dtype=f64)


def rounding(of: Series, condition: float) -> float:
    """How much of a result the steps of a filter may lose: a few ε a step, times κ."""
    return 4 * EPS * of.step.shape[1] * condition


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_values_against_fifty_digits(line: Line, noise: float) -> None:
    of = on_a_line(*line, noise, seed=1)
    readout = some_readout(of, 1)
    truth = precise(of, readout)
    lost = rounding(of, truth.condition)
    prior = readout.square().sum(1)
    mean = rounded(truth.mean).reshape(1, -1, len(readout), 1)
    variance = rounded(truth.variance).reshape(1, -1, len(readout))
    weights = rounded(truth.weights)[:, None]
    for form in FORMS:
        log_det, gram = markov_evidence.by(form, *of)
        assert abs(float(log_det[0] - float(truth.log_det))) <= lost * len(weights), form
        assert abs(float(gram[0, 0, 0] / float(truth.gram[0][0])) - 1) <= lost, form
        found_mean, found_variance, found_weights, _ = markov_smooth.by(form, *of, readout)
        assert (found_variance >= 0).all()
        assert (found_weights[of.observed] - weights).abs().max() <= lost * weights.abs().max()
        assert (found_mean - mean).abs().max() <= lost * (1 + mean.abs().max()), form
        assert ((found_variance - variance).abs() / prior).max() <= lost, form
        # An output that was observed at a row has a variance below its noise, and keeps digits:
        # an ε of the prior variance, for every state, is ε/noise of it, whatever the condition.
        seen = found_variance[..., :2][of.observed], variance[..., :2][of.observed]
        allowed = rounding(of, 1 + 1 / noise) * readout.shape[1]
        assert ((seen[0] - seen[1]).abs() / seen[1]).max() <= allowed, form


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_gradients_against_differences_in_fifty_digits(line: Line, noise: float) -> None:
    of = on_a_line(*line, noise, seed=1)
    generator = torch.Generator().manual_seed(2)
    nothing = of.loadings[:0]
    condition = precise(of, nothing).condition
    for name in ("decay", "turn", "loadings"):
        at = getattr(of, name)
        small = 1e-9 * torch.randn(at.shape, generator=generator, dtype=f64)
        ends = at + small * at if name == "decay" else at + small, at
        change = ends[0] - ends[1]
        ends = ends[0], at - change
        high, low = (precise(of._replace(**{name: end}), nothing) for end in ends)
        with mp.workdps(50):
            wanted = (float(high.log_det - low.log_det), float(high.gram[0][0] - low.gram[0][0]))
        for form in FORMS:
            leaves = learning(of)
            for found, slope in zip(markov_evidence.by(form, *leaves), wanted, strict=True):
                (by,) = torch.autograd.grad(found.sum(), getattr(leaves, name), retain_graph=True)
                terms = by * (ends[0] - ends[1])
                # Differences over 1e-9 of numbers that change over √noise = 1e-4: (1e-5)² is cut.
                allowed = (rounding(of, condition) + 1e-9) * float(terms.abs().sum())
                assert abs(float(terms.sum()) - slope) <= allowed, (name, form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e3])
def test_everything_is_finite(form: Backend, rate: float, noise: float) -> None:
    generator = torch.Generator().manual_seed(4)
    deltas = 10 ** (15 * torch.rand(60, generator=generator, dtype=f64) - 9)
    deltas[::7] = 0
    turns = [3e3, 0.0]
    of = on_a_line([rate, rate / 10], turns, deltas.tolist(), noise)
    leaves, readout = learning(of), some_readout(of)
    log_det, gram = markov_evidence.by(form, *leaves)
    slopes = torch.autograd.grad(log_det.sum() + gram.sum(), leaves[:8], allow_unused=True)
    smoothed = markov_smooth.by(form, *of, readout)
    for part in (log_det, gram, *slopes, *smoothed):
        assert part is None or part.isfinite().all()
    variance = smoothed[1]
    assert (variance >= 0).all()
    assert (variance <= (1 + 1e-9) * readout.square().sum(1)).all()


@pytest.mark.skipif(not library.is_built(), reason="too long for the plain form")
def test_a_hundred_thousand_steps_without_an_observation() -> None:
    """As one long step: rotations are exact to ε each, so are fading and noise."""
    rows = 100_002
    decay, turn = torch.tensor([[1e-6, 1e-3]], dtype=f64), torch.tensor([[0.3, 1e-3]], dtype=f64)
    of = on_a_line([1.0, 1.0], [1.0, 1.0], [1.0] * 3, 1e-4)
    observed = torch.zeros(1, rows, 2, dtype=torch.bool)
    observed[:, [0, -1]] = True
    targets = torch.full((1, rows, 2, 1), torch.nan, dtype=f64)
    targets[:, [0, -1]] = of.targets[:, :2]
    nothing = torch.zeros(1, 0, 0, dtype=f64)
    many = of._replace(
        decay=decay,
        turn=turn,
        transition=nothing,
        diffusion=nothing,
        targets=targets,
        step=torch.zeros(1, rows, dtype=torch.int32),
        observed=observed,
    )
    two = many._replace(
        decay=decay * (rows - 1),
        turn=turn * (rows - 1),
        targets=of.targets[:, :2],
        step=many.step[:, :2],
        observed=observed[:, [0, -1]],
    )
    lost = 10 * rows * EPS * 1e4  # condition: noise of 1e-4
    long, short = learning(many), learning(two)
    found, wanted = markov_evidence(*long), markov_evidence(*short)
    for part, right in zip(found, wanted, strict=True):
        assert (part - right).abs().max() <= lost * right.abs().max()
    slopes = torch.autograd.grad(found[0].sum() + found[1].sum(), (long.decay, long.turn))
    rights = torch.autograd.grad(wanted[0].sum() + wanted[1].sum(), (short.decay, short.turn))
    for slope, right in zip(slopes, rights, strict=True):
        assert (slope / (rows - 1) - right).abs().max() <= lost * right.abs().max()
    readout = some_readout(of, 1)
    mean, variance, _, _ = markov_smooth(*many, readout)
    ends = markov_smooth(*two, readout)
    assert mean.isfinite().all()
    assert (variance >= 0).all()
    assert (mean[:, [0, -1]] - ends[0]).abs().max() <= lost * ends[0].abs().max()
    assert (variance[:, [0, -1]] - ends[1]).abs().max() <= lost


@pytest.mark.skipif(not library.is_built(), reason="too long for the plain form")
def test_a_covariance_stays_symmetric_and_positive_over_many_rows() -> None:
    """20 000 rows of precise data: the steady state of the filter is that of the first thousand."""
    of = random_series(1, 20_000, 2, 1, 3, 2, steps=1, missing=0.0)
    quiet = of._replace(noise=1e-8 * of.noise)
    mean, variance, _, _ = markov_smooth(*quiet, quiet.loadings)
    assert mean.isfinite().all()
    middle = variance[:, 1000:-1000]
    assert middle.amin() > 0
    # ε of the prior variance, a few times, is 1e-8 of the noise.
    assert (middle.amax(1) / middle.amin(1)).max() <= 1 + 1e-5
