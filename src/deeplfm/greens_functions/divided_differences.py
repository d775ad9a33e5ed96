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
# of poles farther apart lose at most a digit each.
_CLUSTER = 0.1
# Distance of the next singularity over spread of a cluster; the error is then 3^{-nodes}.
_SEPARATION, _CONTOUR_NODES = 9.0, 32


def pair(function: PoleFunction, damping: Tensor, discriminant: Tensor, product: Tensor) -> Tensor:
    """The divided difference at the poles α ± sqrt(q); `product` = α² - q is that of the poles."""
    with torch.no_grad():
        close = discriminant.abs() * function.reach(damping) ** 2 <= _CLOSE[damping.dtype]
    zero, one = torch.zeros_like(discriminant), torch.ones_like(discriminant)
    q = torch.where(close, discriminant, zero)
    series = function.moment(damping, 7) / math.factorial(7)
    for order in (5, 3, 1):
        series = function.moment(damping, order) / math.factorial(order) + q * series
    # The branch not taken gets poles α ± j, so that its gradient is finite before it is dropped.
    q = torch.where(close, -one, discriminant)
    product = torch.where(close, damping**2 + 1, product)
    d = torch.sqrt(torch.complex(q, torch.zeros_like(q))) * torch.where(damping < 0, -one, one)
    fast = damping + d
    slow = product / fast  # α - d without its cancellation
    quotient = (function.at(slow) - function.at(fast)) / (2 * d)
    return torch.where(close, series, quotient.real if function.is_real else quotient)


def exponential_sum(poles: Tensor, factored: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Nodes s_i and weights w_i with G(t) = Σ_i w_i e^{-s_i t}, for any poles [..., K].

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
        return poles, 1 / _product_of_differences(poles)
    centers, radii = _circles(found)
    angles = (torch.arange(_CONTOUR_NODES, dtype=radii.dtype, device=radii.device) + 0.5) * (
        2 * math.pi / _CONTOUR_NODES
    )
    arms = radii[..., None] * torch.complex(torch.cos(angles), torch.sin(angles))
    nodes = (centers[..., None] + arms).flatten(-2)
    used = (arms != 0).flatten(-2)
    polynomial = torch.where(used, factored(-nodes), torch.ones_like(nodes))
    return nodes, -arms.flatten(-2) / _CONTOUR_NODES / polynomial


def _product_of_differences(poles: Tensor) -> Tensor:
    """Π_{j≠k} (s_j - s_k) [..., K]: its inverse is the residue at pole k."""
    count = poles.shape[-1]
    identity = torch.eye(count, dtype=torch.bool, device=poles.device)
    differences = poles[..., None, :] - poles[..., :, None]
    return torch.where(identity, torch.ones_like(differences), differences).prod(-1)


def _circles(poles: Tensor) -> tuple[Tensor, Tensor]:
    """Centre and radius [..., C] of a circle per cluster, radius 0 where there are fewer."""
    flat = poles.reshape(-1, poles.shape[-1])
    rows = [_clusters(values) for values in flat.cpu().tolist()]
    count = max(map(len, rows))
    # A cluster that is not there repeats the first, with radius 0: its nodes weigh nothing.
    filled = [circles + [(circles[0][0], 0.0)] * (count - len(circles)) for circles in rows]
    centers = poles.new_tensor([[center for center, _ in circles] for circles in filled])
    radii = poles.real.new_tensor([[radius for _, radius in circles] for circles in filled])
    shape = (*poles.shape[:-1], count)
    return centers.reshape(shape), radii.reshape(shape)


def _clusters(poles: list[complex]) -> list[tuple[complex, float]]:
    """Circles that separate the poles with the largest margins, and stay where Re s > 0."""
    threshold = _CLUSTER * 2 * max(map(abs, poles))
    while True:
        groups = _linked(poles, threshold)
        centers = [sum(group) / len(group) for group in groups]
        spreads = [
            max(abs(pole - center) for pole in group)
            for group, center in zip(groups, centers, strict=True)
        ]
        circles = []
        for index, (center, spread) in enumerate(zip(centers, spreads, strict=True)):
            others = [pole for j, group in enumerate(groups) if j != index for pole in group]
            gap = min((abs(pole - center) for pole in others), default=math.inf)
            # Responses with infinite memory are singular on the axis Re s = 0.
            room = center.real if center.real > 0 else abs(center)
            circles.append((center, spread, min(gap, room or 1.0)))
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
