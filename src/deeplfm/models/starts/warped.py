"""Where a deep model of an oscillating series starts: its hidden function is the phase itself.

    φ' + γφ = u:  a phase is driven by its rate;   y_d = Σ_k a_kd(φ) cos(kφ - ψ_kd) + slow motion

Both layers are linear regressions in turn: shapes given draws of the phase, and the phase given the
slopes of the shapes (Gauss-Newton), each with its posterior covariance and the prior scales that
its own evidence asks for. What q knows of the phase is paid for once.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.layers import FourierLayer
from deeplfm.likelihoods import Likelihood
from deeplfm.models.skip import Skip
from deeplfm.models.starts.base import FIRST_NOISE, Posterior, Start, posterior_of_weights
from deeplfm.models.starts.features import features_at
from deeplfm.models.starts.harmonics import about_harmonics, about_rest
from deeplfm.models.starts.oscillation import Oscillation

_ROUNDS, _DRAWS = 6, 3  # of both layers in turn; of the phase that a shape is fitted to
_STRAY = 0.05  # radians about the phase that was found, before shapes say it better
_ORIGIN = 30.0  # radians between the origin of zero memory and the data: transients are over
_PHASE_DECAY, _SHAPE_DECAY = 0.01, 0.1  # a phase forgets nothing; a shape after about two periods
_QUIET = 1e-3  # share of what is not the phase in the features of the last layer
_STEP = 1e-4  # radians, of a derivative
_LEAST = 1e-3  # of a prior scale in one update


def start_warped(
    layers: Sequence[FourierLayer],
    skip: Skip,
    likelihood: Likelihood,
    start: Start,
    oscillation: Oscillation,
) -> None:
    """Start all layers: the first at the phase, the last at shapes of it; others pass it on."""
    x = torch.tensor(start.x)
    wanted = torch.tensor(oscillation.phase(start.x[:, 0]))
    wanted = wanted - wanted[x[:, 0].argmin()]
    phase = _Phase(layers[0], x, oscillation.frequency, start)
    phase.fit(torch.full_like(wanted, _STRAY**-2), wanted, 8)
    shapes = _Shapes(layers[-1], skip, x, layers[-2].num_outputs, phase.values(), start)
    drawn = phase.values()[None]
    for left in reversed(range(_ROUNDS)):
        shapes.fit(drawn)
        if left:
            phase.fit(*shapes.about_phase(drawn), 3)
            drawn = phase.draws(_DRAWS, start.generator)
    phase.write()
    shapes.write(likelihood)
    for below, layer in itertools.pairwise(layers[:-1]):
        _pass_on(layer, skip, x, below.num_outputs, phase.values(), start)


@final
class _Phase:
    """The first function of a layer: φ = Φ W, W ~ N(0, s²), s by the evidence of two groups."""

    def __init__(self, layer: FourierLayer, x: Tensor, fastest: float, start: Start) -> None:
        """A phase over the first column of x [N, P], with a rate that changes so fast at most."""
        self.layer = layer
        span = float(x[:, 0].max() - x[:, 0].min())
        still = about_rest(layer, fastest, 2 * math.pi / span, start)
        _quieten(layer)
        if start.own_physics:
            decays = layer.greens_function.value("decay")
            layer.greens_function.match_decay(torch.full_like(decays, _PHASE_DECAY))
        self.phi = features_at(layer, x)[:, 0]
        forces = layer.sensitivities.shape[1]
        self.groups = still.repeat(2 * forces)
        # One scale for a group: the ODE makes what is fast in a phase as small as it should be.
        power = self.phi.square().mean(0)
        self.std = torch.zeros_like(power)
        for group, size in ((0, span * fastest), (1, 0.3)):
            chosen = self.groups == group
            self.std[chosen] = size / power[chosen].sum().clamp(min=1e-300).sqrt()
        none = torch.zeros(0)
        self.found = Posterior(none, none, none, 0.0)  # `fit` comes first

    def fit(self, precision: Float[Tensor, " N"], wanted: Float[Tensor, " N"], rounds: int) -> None:
        """Its posterior given values that are known so well; scales follow in all but the last."""
        root = precision.sqrt()
        rows, noise = (root[:, None] * self.phi)[:, None], torch.ones(1, dtype=root.dtype)
        for left in reversed(range(rounds)):
            self.found = posterior_of_weights(
                *(rows, (root * wanted)[:, None], noise),
                estimate=False,
                with_offset=False,
                prior_std=self.std,
            )
            if left:
                self.std = _scaled(self.std, self.found, self.groups)

    def values(self) -> Float[Tensor, " N"]:
        return self.phi @ self.found.mean + _ORIGIN

    def draws(self, count: int, generator: torch.Generator) -> Float[Tensor, "K N"]:
        lower = torch.linalg.cholesky(self.found.precision)
        noise = torch.randn(count, len(lower), generator=generator, dtype=lower.dtype)
        weights: Tensor = torch.linalg.solve_triangular(lower.mT, noise.mT, upper=True).mT
        return self.values() + weights @ self.phi.mT

    def write(self) -> None:
        """q of the first function; the others keep their prior, of variance 1."""
        layer, q = self.layer, self.layer.weights
        one = q.shift.shape[-1]
        quiet = self.phi.square().mean(0).sum().rsqrt().expand(len(self.std))
        mixing = layer.output_sensitivities
        others = 0 if mixing is not None else len(q.shift) - 1
        stds = torch.stack([self.std, *[quiet] * others]).reshape(-1, one)
        unit = stds.square().mean().sqrt()
        stds = stds / unit
        mean, precision = torch.zeros_like(stds), torch.diag_embed(stds**-2)
        if mixing is not None:
            with torch.no_grad():
                mixing.fill_(_QUIET)
                mixing[0] = 1.0
            mean = (self.found.mean / unit).reshape(mean.shape)
            precision = (self.found.precision * unit**2)[None]
        else:
            mean[0] = self.found.mean / unit
            precision[0] = self.found.precision * unit**2
        q.set(mean, q.closest_factor(precision), stds)
        with torch.no_grad():
            _amplify(layer, unit)
            layer.offset.zero_()
            layer.offset[0] = _ORIGIN


class _Problem(NamedTuple):
    """Outputs that share weights, and their mixing of forces [Dg, Q], if any."""

    outputs: slice
    mixing: Tensor | None


@final
class _Shapes:
    """The last layer: every output a sum of waves of the phase."""

    def __init__(
        self,
        layer: FourierLayer,
        skip: Skip,
        x: Tensor,
        hidden: int,
        phase: Float[Tensor, " N"],
        start: Start,
    ) -> None:
        self.layer, self.skip, self.x, self.hidden = layer, skip, x, hidden
        self.y = torch.tensor(start.y)
        outputs = self.y.shape[1]
        sizes, groups = about_harmonics(layer, phase.numpy(), start)
        if start.own_physics:
            decays = layer.greens_function.value("decay")
            layer.greens_function.match_decay(torch.full_like(decays, _SHAPE_DECAY))
        _quieten(layer)
        mixing = layer.output_sensitivities
        if mixing is None:
            self.problems = [_Problem(slice(d, d + 1), None) for d in range(outputs)]
        else:
            self.problems = [_Problem(slice(0, outputs), mixing.detach()[..., None])]
        waves = features_at(layer, self._inputs(phase)).square().mean(0).clamp(min=1e-300).sqrt()
        self.stds = list((sizes / waves[: len(sizes)]).unbind())
        self.groups = list(groups.unbind())
        self.noise = torch.full((outputs,), FIRST_NOISE, dtype=torch.float64)
        self.found: list[Posterior] = []
        self.phi: list[Tensor] = []  # at each draw of the phase

    def fit(self, drawn: Float[Tensor, "K N"]) -> None:
        """Posteriors and noise given draws of the phase; then scales, and posteriors again."""
        self.phi = [self._features(phase) for phase in drawn]
        phi = torch.cat(self.phi)
        y = self.y.repeat(len(drawn), 1)
        for again in (True, True, False):
            self.found = [
                posterior_of_weights(
                    *(self._mixed(phi, one), y[:, one.outputs], self.noise[one.outputs]),
                    estimate=again,
                    repeated=len(drawn),
                    prior_std=std,
                )
                for one, std in zip(self.problems, self.stds, strict=True)
            ]
            if again:
                parts = zip(self.stds, self.found, self.groups, strict=True)
                self.stds = [_scaled(*part) for part in parts]

    def about_phase(self, drawn: Float[Tensor, "K N"]) -> tuple[Tensor, Tensor]:
        """How well outputs tell the phase that they were fitted to [N], and what they say it is."""
        seen, y = ~self.y.isnan(), self.y.nan_to_num()
        pull, push = torch.zeros((2, len(y)), dtype=y.dtype)
        lowers = [torch.linalg.cholesky(one.precision) for one in self.found]
        for phase, phi in zip(drawn, self.phi, strict=True):
            slopes = (self._features(phase + _STEP) - phi) / _STEP
            for one, found, lower in zip(self.problems, self.found, lowers, strict=True):
                rise = self._mixed(slopes, one)  # N Dg F
                slope = rise @ found.mean
                error = y[:, one.outputs] - self._mixed(phi, one) @ found.mean - found.offset
                solved = torch.linalg.solve_triangular(lower, rise.flatten(0, 1).mT, upper=False)
                steep = slope.square() + solved.square().sum(0).reshape(slope.shape)
                known = seen[:, one.outputs] / (self.noise[one.outputs] * len(drawn))
                pull += (known * steep).sum(1)
                push += (known * (slope * error + steep * (phase - _ORIGIN)[:, None])).sum(1)
        pull = pull.clamp(min=1e-12)
        return pull, push / pull

    def write(self, likelihood: Likelihood) -> None:
        layer, q = self.layer, self.layer.weights
        shape = q.shift.shape
        stds = torch.stack(self.stds)
        unit = stds.square().mean(1).sqrt()  # of each problem
        scale = unit[:, None]
        mean = torch.stack([one.mean for one in self.found]) / scale
        precision = torch.stack([one.precision for one in self.found]) * scale[..., None] ** 2
        q.set(mean.reshape(shape), q.closest_factor(precision), (stds / scale).reshape(shape))
        with torch.no_grad():
            _amplify(layer, unit[: len(layer.sensitivities), None, None])
            layer.offset.copy_(torch.cat([one.offset for one in self.found]))
        likelihood.start_noise(self.noise)

    def _inputs(self, phase: Float[Tensor, " N"]) -> Float[Tensor, "N P"]:
        hidden = torch.zeros(len(phase), self.hidden, dtype=phase.dtype)
        hidden[:, 0] = phase
        return self.skip(hidden[None], self.x)[0]

    def _features(self, phase: Float[Tensor, " N"]) -> Float[Tensor, "N D F"]:
        phi = features_at(self.layer, self._inputs(phase))
        return phi.expand(-1, self.y.shape[1], -1)

    def _mixed(self, phi: Float[Tensor, "N D F"], one: _Problem) -> Float[Tensor, "N D2 F"]:
        part = phi[:, one.outputs]
        if one.mixing is None:
            return part
        mixed: Tensor = part.unflatten(-1, (one.mixing.shape[1], -1)) * one.mixing
        return mixed.flatten(-2)


def _quieten(layer: FourierLayer) -> None:
    """Hardly anything of a sum over inputs but the first."""
    if not layer.plane_wave:
        with torch.no_grad():
            layer.sensitivities[..., 1:] *= _QUIET


def _amplify(layer: FourierLayer, factor: Tensor) -> None:
    """Features that are `factor` times as large."""
    along = slice(0, 1) if layer.plane_wave else slice(None)
    layer.sensitivities[..., along] *= factor


def _scaled(std: Tensor, found: Posterior, groups: Tensor) -> Tensor:
    """Prior scales after one step of expectation maximisation, one factor for each group."""
    covariance = torch.cholesky_inverse(torch.linalg.cholesky(found.precision))
    size = (found.mean.square() + covariance.diagonal()) / std.square()
    count = int(groups.max()) + 1
    sums = torch.zeros(2, count, dtype=std.dtype)
    sums.index_add_(1, groups, torch.stack([size, torch.ones_like(size)]))
    factors = (sums[0] / sums[1].clamp(min=1)).sqrt().clamp(min=_LEAST)
    return std * factors[groups]


def _pass_on(
    layer: FourierLayer, skip: Skip, x: Tensor, hidden: int, phase: Tensor, start: Start
) -> None:
    """A layer between whose first function is that of the layer below: waves that hardly turn."""
    values = torch.zeros(len(phase), hidden, dtype=phase.dtype)
    values[:, 0] = phase
    inputs = skip(values[None], x)[0]
    about = _Phase(layer, inputs, 4 * math.pi / float(phase.max() - phase.min()), start)
    about.fit(torch.full_like(phase, _STRAY**-2), phase - _ORIGIN, 8)
    about.write()
