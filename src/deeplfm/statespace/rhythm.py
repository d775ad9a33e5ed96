"""RHYTHM: the strongest oscillation of a state as a hidden function, and what it costs to know it.

    v = Σ_k ā_k z_k over modes near the strongest one,   phase θ = arg v
    cost = KL(q ‖ p),   q(path) ∝ p(path) · Gaussian sites along v (`sites.py`)

v is linear in the state, so its posterior is that of the smoother.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.statespace.sites import SitedPaths
from deeplfm.statespace.system import Observations, System

_NEAR = 0.3  # of the strongest frequency: modes as near as this make one rhythm
_HALVINGS, _ROUNDS = 25, 20  # by which sites get the spread, and the mean, of a path


def strongest(system: System) -> Float[Tensor, "2 s"]:
    """Readouts of the position and the velocity of the strongest rhythm, as its output sees it."""
    return rhythms(system)[0]


def rhythms(system: System) -> list[Float[Tensor, "2 s"]]:
    """The strongest rhythm, and the highest peak of the spectrum where that is another one.

    What is left of sharp beats may be strong, and broad: such a mode has no phase to follow.
    """
    with torch.no_grad():
        count = len(system.frequency)
        power = system.loadings[:, : 2 * count].square().sum(0).view(2, count).sum(0)
        if not count:
            return [torch.zeros(2, system.loadings.shape[1], dtype=power.dtype)]
        height = power / system.decay.clamp(min=torch.finfo(power.dtype).tiny)
        found = [_about(system, float(system.frequency[int(power.argmax())].abs()))]
        other = _about(system, float(system.frequency[int(height.argmax())].abs()))
        return found if torch.equal(found[0], other) else [*found, other]


def _about(system: System, centre: float) -> Float[Tensor, "2 s"]:
    """Readouts of the modes near a frequency, as the output that shows them best sees them."""
    count, loadings = len(system.frequency), system.loadings
    wave = torch.complex(loadings[:, :count], loadings[:, count : 2 * count])
    near = (system.frequency.abs() - centre).abs() < _NEAR * centre
    own = torch.where(near, wave[int((wave.abs().square() * near).sum(1).argmax())], 0)
    found = loadings.new_zeros(2, loadings.shape[1])
    found[0, :count], found[0, count : 2 * count] = own.real, own.imag
    found[1, :count], found[1, count : 2 * count] = -own.imag, own.real
    return found


def phase_moments(
    system: System, rows: Observations, directions: Float[Tensor, "2 s"]
) -> tuple[Float[Tensor, "B N"], Float[Tensor, "B N"]]:
    """Mean and variance of the phase at every row, given all."""
    return phase_of(*position(system, rows, directions))


def phase_of(
    mean: Float[Tensor, "B N 2"], covariance: Float[Tensor, "B N 2 2"]
) -> tuple[Float[Tensor, "B N"], Float[Tensor, "B N"]]:
    """Mean and variance of the phase of a position: that of a step across the radius."""
    phase = torch.atan2(mean[..., 1], mean[..., 0])
    across = torch.stack((-phase.sin(), phase.cos()), -1)
    spread = torch.einsum("bni,bnij,bnj->bn", across, covariance, across)
    return phase, spread / mean.square().sum(-1).clamp(min=1e-300)


def path_cost(
    system: System, rows: Observations, directions: Float[Tensor, "2 s"]
) -> Float[Tensor, ""]:
    """Nats that the path of a rhythm costs."""
    return path_sites(system, rows, directions).divergence()


def path_sites(system: System, rows: Observations, directions: Float[Tensor, "2 s"]) -> SitedPaths:
    """The modes of a rhythm with sites that give its path the mean, and the usual spread, of all.

    A row tells as much about the rhythm as its observed entries do.
    """
    with torch.no_grad():
        mean, covariance = position(system, rows, directions)
        wanted = covariance.diagonal(dim1=2, dim2=3)
        alone, weight = _alone(system, rows, directions)
        seen = (weight > 0)[..., None].expand_as(mean)
        size = directions.square().sum(1).mean()  # the variance of v before data come
        known = torch.where(weight > 0, weight, 1.0)[..., None].expand_as(mean)
        own = Observations(rows.timeline, mean, seen, mean.new_zeros(*mean.shape, 0),
                           size / known, rows.device, rows.faster)  # fmt: skip
        own = _as_wide(alone, own, float(wanted[seen].mean()))
        for _ in range(_ROUNDS):
            found = alone.smooth(own, alone.loadings, own.design)
            own = replace(own, targets=own.targets + torch.where(seen, mean - found.mean, 0.0))
        return SitedPaths(alone, own)


def position(
    system: System, rows: Observations, directions: Float[Tensor, "2 s"]
) -> tuple[Float[Tensor, "B N 2"], Float[Tensor, "B N 2 2"]]:
    """Mean and covariance of both coordinates; the latter from the variance of their sum."""
    readout = torch.cat((directions, directions.sum(0, keepdim=True)))
    shape = (*rows.design.shape[:2], 3, rows.design.shape[3])
    found = system.smooth(rows, readout, rows.design.new_zeros(()).expand(shape))
    x, y, both = found.variance.unbind(-1)
    across = (both - x - y) / 2
    covariance = torch.stack((torch.stack((x, across), -1), torch.stack((across, y), -1)), -1)
    return found.mean[..., :2], covariance


def _alone(
    system: System, rows: Observations, directions: Float[Tensor, "2 s"]
) -> tuple[System, Float[Tensor, "B N"]]:
    """The modes of the rhythm, seen through v alone, and what each row tells of them."""
    count = len(system.frequency)
    near = directions[:, :count].abs().sum(0) + directions[:, count : 2 * count].abs().sum(0) > 0
    both = torch.cat((near, near))
    power = system.loadings[:, : 2 * count][:, both].square().sum(1) / system.noise
    told = torch.einsum("bnd,d->bn", rows.observed.to(power), power)
    readout = directions[:, : 2 * count][:, both]
    noise = torch.ones(2, dtype=readout.dtype)
    alone = System(system.decay[near], system.frequency[near], None, readout, noise)
    return alone, told / told.max()


def _as_wide(system: System, rows: Observations, variance: float) -> Observations:
    """Sites so wide that the mean variance of a path is as wanted."""
    if rows.scale is None:
        raise TypeError("sites need a width")
    low, high = math.log(1e-12), math.log(1e12)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        tried = replace(rows, scale=math.exp(middle) * rows.scale)
        found = system.smooth(tried, system.loadings, rows.design).variance[rows.observed].mean()
        low, high = (low, middle) if float(found) > variance else (middle, high)
    return replace(rows, scale=math.exp((low + high) / 2) * rows.scale)
