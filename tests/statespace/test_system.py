"""A system against one dense Gaussian with unknown weights: restricted likelihood, kriging."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from deeplfm.statespace import Level, Observations, RandomWalk, Record, System, stack_blocks
from deeplfm.statespace.system import solve_weights
from reference.markov import Series, covariances

f64 = torch.float64


def some_system(seed: int = 0, outputs: int = 2) -> System:
    """Three oscillators, a level and a walk per output."""
    rng = np.random.default_rng(seed)
    rate = torch.tensor(rng.uniform(0.1, 1, outputs))
    return System(
        torch.tensor(rng.uniform(0.05, 0.5, 3)),
        torch.tensor(rng.uniform(0.5, 3, 3)),
        stack_blocks([Level(torch.tensor([0.7], dtype=f64)), RandomWalk(rate)]),
        torch.tensor(rng.normal(size=(outputs, 7 + outputs))),
        torch.tensor(rng.uniform(0.1, 0.3, outputs)),
    )


def some_rows(
    lengths: tuple[int, ...] = (25,), outputs: int = 2, trend: bool = True, seed: int = 0
) -> Observations:
    """Uneven times, some repeated, a third of the entries missing; constants and lines."""
    rng = np.random.default_rng(seed)
    series = np.repeat(np.arange(len(lengths)), lengths)
    times = np.concatenate([np.cumsum(rng.choice([0, 0.3, 1, 1.7], n)) for n in lengths])
    targets = rng.normal(size=(len(times), outputs)) + 5
    targets[rng.uniform(size=targets.shape) < 0.33] = np.nan
    cut = Record(times, series, targets).whole()
    one = torch.eye(outputs, dtype=f64).expand(*cut.times.shape, -1, -1)
    columns = [one, one * (cut.times[..., None, None] / 10)] if trend else [one]
    return Observations(cut.timeline, cut.targets, cut.observed, torch.cat(columns, -1))


def one_of(rows: Observations, b: int) -> Observations:
    line = rows.timeline
    own = replace(line, step=line.step[b : b + 1])
    scale = None if rows.scale is None else rows.scale[b : b + 1]
    targets, observed, design = (x[b : b + 1] for x in (rows.targets, rows.observed, rows.design))
    return Observations(own, targets, observed, design, scale)


class Dense:
    """Covariances of entries K, targets y and functions X of unknown weight there; at all rows."""

    def __init__(self, system: System, rows: Observations, readout: Tensor) -> None:
        outputs = len(system.noise)
        none = torch.zeros(0)
        of = Series(*system.moves(rows.timeline.steps), system.loadings, none, none,
                    rows.timeline.step, rows.observed)  # fmt: skip
        functions = torch.cat((system.loadings, readout))
        every = covariances(of, 0, functions)
        count = every.shape[0]
        self.seen = rows.observed[0].reshape(-1)
        scale = torch.ones_like(rows.targets[0]) if rows.scale is None else rows.scale[0]
        noise = (system.noise * scale).reshape(-1)
        among = every[:, :outputs, :, :outputs].reshape(count * outputs, -1)
        self.K = (among + noise.diag())[self.seen][:, self.seen]
        self.y = rows.targets[0].reshape(-1)[self.seen]
        design = rows.design[0].reshape(count * outputs, -1)[self.seen]
        self.X = design[:, design.abs().sum(0) > 0]
        self.used = design.abs().sum(0) > 0
        own = every[:, outputs:, :, outputs:].reshape(count * len(readout), -1)
        self.variance = own.diagonal()
        across = every[:, outputs:, :, :outputs].reshape(count * len(readout), -1)
        self.across = across[:, self.seen]

    def restricted(self) -> Tensor:
        """log ∫ N(y; Xβ, K) dβ."""
        half = torch.linalg.inv(self.K)
        information = self.X.mT @ half @ self.X
        weights = torch.linalg.solve(information, self.X.mT @ half @ self.y)
        rest = self.y - self.X @ weights
        count = len(self.y) - self.X.shape[1]
        found: Tensor = -0.5 * (
            torch.logdet(self.K) + torch.logdet(information) + rest @ half @ rest
            + count * math.log(2 * math.pi)
        )  # fmt: skip
        return found

    def with_prior(self, variance: float) -> Tensor:
        """log ∫ N(y; Xβ, K) N(β; 0, variance I) dβ, without the prior's own constant."""
        K = self.K + variance * self.X @ self.X.mT
        constant = len(self.y) * math.log(2 * math.pi)
        plain = -0.5 * (torch.logdet(K) + self.y @ torch.linalg.solve(K, self.y) + constant)
        found: Tensor = plain + 0.5 * self.X.shape[1] * math.log(2 * math.pi * variance)
        return found

    def kriging(self, design: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of functions with unknown weights: universal kriging as one system."""
        count = self.X.shape[1]
        corner = self.X.new_zeros(count, count)
        left = torch.cat(
            (torch.cat((self.K, self.X), 1), torch.cat((self.X.mT, corner), 1)),
        )
        right = torch.cat((self.across, design[:, self.used]), 1).mT
        found = torch.linalg.solve(left, right)
        mean = found[: len(self.y)].mT @ self.y
        return mean, self.variance - (found * right).sum(0)


@pytest.mark.parametrize("trend", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_evidence_is_the_restricted_likelihood(trend: bool, scaled: bool) -> None:
    system, rows = some_system(), some_rows(trend=trend)
    if scaled:
        scale = torch.rand(rows.targets.shape, generator=torch.Generator().manual_seed(0)) + 0.5
        rows = replace(rows, scale=scale.double())
    dense = Dense(system, rows, system.loadings)
    found = float(system.evidence(rows)[0])
    assert found == pytest.approx(float(dense.restricted()), rel=1e-10)
    # What a prior of variance v misses is of order 1/v; the dense matrix loses v · 1e-16.
    assert found == pytest.approx(float(dense.with_prior(1e6)), abs=1e-4)


def believing(rows: Observations, believed: int = 3, seed: int = 5) -> Observations:
    """With functions at random whose weights are N(0, 1) before data come."""
    generator = torch.Generator().manual_seed(seed)
    shape = (*rows.design.shape[:3], believed)
    more = torch.randn(shape, generator=generator, dtype=f64)
    return replace(rows, design=torch.cat((rows.design, more), -1), believed=believed)


def in_covariance(system: System, rows: Observations) -> Dense:
    """The same with what the weights of a prior add to covariances, and flat ones as they are."""
    dense = Dense(system, rows, system.loadings)
    X, K = dense.X, dense.K
    count = rows.believed
    added = rows.design[0].reshape(-1, X.shape[1])[:, -count:]
    dense.K = K + X[:, -count:] @ X[:, -count:].mT
    dense.across = dense.across + added @ X[:, -count:].mT
    dense.variance = dense.variance + added.square().sum(1)
    dense.X, dense.used = X[:, :-count], dense.used[:-count]
    return dense


def test_weights_with_a_prior_are_integrated_out() -> None:
    system, rows = some_system(3), believing(some_rows((25,), seed=3))
    dense = in_covariance(system, rows)
    found = float(system.evidence(rows)[0])
    assert found == pytest.approx(float(dense.restricted()), rel=1e-10)
    smoothed = system.smooth(rows, system.loadings, rows.design)
    mean, variance = dense.kriging(rows.design[0].reshape(50, -1)[:, : -rows.believed])
    np.testing.assert_allclose(smoothed.mean.reshape(-1), mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(smoothed.variance.reshape(-1), variance, rtol=1e-8, atol=1e-8)
    nothing = replace(rows, design=rows.design[..., : -rows.believed], believed=0)
    silent = torch.zeros(*nothing.design.shape[:3], 2, dtype=f64)
    quiet = replace(nothing, design=torch.cat((nothing.design, silent), -1), believed=2)
    np.testing.assert_allclose(system.evidence(quiet), system.evidence(nothing), rtol=1e-12)


def test_gradients_of_draws_are_those_of_the_evidence_on_average() -> None:
    """Probes along each weight, √W long, have the second moments of normal ones exactly."""
    plain, rows = some_system(4), believing(some_rows((25,), seed=4))
    noise = plain.noise.clone().requires_grad_()
    loadings = plain.loadings.clone().requires_grad_()
    design = rows.design.clone().requires_grad_()
    learnt = (noise, loadings, design)
    system = replace(plain, noise=noise, loadings=loadings)
    own = replace(rows, design=torch.cat((rows.design[..., :4], design[..., 4:]), -1))
    exact = system.evidence(own)
    expected = torch.autograd.grad(exact.sum(), learnt)
    found = [torch.zeros_like(part) for part in learnt]
    for probe in math.sqrt(rows.believed) * torch.eye(rows.believed, dtype=f64):
        value = system.evidence(own, probe=probe)
        np.testing.assert_allclose(value.detach(), exact.detach(), rtol=1e-12)
        for total, part in zip(found, torch.autograd.grad(value.sum(), learnt), strict=True):
            total += part / rows.believed
    for total, part in zip(found, expected, strict=True):
        np.testing.assert_allclose(total, part, rtol=1e-7, atol=1e-7)


def test_smoothed_functions_are_those_of_universal_kriging() -> None:
    system, rows = some_system(1), some_rows((30,), seed=1)
    generator = torch.Generator().manual_seed(2)
    more = torch.randn(2, system.loadings.shape[1], generator=generator, dtype=f64)
    readout = torch.cat((system.loadings, more))
    design = torch.randn(1, 30, 4, 4, generator=generator, dtype=f64)
    design[:, :, :2] = rows.design
    found = system.smooth(rows, readout, design)
    dense = Dense(system, rows, readout)
    mean, variance = dense.kriging(design[0].reshape(-1, 4))
    np.testing.assert_allclose(found.mean.reshape(-1), mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.variance.reshape(-1), variance, rtol=1e-8, atol=1e-8)


def test_corrections_are_the_means_of_other_targets() -> None:
    system, rows = some_system(2), some_rows((20, 11), seed=2)
    generator = torch.Generator().manual_seed(3)
    targets = torch.randn(2, 20, 2, 3, generator=generator, dtype=f64)
    found = system.corrections(rows, targets, system.loadings, rows.design)
    for s in range(3):
        other = replace(rows, targets=targets[..., s])
        expected = system.smooth(other, system.loadings, rows.design).mean
        seen = torch.arange(20) < torch.tensor([20, 11])[:, None]  # rows after the end are padding
        np.testing.assert_allclose(found[..., s][seen], expected[seen], rtol=1e-9, atol=1e-9)


def test_an_output_that_is_never_observed_changes_nothing() -> None:
    system, rows = some_system(3), some_rows(seed=3)
    rows = replace(rows, observed=rows.observed & torch.tensor([True, False]))
    alone = System(
        system.decay, system.frequency, system.block, system.loadings[:1], system.noise[:1]
    )
    design = rows.design[:, :, :1, ::2]
    own = Observations(rows.timeline, rows.targets[..., :1], rows.observed[..., :1], design)
    np.testing.assert_allclose(system.evidence(rows), alone.evidence(own), rtol=1e-12)
    found = system.smooth(rows, system.loadings, rows.design)
    expected = alone.smooth(own, alone.loadings, design)
    np.testing.assert_allclose(found.mean[..., :1], expected.mean, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.variance[..., :1], expected.variance, rtol=1e-10)
    assert bool(found.variance.isfinite().all())
    assert found.weights[0, 1] == 0


def test_a_panel_is_its_series_one_by_one() -> None:
    system, rows = some_system(4), some_rows((20, 9, 14), seed=4)
    evidence = system.evidence(rows)
    found = system.smooth(rows, system.loadings, rows.design)
    for b, length in enumerate((20, 9, 14)):
        own = one_of(rows, b)
        np.testing.assert_allclose(evidence[b], system.evidence(own)[0], rtol=1e-12)
        expected = system.smooth(own, system.loadings, own.design)
        for name in ("mean", "variance"):
            np.testing.assert_allclose(
                getattr(found, name)[b, :length],
                getattr(expected, name)[0, :length],
                rtol=1e-10,
                atol=1e-10,
            )


def test_gradients_go_through_the_functions_of_unknown_weight() -> None:
    system, rows = some_system(5), some_rows((15,), seed=5)
    shape = rows.design.shape
    start = rows.design + 0.1 * torch.randn(shape, generator=torch.Generator(), dtype=f64)

    def evidence(design: Tensor) -> Tensor:
        return system.evidence(replace(rows, design=design))[0]

    def dense(design: Tensor) -> Tensor:
        return Dense(system, replace(rows, design=design), system.loadings).restricted()

    (found,) = torch.autograd.grad(evidence(leaf := start.clone().requires_grad_()), leaf)
    (expected,) = torch.autograd.grad(dense(leaf := start.clone().requires_grad_()), leaf)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_functions_that_cannot_be_told_apart_share_what_is_known_of_their_sum() -> None:
    """A constant known input beside a constant: predictions are those without it."""
    system, rows = some_system(6), some_rows(trend=False, seed=6)
    twice = replace(rows, design=torch.cat((rows.design, 0.3 * rows.design), -1))
    found = system.smooth(twice, system.loadings, twice.design)
    expected = system.smooth(rows, system.loadings, rows.design)
    # Weights are told apart by 1e-11 of their information, so 1e-16 of it becomes 1e-5 of them.
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-4)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-4)


def test_weights_do_not_depend_on_their_units() -> None:
    generator = torch.Generator().manual_seed(7)
    root = torch.randn(1, 5, 9, generator=generator, dtype=f64)
    gram, units = root @ root.mT, torch.tensor([1.0, 1e-9, 1e9, 1e-5, 1.0], dtype=f64)
    first, other = solve_weights(gram), solve_weights(units[:, None] * gram * units)
    np.testing.assert_allclose(other.estimate * units[1:], first.estimate, rtol=1e-9)
    np.testing.assert_allclose(other.quadratic, first.quadratic, rtol=1e-9)
    np.testing.assert_allclose(other.log_det - 2 * units[1:].log().sum(), first.log_det, rtol=1e-9)
