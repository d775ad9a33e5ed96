"""SITES: a posterior of paths that is the prior times scalar Gaussian sites along readouts at rows.

    q(z) ∝ p(z) Π exp(b v - Λ v²/2),   v = C z + X β,   bound = Σ E_q[log p(y | v)] - KL(q ‖ p)
    Λ ← (1 - ρ) Λ - 2 ρ ∂E/∂s²,   b ← (1 - ρ) b + ρ (∂E/∂m - 2 m ∂E/∂s²)

A likelihood need not be Gaussian: sites learn from its expectation under the marginals N(m, s²) by
natural gradients of the bound. A step is one pass of the filter and of the smoother.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.statespace.system import Observations, Smoothed, System

# E_q[log p(y | v)] of every row, from mean and variance of the readouts there, [B, N, E] each;
# 0 where nothing was observed.
Expected = Callable[[Tensor, Tensor], Tensor]

_LEAST = 1e-6  # of the precision that a readout has already: the least that a site has
_SHORTEST = 2.0**-12  # rate of a step below which none is tried


@final
@dataclass(frozen=True, eq=False)
class SitedPaths:
    """Paths with this prior and these sites.

    The loadings of `system` are the readouts C; `sites` are observed where there is one, with
    target b/Λ and variance 1/Λ = noise of the system times `scale`.
    """

    system: System
    sites: Observations

    @cached_property
    def moments(self) -> Smoothed:
        """Mean m and variance s² of every readout at every row, [B, N, E]."""
        return self.system.smooth(self.sites, self.system.loadings, self.sites.design)

    @property
    def width(self) -> Float[Tensor, "B N E"]:
        """1/Λ of every site."""
        noise = self.system.noise.detach().expand_as(self.sites.targets)
        return noise if self.sites.scale is None else noise * self.sites.scale

    def divergence(self) -> Float[Tensor, ""]:
        """KL(q ‖ p) = Σ E_q[log site] - log ∫ p · sites."""
        with torch.no_grad():
            width, found = self.width, self.moments
            squared = (self.sites.targets - found.mean).square() + found.variance
            each = torch.log(2 * math.pi * width) + squared / width
            evidence = self.system.evidence(self.sites).sum()
            return -each[self.sites.observed].sum() / 2 - evidence

    def bound(self, expected: Expected) -> float:
        """Of log p(y), from below."""
        with torch.no_grad():
            likely = expected(self.moments.mean, self.moments.variance).sum()
        return float(likely - self.divergence())

    def stepped(self, expected: Expected, rate: float) -> "SitedPaths":
        """A step of a natural gradient of the bound.

        Where the expectation is convex along a readout no site has its curvature: the least one is
        there, and still has the slope.
        """
        mean, variance = (part.clone().requires_grad_() for part in self.moments[:2])
        likely = expected(mean, variance).sum()
        by_mean, by_variance = torch.autograd.grad(likely, (mean, variance))
        with torch.no_grad():
            least = _LEAST / torch.where(variance > 0, variance, 1.0)
            precision = torch.maximum(-2 * by_variance, least)
            return self.towards(precision, by_mean + precision * mean, rate)

    def towards(
        self, precision: Float[Tensor, "B N E"], shift: Float[Tensor, "B N E"], rate: float
    ) -> "SitedPaths":
        """Sites whose Λ and b are moved by the share `rate` of the way to these."""
        own = self.width.reciprocal()
        moved = (1 - rate) * own + rate * precision
        target = ((1 - rate) * own * self.sites.targets + rate * shift) / moved
        seen, noise = self.sites.observed, self.system.noise.detach()
        scale = torch.where(seen, 1 / (moved * noise), 1.0)
        target = torch.where(seen, target, 0.0)
        return SitedPaths(self.system, replace(self.sites, targets=target, scale=scale))


def without_sites(system: System, readout: Float[Tensor, "E s"], rows: Observations) -> SitedPaths:
    """Paths of the prior: sites that say next to nothing, where `rows` are observed.

    `rows` have readouts in place of outputs; of their targets and scale nothing is used.
    """
    noise = torch.ones(len(readout), dtype=readout.dtype)
    own = replace(system, loadings=readout, noise=noise)
    unseen = replace(rows, observed=torch.zeros_like(rows.observed), scale=None)
    variance = own.smooth(unseen, readout, rows.design).variance
    scale = torch.where(variance > 0, variance, 1.0) / _LEAST
    return SitedPaths(own, replace(rows, targets=torch.zeros_like(rows.targets), scale=scale))


def learnt(
    start: SitedPaths,
    expected: Expected,
    steps: int = 50,
    rate: float = 1.0,
    tolerance: float = 1e-9,
) -> tuple[SitedPaths, list[float]]:
    """Sites after natural gradient steps, and the bound at the start and after each of them.

    A step that does not raise the bound is halved; it ends where a whole one gains less than
    `tolerance` of the bound.
    """
    paths, bounds = start, [start.bound(expected)]
    while len(bounds) <= steps and rate >= _SHORTEST:
        tried = paths.stepped(expected, rate)
        reached = tried.bound(expected)
        gain = reached - bounds[-1]
        if not gain > 0:
            if abs(gain) <= tolerance * abs(reached):
                break
            rate /= 2
            continue
        paths = tried
        bounds.append(reached)
        if gain <= tolerance * abs(reached):
            break
        rate = min(1.0, 2 * rate)
    return paths, bounds


def by_quadrature(log_density: Callable[[Tensor], Tensor], nodes: int = 20) -> Expected:
    """E_q[log p(y | v)] by Gauss and Hermite, of a log density of readouts [..., B, N, E]."""
    places, weights = np.polynomial.hermite_e.hermegauss(nodes)
    place, weight = torch.tensor(places), torch.tensor(weights / weights.sum())

    def expected(mean: Tensor, variance: Tensor) -> Tensor:
        spread = variance.clamp(min=torch.finfo(variance.dtype).tiny).sqrt()
        drawn = mean + spread * place.view(-1, *[1] * mean.ndim)
        return torch.einsum("k,k...->...", weight.to(mean), log_density(drawn))

    return expected
