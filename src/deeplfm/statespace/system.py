"""SYSTEM: a whole Markov model as numbers, and what it says about rows of observations.

    z = (x_1…x_K, y_1…y_K, w_1…w_M):  oscillators (λ, ω) beside one dense block
    y_d = h_d·z + Σ_p β_p X_dp(t) + noise,   β with a flat prior (means, trends, gains) or N(0, 1)

Functions of unknown weight are columns beside the data: one filter serves all of them, and their
weights follow by generalised least squares. So flat priors are exactly flat, and the evidence is
the restricted likelihood.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from deeplfm.errors import NumericalError
from deeplfm.statespace.blocks import Block
from deeplfm.statespace.timeline import Timeline
from deeplfm.sums import Backend, markov_evidence, markov_smooth

_TINY = 1e-11  # of the information about a weight: below it the data say nothing about it


@final
@dataclass(frozen=True, eq=False)
class Observations:
    """Rows of B series: targets, which of them were observed, and functions of unknown weight.

    `scale` multiplies the variance of the noise of every entry, where it is given. `device` is
    where sums over the rows are computed; tables and results are on the CPU. `faster` is how much
    faster than usual the oscillators turn on the step to a row (`clock.py`). The last `believed` of
    the functions have a weight that is N(0, 1) before data come; those before have a flat prior.
    """

    timeline: Timeline
    targets: Float[Tensor, "B N D"]
    observed: Bool[Tensor, "B N D"]
    design: Float[Tensor, "B N D P"]
    scale: Float[Tensor, "B N D"] | None = None
    device: str = "cpu"
    faster: Float[Tensor, "B N"] | None = None
    believed: int = 0

    @property
    def columns(self) -> Float[Tensor, "B N D C"]:
        """The targets, then the functions of unknown weight."""
        return torch.cat((self.targets[..., None], self.design), -1)


class Smoothed(NamedTuple):
    """Functions given all rows: mean and variance, and the weights with their covariance."""

    mean: Float[Tensor, "B N E"]
    variance: Float[Tensor, "B N E"]
    weights: Float[Tensor, "B P"]
    weight_covariance: Float[Tensor, "B P P"]


class Weights(NamedTuple):
    """Unknown weights by least squares: estimates, covariance, and what the evidence needs."""

    estimate: Float[Tensor, "B P"]
    covariance: Float[Tensor, "B P P"]
    quadratic: Float[Tensor, " B"]
    log_det: Float[Tensor, " B"]
    num_seen: Float[Tensor, " B"]


@final
@dataclass(frozen=True, eq=False)
class System:
    """K oscillators (decay λ and frequency ω per unit of time), a block of M states, D outputs.

    loadings: [D, 2K + M], of every output on every state; noise: variances [D].
    """

    decay: Float[Tensor, " K"]
    frequency: Float[Tensor, " K"]
    block: Block | None
    loadings: Float[Tensor, "D s"]
    noise: Float[Tensor, " D"]

    def evidence(
        self,
        rows: Observations,
        backend: Backend = "auto",
        probe: Float[Tensor, " W"] | None = None,
    ) -> Float[Tensor, " B"]:
        """The log evidence of every series: of what its unknown weights do not change.

        With a `probe`, normal numbers for the weights that are believed, its gradients are those of
        draws of these weights given the rows: unbiased (Fisher), and columns fewer.
        """
        if probe is not None:
            return self._evidence_by_draws(rows, backend, probe)
        return self._evidence_and_weights(rows, backend)[0]

    def _evidence_and_weights(
        self, rows: Observations, backend: Backend
    ) -> tuple[Float[Tensor, " B"], Weights]:
        log_det, gram = markov_evidence.on(rows.device, backend, *self._model(rows))
        found = solve_weights(gram, rows.believed)
        count = rows.observed.sum((1, 2)).to(log_det) - found.num_seen
        constant = count * math.log(2 * math.pi)
        return -(log_det + found.log_det + found.quadratic + constant) / 2, found

    def _evidence_by_draws(
        self, rows: Observations, backend: Backend, probe: Float[Tensor, " W"]
    ) -> Float[Tensor, " B"]:
        """∇ log p(y) = E[∇ log p(y | w) | y]: of a draw and its mirror image about the mean.

        Their mean is that of two columns: what the mean of the weights leaves, and what is drawn.
        """
        with torch.no_grad():
            value, weights = self._evidence_and_weights(rows, backend)
            last = weights.covariance[:, -rows.believed :, -rows.believed :]
            mean = weights.estimate[:, -rows.believed :]
            drawn = torch.linalg.cholesky(last) @ probe
        flat, believed = rows.design.split(
            [rows.design.shape[-1] - rows.believed, rows.believed], -1
        )
        left = rows.targets - torch.einsum("bndw,bw->bnd", believed, mean)
        added = torch.einsum("bndw,bw->bnd", believed, drawn)
        plain = replace(rows, targets=left, design=flat, believed=0)
        model = self._model(plain)
        model[7] = torch.cat((left[..., None], added[..., None], flat), -1)
        log_det, gram = markov_evidence.on(rows.device, backend, *model)
        kept = [k for k in range(gram.shape[1]) if k != 1]
        first, second = solve_weights(gram[:, kept][:, :, kept]), solve_weights(gram[:, 1:, 1:])
        slope = -(log_det + first.log_det + first.quadratic + second.quadratic) / 2
        return value + slope - slope.detach()

    def weights(self, rows: Observations, backend: Backend = "auto") -> Weights:
        """The unknown weights of every series."""
        return self._evidence_and_weights(rows, backend)[1]

    def smooth(
        self,
        rows: Observations,
        readout: Float[Tensor, "E s"],
        design: Float[Tensor, "B N E P"],
        backend: Backend = "auto",
    ) -> Smoothed:
        """E functions readout·z + design·β at every row, given all of them; without gradients."""
        with torch.no_grad():
            model = self._model(rows)
            means, variance, _, gram = markov_smooth.on(rows.device, backend, *model, readout)
            found = solve_weights(gram, rows.believed)
            # What a unit of each weight adds to the functions, beyond what the state takes back.
            means[..., 1:].neg_().add_(design)
            mean = means[..., 0] + torch.einsum("bnep,bp->bne", means[..., 1:], found.estimate)
            spread = means[..., 1:] @ found.covariance[:, None]
            variance += (spread * means[..., 1:]).sum(-1)
        return Smoothed(mean, variance, found.estimate, found.covariance)

    def corrections(
        self,
        rows: Observations,
        targets: Float[Tensor, "B N D S"],
        readout: Float[Tensor, "E s"],
        design: Float[Tensor, "B N E P"],
        backend: Backend = "auto",
    ) -> Float[Tensor, "B N E S"]:
        """The means that `smooth` would have for S other sets of targets, from one pass."""
        with torch.no_grad():
            model = self._model(rows)
            model[7] = torch.cat((targets, rows.design), -1)
            means, _, _, gram = markov_smooth.on(rows.device, backend, *model, readout)
            count = targets.shape[-1]
            found = solve_weights(gram[:, count - 1 :, count - 1 :], rows.believed)
            estimates = found.covariance @ gram[:, count:, :count]  # [B, P, S]
            spread = design - means[..., count:]
            return means[..., :count] + spread @ estimates[:, None]

    def moves(
        self,
        steps: Float[Tensor, " T"],
        early: Bool[Tensor, " T"] | None = None,
        faster: Float[Tensor, " T"] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """λΔ, ωΔ, Φ, Q and P of the sums, for distinct steps; some may be `early` or `faster`."""
        turning = steps if faster is None else steps * (1 + faster)
        decay, turn = steps[:, None] * self.decay, turning[:, None] * self.frequency
        if self.block is None:
            none = self.loadings.new_zeros(len(steps), 0, 0)
            return decay, turn, none, none, self.loadings.new_zeros(0, 0)
        phi, noise = self.block.moves(steps)
        if early is not None:
            parts = zip(self.block.early_moves(steps), (phi, noise), strict=True)
            phi, noise = (torch.where(early[:, None, None], *pair) for pair in parts)
        return decay, turn, phi, noise, self.block.start()

    def moves_between(
        self, line: Timeline, faster: Float[Tensor, "B N"] | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """`moves` of the rows of a timeline by their clock, and which of them leads to each row."""
        steps, step, early, own = line.steps, line.step, line.early, None
        if faster is not None:
            which, own, step = _distinct(line.step, faster)
            steps, early = steps[which], None if early is None else early[which]
        return *self.moves(steps.to(self.loadings), early, own), step

    def _model(self, rows: Observations) -> list[Tensor]:
        line = rows.timeline
        noise = self.noise.expand(1, 1, -1)
        noise = noise if rows.scale is None else noise * rows.scale
        *moves, step = self.moves_between(line, rows.faster)
        return [*moves, self.loadings, noise, rows.columns, step, rows.observed]


def _distinct(
    step: Int[Tensor, "B N"], faster: Float[Tensor, "B N"]
) -> tuple[Int[Tensor, " T"], Float[Tensor, " T"], Int[Tensor, "B N"]]:
    """Distinct pairs of a step and its clock, and which of them leads to each row."""
    pairs = (step.numpy() + 1j * faster.numpy()).ravel()
    own, which = np.unique(pairs, return_inverse=True)
    number = torch.from_numpy(which.astype(np.int32)).view(step.shape)
    return torch.from_numpy(own.real.astype(np.int64)), torch.from_numpy(own.imag.copy()), number


def solve_weights(gram: Float[Tensor, "B C C"], believed: int = 0) -> Weights:
    """Generalised least squares from K⁻¹ products of the columns; weights not seen stay at 0.

    The last `believed` weights have a prior N(0, 1), which is integrated out.
    """
    flat = gram.shape[1] - 1 - believed
    prior = torch.arange(gram.shape[1] - 1, device=gram.device) >= flat
    information = gram[:, 1:, 1:] + torch.diag(prior.to(gram))
    moment = gram[:, 1:, :1]
    size = information.diagonal(dim1=1, dim2=2)
    seen = (size > 0).to(gram)
    scale = torch.where(size > 0, size, 1.0).sqrt()
    # Of unit diagonal: what is tiny then is not identified, whatever its units.
    scaled = information / (scale[:, :, None] * scale[:, None])
    scaled = scaled + torch.diag_embed(1 - seen + _TINY * seen * ~prior)
    try:
        lower = torch.linalg.cholesky(scaled)
    except RuntimeError:  # of torch: not positive definite, or not a number
        raise NumericalError(
            "the state must be computable; its precision broke down, as where outputs have no "
            "noise at all or scales lie far apart. Check the data, or change the units."
        ) from None
    half = torch.linalg.solve_triangular(lower, moment / scale[..., None], upper=False)
    inverse = torch.cholesky_inverse(lower) * (seen[:, :, None] * seen[:, None])
    covariance = inverse / (scale[:, :, None] * scale[:, None])
    estimate = (covariance @ moment)[..., 0]
    quadratic = gram[:, 0, 0] - half.square().sum((1, 2))
    log_det = 2 * (lower.diagonal(dim1=1, dim2=2).log() + seen * scale.log()).sum(1)
    return Weights(estimate, covariance, quadratic, log_det, (seen * ~prior).sum(1))
