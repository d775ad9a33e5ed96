"""Where plane waves over a table start: at the settings that make the targets most probable.

    log N(y; 0, ΦΦᵀ + b²11ᵀ + σ²I) + log p(ℓ, γ)   greatest over ℓ, the ODE, amplitudes and σ²

Φ are the waves of ω = ε/ℓ, with ε as the layer drew them: every input of every force has its own
lengthscale, so that one without influence is left out. Settings are found on some rows with some
waves; the noise and q(W), which is then the exact posterior, on all rows with all waves.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.layers import FourierLayer
from deeplfm.likelihoods import Likelihood

_OFFSET = 10.0  # prior standard deviation b of the offset
_FIRST_NOISE = 0.1  # variance, of targets that have 1
_ROWS, _WAVES = 1000, 300  # that settings are found with; waves of all forces together
_STEPS, _MEMORY = 40, 20  # of L-BFGS
_SLOWEST, _FASTEST = 2.5, 0.6  # factors from the lengthscale of a typical force to those of several
_SPREAD = 1.0  # prior standard deviation of log ℓ and of the logarithms of the ODE's numbers
_NOISES = (1e-4, 2.0, 400)  # least, greatest, and how many are compared
_AT_ONCE = 2**22  # numbers of Φ that exist at a time


class Regression(NamedTuple):
    """Sums over rows that a linear regression needs: ΦᵀΦ, Φᵀy, yᵀy and how many rows."""

    gram: Float[Tensor, "F F"]
    moment: Float[Tensor, " F"]
    square: Float[Tensor, ""]
    rows: int

    def best_noise(self) -> float:
        """The σ² of greatest evidence, among those that differ by a few percent."""
        values, vectors = torch.linalg.eigh(self.gram)
        values = values.clamp(min=0)
        along = (vectors.T @ self.moment).square()
        low, high, count = _NOISES
        noise = torch.logspace(math.log10(low), math.log10(high), count, dtype=self.gram.dtype)
        ratio = values / noise[:, None]
        explained = (along / noise[:, None].square() / (1 + ratio)).sum(1)
        evidence = explained - self.square / noise - self.rows * noise.log() - ratio.log1p().sum(1)
        return float(noise[evidence.argmax()])


def log_evidence(
    phi: Float[Tensor, "N F"], y: Float[Tensor, " N"], noise: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """log N(y; 0, ΦΦᵀ + σ²I), by the smaller of ΦᵀΦ and ΦΦᵀ, with gradients."""
    rows, size = phi.shape
    if size < rows:
        precision = phi.T @ phi / noise + torch.eye(size, dtype=phi.dtype)
        lower = torch.linalg.cholesky(precision)
        whitened = torch.linalg.solve_triangular(lower, (phi.T @ y / noise)[:, None], upper=False)
        distance = y.square().sum() / noise - whitened.square().sum()
        determinant = 2 * lower.diagonal().log().sum() + rows * noise.log()
    else:
        lower = torch.linalg.cholesky(phi @ phi.T + noise * torch.eye(rows, dtype=phi.dtype))
        distance = torch.linalg.solve_triangular(lower, y[:, None], upper=False).square().sum()
        determinant = 2 * lower.diagonal().log().sum()
    density: Tensor = -(distance + determinant + rows * math.log(2 * math.pi)) / 2
    return density


def plane_waves(
    layer: FourierLayer, x: Float[Tensor, "N P"], output: int, most: int | None = None
) -> Float[Tensor, "N F"]:
    """Φ of an output at the frequencies of the prior, and a column for the offset, with gradients.

    most: how many waves of each force, all by default; fewer are as strong together.
    """
    frequencies = layer.frequencies
    omega = frequencies.noise / frequencies.lengthscale()[:, :, None, :]
    omega = omega if frequencies.scales is None else omega * frequencies.scales
    omega = omega[:, :, :most]
    forces, count, inputs = omega.shape[1:]
    real, imag = (part[0, output] for part in layer.waves(omega[None], copy=False).response())
    phase = x @ omega[output].reshape(-1, inputs).T
    cosine, sine = phase.cos(), phase.sin()
    waves = torch.stack([cosine * real - sine * imag, sine * real + cosine * imag], dim=1)
    ordered = waves.reshape(len(x), 2, forces, count).transpose(1, 2).reshape(len(x), -1)
    return torch.cat([ordered, x.new_full((len(x), 1), _OFFSET)], dim=1)


def start_by_evidence(
    layer: FourierLayer,
    values: Float[Tensor, "N P"],
    targets: Float[Tensor, "N D"],
    likelihood: Likelihood,
    generator: torch.Generator,
    *,
    keep_lengthscale: bool = False,
) -> None:
    """Start the last layer and the noise at the evidence of `targets` (NaN = gap) at `values`."""
    layer.frequencies.noise.copy_(orthogonal_normals(layer.frequencies.noise, generator))
    noise = _find_settings(layer, values, targets, generator, keep_lengthscale)
    solved = []
    with torch.no_grad():
        ell = layer.frequencies.lengthscale()[:, :, None, :]
        omega = layer.frequencies.noise / ell
        if layer.frequencies.scales is not None:
            omega = omega * layer.frequencies.scales
        layer.frequencies.start(omega, (0.1 / ell).expand_as(omega), ell[:, :, 0].clone())
        for output, y in enumerate(targets.T):
            seen = ~y.isnan()
            regression = regression_on(layer, values[seen], y[seen], output)
            noise[output] = regression.best_noise()
            precision = regression.gram / noise[output]
            precision.diagonal().add_(1)
            lower = torch.linalg.cholesky(precision)
            mean = torch.cholesky_solve((regression.moment / noise[output])[:, None], lower)[:, 0]
            solved.append((mean, precision[:-1, :-1]))
        means = torch.stack([mean for mean, _ in solved])
        precisions = torch.stack([precision for _, precision in solved])
        layer.weights.set(means[:, :-1], layer.weights.closest_factor(precisions))
        layer.offset.copy_(_OFFSET * means[:, -1])
    likelihood.start_noise(noise)


def orthogonal_normals(like: Float[Tensor, "*batch R P"], generator: torch.Generator) -> Tensor:
    """Standard normals [..., R, P] of which P at a time are orthogonal, each distributed as before.

    Their waves repeat each other less than independent ones, so that fewer are needed.
    """
    *batch, count, inputs = like.shape
    blocks = (*batch, -(-count // inputs), inputs, inputs)
    drawn = torch.randn(blocks, generator=generator, dtype=torch.float64)
    lengths = torch.randn(blocks, generator=generator, dtype=torch.float64).norm(dim=-1)
    turned, upper = torch.linalg.qr(drawn)
    turned = turned * upper.diagonal(dim1=-2, dim2=-1).sign()[..., None, :]
    rows: Tensor = (turned * lengths[..., None]).flatten(-3, -2)
    return rows[..., :count, :].to(like)


def regression_on(
    layer: FourierLayer, x: Float[Tensor, "N P"], y: Float[Tensor, " N"], output: int
) -> Regression:
    """The sums of one output over all rows, a few at a time."""
    size = 2 * layer.frequencies.noise[0, ..., 0].numel() + 1
    gram, moment = x.new_zeros(size, size), x.new_zeros(size)
    for some, targets in zip(
        *(part.split(max(1, _AT_ONCE // size)) for part in (x, y)), strict=True
    ):
        phi = plane_waves(layer, some, output)
        gram += phi.T @ phi
        moment += phi.T @ targets
    return Regression(gram, moment, y.square().sum(), len(y))


def _find_settings(
    layer: FourierLayer,
    values: Float[Tensor, "N P"],
    targets: Float[Tensor, "N D"],
    generator: torch.Generator,
    keep_lengthscale: bool,
) -> Float[Tensor, " D"]:
    """Move lengthscales, the ODE and amplitudes to where evidence is greatest; the noise there."""
    if not keep_lengthscale:
        _typical_lengthscales(layer)
    forces, count = layer.frequencies.noise.shape[1:3]
    most = min(count, max(1, _WAVES // forces))
    rows = [_some(~y.isnan(), generator) for y in targets.T]
    amplitude = _unit_amplitude(layer, values, most).requires_grad_()
    noise = torch.full((len(rows),), math.log(_FIRST_NOISE), dtype=values.dtype, requires_grad=True)
    physics = [raw for raw in layer.greens_function.parameters() if raw.requires_grad]
    lengthscale = layer.frequencies.lengthscale.raw
    ruled = physics if keep_lengthscale or lengthscale is None else [lengthscale, *physics]
    centers = [raw.detach().clone() for raw in ruled]

    def loss() -> Tensor:
        total = torch.zeros((), dtype=values.dtype)
        for output, own in enumerate(rows):
            phi = plane_waves(layer, values[own], output, most)
            scale = amplitude[output].exp().repeat_interleave(2 * most)
            phi = phi * torch.cat([scale, scale.new_ones(1)])
            variance = _NOISES[0] + noise[output].exp()
            evidence = log_evidence(phi, targets[own, output], variance)
            total = total - evidence / max(1, len(own))
        away = [
            ((raw - center) / _SPREAD).square().sum()
            for raw, center in zip(ruled, centers, strict=True)
        ]
        return total + sum(away) / (2 * max(1, *map(len, rows)))

    _minimise(loss, [amplitude, noise, *ruled])
    with torch.no_grad():
        per_input = amplitude.exp() ** (1 / layer.num_inputs)
        layer.sensitivities.mul_(per_input[..., None])
    return noise.detach().exp()


def _minimise(loss: Callable[[], Tensor], parameters: Sequence[Tensor]) -> None:
    """Move `parameters` to the least loss that L-BFGS meets; it ends where a loss has no value."""
    optimiser = torch.optim.LBFGS(
        parameters, max_iter=_STEPS, history_size=_MEMORY, line_search_fn="strong_wolfe"
    )
    least, best = math.inf, [parameter.detach().clone() for parameter in parameters]

    def again() -> Tensor:
        nonlocal least, best
        value = loss()
        if float(value.detach()) < least:
            least = float(value.detach())
            best = [parameter.detach().clone() for parameter in parameters]
        slopes = torch.autograd.grad(value, parameters)
        for parameter, slope in zip(parameters, slopes, strict=True):
            parameter.grad = slope
        return value

    # A line search may try numbers at which a matrix is not positive definite any more.
    with contextlib.suppress(torch.linalg.LinAlgError):  # type: ignore[attr-defined]
        optimiser.step(again)
    with torch.no_grad():
        for parameter, value in zip(parameters, best, strict=True):
            parameter.copy_(value)
            parameter.grad = None


def _typical_lengthscales(layer: FourierLayer) -> None:
    """√P for a force over P inputs of spread 1; several forces are slower and faster than that."""
    shape = layer.frequencies.lengthscale().shape
    factors = (
        torch.ones(1)
        if shape[1] == 1
        else torch.logspace(math.log10(_SLOWEST), math.log10(_FASTEST), shape[1])
    )
    typical = math.sqrt(shape[2]) * factors.double()[None, :, None]
    layer.frequencies.lengthscale.set(typical.expand(shape))


def _unit_amplitude(layer: FourierLayer, values: Tensor, most: int) -> Float[Tensor, "D Q"]:
    """Logarithms of what makes the prior variance of an output 1, shared by its forces."""
    forces = layer.frequencies.noise.shape[1]
    with torch.no_grad():
        size = [
            plane_waves(layer, values[:1], output, most)[0, :-1].unflatten(0, (forces, -1))
            for output in range(layer.num_outputs)
        ]
        power = torch.stack(size).square().sum(-1).clamp(min=1e-300)  # the same at every input
    return -(power * forces).log() / 2


def _some(seen: Tensor, generator: torch.Generator) -> Tensor:
    """Some of the rows that were observed."""
    rows = seen.nonzero()[:, 0]
    return rows[torch.randperm(len(rows), generator=generator)[:_ROWS]]
