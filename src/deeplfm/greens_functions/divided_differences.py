"""Sums over poles that stay exact where poles meet.

Two poles α ± d:  (F(α-d) - F(α+d)) / 2d = F_1 + q F_3/3! + q² F_5/5! + …,  q = d²: the series where
the poles are close, seen from the lag that counts, the quotient elsewhere; smooth in q through 0.
Any number of poles: a Cauchy integral around each cluster, whose nodes act as ordinary poles.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from deeplfm.greens_functions.pole_functions import PoleFunction

# Close means |q| reach² below this: the series is then exact to its fourth power, and the quotient
# loses the square root of it in values and its power 3/2 in gradients.
_CLOSE = {torch.float32: 4e-2, torch.float64: 1e-4}
# Poles nearer than this, relative to their size, are integrated around together; partial fractions
# of poles farther apart lose at most a digit each, relative to the peak of the answer.
_CLUSTER = 0.1
# Distance of the next singularity over spread of a cluster; the error is then 3^{-nodes}.
_SEPARATION, _CONTOUR_NODES = 9.0, 32


def pair(function: PoleFunction, damping: Tensor, discriminant: Tensor, product: Tensor) -> Tensor:
    """The divided difference at the poles α ± sqrt(q); `product` = α² - q is that of the poles."""
    with torch.no_grad():
        close = discriminant.abs() * function.reach(damping) ** 2 <= _CLOSE[damping.dtype]
    if close.device.type == "cpu":  # a branch that nobody takes costs nothing
        if not bool(close.any()):
            return _quotient(function, damping, discriminant, product)
        if bool(close.all()):
            return _series(function, damping, discriminant)
    # Each branch gets harmless arguments where it is not taken, so that its gradient is finite
    # before it is dropped: no lag and a pole at 1, poles at α ± j.
    one = torch.ones_like(discriminant)
    series = _series(
        function.kept(close),
        torch.where(close, damping, one),
        torch.where(close, discriminant, torch.zeros_like(discriminant)),
    )
    quotient = _quotient(
        function,
        damping,
        torch.where(close, -one, discriminant),
        torch.where(close, damping**2 + 1, product),
    )
    return torch.where(close, series, quotient)


def _series(function: PoleFunction, damping: Tensor, discriminant: Tensor) -> Tensor:
    """F_1 + q F_3/3! + q² F_5/5! + q³ F_7/7!."""
    total = function.moment(damping, 7) / math.factorial(7)
    for order in (5, 3, 1):
        total = function.moment(damping, order) / math.factorial(order) + discriminant * total
    return total


def _quotient(
    function: PoleFunction, damping: Tensor, discriminant: Tensor, product: Tensor
) -> Tensor:
    """(F(α-d) - F(α+d)) / 2d."""
    d = torch.sqrt(torch.complex(discriminant, torch.zeros_like(discriminant)))
    d = torch.where(damping < 0, -d, d)
    fast = damping + d
    slow = product / fast  # α - d without its cancellation
    quotient = (function.at(slow) - function.at(fast)) / (2 * d)
    return quotient.real if function.is_real else quotient


def exponential_sum(
    poles: Tensor, factored: Callable[[Tensor], Tensor], longest: float | None
) -> tuple[Tensor, Tensor]:
    """Nodes s_i and weights w_i with G(t) = Σ_i w_i e^{-s_i t}, for any poles [..., K].

    It holds for lags up to `longest`, None for all: circles must then stay where Re s > 0.

    `factored(p)` is the characteristic polynomial as a function of its parameters. Separate poles
    are their own nodes; where any of them cluster, every cluster gets a circle of nodes.
    Gradients flow through the weights on a circle, through both otherwise.
    """
    found = poles.detach()
    if poles.shape[-1] == 1:
        return poles, torch.ones_like(poles)
    gaps = (found[..., :, None] - found[..., None, :]).abs()
    gaps = gaps + torch.diag_embed(torch.full_like(found.real, torch.inf))
    size = found.abs().clamp(min=torch.finfo(gaps.dtype).tiny)[..., None]
    if not bool((gaps / size).min() <= _CLUSTER):  # NaN passes through here too
        return poles, 1 / product_of_differences(poles)
    centers, radii = _circles(found, longest)
    angles = (torch.arange(_CONTOUR_NODES, dtype=radii.dtype, device=radii.device) + 0.5) * (
        2 * math.pi / _CONTOUR_NODES
    )
    arms = radii[..., None] * torch.complex(torch.cos(angles), torch.sin(angles))
    nodes = (centers[..., None] + arms).flatten(-2)
    used = (arms != 0).flatten(-2)
    polynomial = torch.where(used, factored(-nodes), torch.ones_like(nodes))
    return nodes, -arms.flatten(-2) / _CONTOUR_NODES / polynomial


def product_of_differences(poles: Tensor) -> Tensor:
    """Π_{j≠k} (s_j - s_k) [..., K]: its inverse is the residue at pole k."""
    count = poles.shape[-1]
    identity = torch.eye(count, dtype=torch.bool, device=poles.device)
    differences = poles[..., None, :] - poles[..., :, None]
    return torch.where(identity, torch.ones_like(differences), differences).prod(-1)


def _circles(poles: Tensor, longest: float | None) -> tuple[Tensor, Tensor]:
    """Centre and radius [..., C] of a circle per cluster, radius 0 where there are fewer."""
    flat = poles.reshape(-1, poles.shape[-1])
    rows = [_clusters(values, longest) for values in flat.cpu().tolist()]
    count = max(map(len, rows))
    # A cluster that is not there repeats the first, with radius 0: its nodes weigh nothing.
    filled = [circles + [(circles[0][0], 0.0)] * (count - len(circles)) for circles in rows]
    centers = poles.new_tensor([[center for center, _ in circles] for circles in filled])
    radii = poles.real.new_tensor([[radius for _, radius in circles] for circles in filled])
    shape = (*poles.shape[:-1], count)
    return centers.reshape(shape), radii.reshape(shape)


def _clusters(poles: list[complex], longest: float | None) -> list[tuple[complex, float]]:
    """Centre and radius of circles that separate the poles with the largest margins."""
    threshold = 2 * _CLUSTER * max(map(abs, poles))
    while True:
        groups = _linked(poles, threshold)
        circles = []
        for index, group in enumerate(groups):
            center = sum(group) / len(group)
            spread = max(abs(pole - center) for pole in group)
            others = [pole for j, other in enumerate(groups) if j != index for pole in other]
            outer = min((abs(pole - center) for pole in others), default=math.inf)
            if longest is None:
                # Responses with infinite memory are singular on the axis Re s = 0.
                outer = min(outer, center.real)
            elif longest > 0:
                # e^{-st} on the circle must not outgrow its value inside, nor turn too often.
                outer = min(outer, max(15 / longest, _SEPARATION * spread))
            circles.append((center, spread, outer if math.isfinite(outer) else 1.0))
        if all(outer >= _SEPARATION * spread for _, spread, outer in circles):
            return [
                (center, max(math.sqrt(spread * outer), outer / 3))
                for center, spread, outer in circles
            ]
        threshold /= 2


def _linked(poles: list[complex], threshold: float) -> list[list[complex]]:
    """Groups of poles joined by steps of at most `threshold`."""
    groups: list[list[complex]] = []
    for pole in poles:
        near = [group for group in groups if any(abs(pole - other) <= threshold for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([pole, *(other for group in near for other in group)])
    return groups
