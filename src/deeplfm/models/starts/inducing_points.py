"""What inducing points can reach, and where to put them.

    A with f = A v' + what no v' can reach,   reached = |A|² / prior variance

Bumps may be read from tables over lags, which are good to 1e-11 of the largest.
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.layers import InducingLayer
from deeplfm.sums import bumps_at

Values = NDArray[np.float64]

ROWS = 500  # enough to see what q can reach
_FIRST_ROWS = 16  # of those farthest from all points: where too little is reached, if anywhere
_ITERATIONS = 10
# Of a table: a fit may divide its errors by the root of the jitter.


def features_of(layer: InducingLayer, x: Float[Tensor, "N P"]) -> Float[Tensor, "N D Q M"]:
    """A, as `InducingLayer.features`: forces that have one kernel are solved for once.

    Bumps of oscillating ODEs, ten times the work of others, come from tables if there are many.
    """
    oscillates = bool(layer.greens_function.poles().imag.any())
    scale = layer.sensitivities * layer.posterior.prior.variance.sqrt()
    parts = [
        _unit_features(layer, some, approximate=oscillates)
        for some in x.split(len(x) if oscillates else ROWS)
    ]
    return torch.cat(parts) * scale[..., None].double()


def reached(layer: InducingLayer, x: Float[Tensor, "N P"]) -> Float[Tensor, "N D"]:
    """The share of the prior variance that q can change."""
    return _explained(layer, x) / layer.prior_variance(x).double()


def reaches_all(layer: InducingLayer, x: Float[Tensor, "N P"], least: float) -> bool:
    """Whether the share is `least` or more everywhere; those far from all points are asked first.

    A few of these settle it wherever the answer is no.
    """
    ell, z = layer.posterior.prior.lengthscale[0], layer.posterior.inducing_inputs.flatten(0, -2)
    farthest = torch.cdist(x / ell, z / ell).min(1).values.argsort(descending=True)
    wanted = least * layer.prior_variance(x).double()
    first = 0
    while first < len(x):
        some = farthest[first : 2 * first + _FIRST_ROWS]
        if not bool((_explained(layer, x[some]) >= wanted[some]).all()):
            return False
        first += len(some)
    return True


def _explained(layer: InducingLayer, x: Tensor) -> Tensor:
    """The variance [N, D] that q can change."""
    scale = layer.sensitivities.square() * layer.posterior.prior.variance
    squares = _unit_features(layer, x, approximate=True).square().sum(-1)
    return (squares * scale.double()).sum(-1)


def _unit_features(layer: InducingLayer, x: Tensor, *, approximate: bool) -> Tensor:
    """A for sensitivities and variances of 1 [N, D, Q, M]; Q is 1 where forces have one kernel."""
    distinct = slice(0, 1 if layer.one_kernel else None)
    posterior, prior = layer.posterior, layer.posterior.prior
    factor = posterior.gram_factor()[0][distinct]
    factor = factor / prior.variance[distinct].double().sqrt()[:, None, None]
    centers, ell = posterior.centers()[distinct], prior.lengthscale[distinct]
    bumps: Tensor | float = 0.0
    for weight, scale in prior.kernel.mixture():
        bumps = bumps + weight * bumps_at(
            layer.greens_function, x, centers, scale * ell, layer.memory, approximate=approximate
        )
    bumps = torch.as_tensor(bumps).double().permute(2, 3, 0, 1)  # Q M N D
    solved = torch.linalg.solve_triangular(factor, bumps.flatten(2), upper=False)
    features: Tensor = solved.unflatten(-1, bumps.shape[2:]).permute(2, 3, 0, 1)
    return features


def typical_distance(values: Float[Tensor, "N P"]) -> Float[Tensor, " P"]:
    """The median distance of two different rows, in each column."""
    half = values[:: math.ceil(len(values) / ROWS)]
    distances = (half[:, None] - half[None]).abs().flatten(0, 1)
    different = distances[distances.sum(1) > 0]
    return different.median(0).values if len(different) else values[0] * 0


def place(layer: InducingLayer, distinct: Tensor, ell: Tensor, generator: torch.Generator) -> None:
    """k-means of distinct rows, in units of the lengthscale; more points than rows lie about."""
    target = layer.posterior.inducing_inputs
    count = target.shape[-2]
    found = distinct / ell
    if len(distinct) > count:
        seed = int(torch.randint(0, 2**31 - 1, (), generator=generator))
        found = torch.tensor(k_means(found.numpy(), count, seed))
    else:
        found = found[torch.arange(count) % len(distinct)]
        about = 0.3 * torch.randn(found.shape, generator=generator, dtype=found.dtype)
        found[len(distinct) :] += about[len(distinct) :]
    target.copy_((found * ell).expand_as(target))


def k_means(rows: Values, count: int, seed: int) -> Values:
    """`count` centers of `rows` [N, P]: Lloyd's iterations from a start by k-means++.

    Each new center of the start only asks whether it is nearer than the nearest so far.
    """
    random = np.random.RandomState(seed)
    sizes = (rows**2).sum(1)
    centers = np.empty((count, rows.shape[1]))
    nearest = np.full(len(rows), np.inf)
    for k in range(count):
        if k == 0:
            chosen = random.randint(len(rows))
        else:
            levels = nearest.cumsum()
            chosen = int(np.searchsorted(levels[:-1], random.uniform() * levels[-1]))
        centers[k] = rows[chosen]
        distance = sizes + (sizes[chosen] - rows @ (2 * rows[chosen]))
        nearest = np.minimum(nearest, np.maximum(distance, 0))
        nearest[chosen] = 0
    for _ in range(_ITERATIONS):
        label = ((centers**2).sum(1) / 2 - rows @ centers.T).argmin(1)
        members = np.bincount(label, minlength=count)
        sums = [np.bincount(label, weights=column, minlength=count) for column in rows.T]
        means = np.stack(sums, axis=1) / np.maximum(members, 1)[:, None]
        centers = np.where(members[:, None] > 0, means, centers)
    return centers
