"""A draw of the posterior in training by Matheron's rule: one node of the graph.

    c = σ c',  c' = L^{-T} b,  b = v' - L^{-1} r,   r = √(2/B) Σ_i w_i cos(ξ_iᵀs + β_i) + √ε η
    L Lᵀ = K + εI,  K_ij = exp(-½ |s_i - s_j|²),  s = Z/ℓ,  θ = ξ/ℓ
    gradient in K, with g the one in b: sym(L^{-T} Φ(g v'ᵀ) L^{-1} - (L^{-T} g) c'ᵀ)

Φ takes the lower triangle, with half of the diagonal. Waves are of the type of the parameters, what
has L in it is float64. Nothing waits for the device.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.forces.numbers import Numbers
from deeplfm.variational.gaussian_formulas import full_draw, full_draw_gradients


def matheron_draw(
    z: Float[Tensor, "#Q M P"],
    lengthscale: Float[Tensor, "#Q P"],
    variance: Float[Tensor, "Q"],
    gaussian: Sequence[Tensor],
    jitter: Float[Tensor, ""],
    numbers: Numbers,
) -> tuple[Float[Tensor, "1 Q B P"], Float[Tensor, "S Q M"]]:
    """θ and c; c is NaN where a Gram matrix is not positive definite. The jitter has no gradient.

    Forces with the same Z and ℓ are one set: their Gram matrix is made once.
    """
    theta, coefficients = _Matheron.apply(z, lengthscale, variance, *gaussian, jitter, numbers)
    return theta, coefficients


class _Matheron(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        z, lengthscale, variance, *gaussian, jitter, numbers = arguments
        phase, xi, weights, noise, eta = numbers
        ell, forces = lengthscale[:, None], len(variance)
        scaled = z.double() / ell
        near, sets = scaled.to(xi.dtype), len(scaled)
        flat = xi.view(sets, -1, xi.shape[-1])
        phases = torch.baddbmm(phase.view(sets, 1, -1), near, flat.mT)
        waves, mixture = _of_forces(torch.cos(phases), forces), weights.permute(1, 2, 0)
        known = torch.baddbmm(eta * jitter.sqrt(), waves, mixture, alpha=_scale(weights))
        values, diagonal = full_draw(noise, *gaussian)
        values, known = _of_sets(values.double(), sets), _of_sets(known.double(), sets)
        inverse, gram, info = _inverse_factor(scaled, jitter)
        turned = inverse.mT
        unscaled = torch.bmm(turned, torch.baddbmm(values, inverse, known, alpha=-1))
        std = variance.sqrt().masked_fill_(info.bool(), torch.nan)[:, None]
        coefficients = _of_forces(unscaled, forces).permute(2, 0, 1).to(xi.dtype) * std
        theta = xi / ell
        ctx.numbers, ctx.frame_and_unit = numbers, gaussian[-2:]
        ctx.save_for_backward(
            *(z, ell, variance, theta, coefficients, std, diagonal),
            *(flat, scaled, near, phases, gram, inverse, turned, values, unscaled),
        )
        return theta, coefficients

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_theta: Tensor, by_coefficients: Tensor) -> tuple[Tensor | None, ...]:
        z, ell, variance, theta, coefficients, std, diagonal, *rest = ctx.saved_tensors
        parts, numbers, needed = _Parts(*rest), ctx.numbers, ctx.needs_input_grad
        pull = (by_coefficients * std).permute(1, 2, 0).double()
        by_rest = torch.bmm(parts.inverse, _of_sets(pull, len(parts.inverse)))
        gradients: list[Tensor | None] = [None] * len(needed)
        if needed[0] or needed[1]:
            by_near = _by_points(by_rest, numbers.weights, parts)
            gradients[0] = _summed(by_near / ell, z.shape)
            # All that ℓ does is to scale Z and θ.
            pulls = _summed(by_near * parts.near, ell.shape) + _summed(by_theta * theta, ell.shape)
            gradients[1] = pulls.div_(ell).neg_()[:, 0]
        if needed[2]:
            gradients[2] = (by_coefficients * coefficients).sum((0, 2)) / (2 * variance)
        if any(needed[3:6]):
            by_values = _of_forces(by_rest, len(variance)).to(std.dtype)
            gradients[3:6] = full_draw_gradients(
                by_values, numbers.whitened, diagonal, *ctx.frame_and_unit
            )
        return tuple(gradients)


class _Parts(NamedTuple):
    """What the gradients of both ways from s are made of; F forces of one set in a row."""

    flat: Float[Tensor, "sets FB P"]  # ξ
    scaled: Float[Tensor, "sets M P"]  # s
    near: Float[Tensor, "sets M P"]  # s, of the type of the parameters
    phases: Float[Tensor, "sets M FB"]
    gram: Float[Tensor, "sets M M"]
    inverse: Float[Tensor, "sets M M"]  # L^{-1}
    turned: Float[Tensor, "sets M M"]  # L^{-T}
    values: Float[Tensor, "sets M FS"]  # v'
    unscaled: Float[Tensor, "sets M FS"]  # c'


def _by_points(by_rest: Tensor, weights: Tensor, parts: _Parts) -> Tensor:
    """The gradient in s, through the Gram matrix and through the waves."""
    flat, scaled, near, phases, gram, inverse, turned, values, unscaled = parts
    less_by_known = torch.bmm(turned, by_rest)
    half = torch.bmm(by_rest, values.mT).tril_()
    half.diagonal(dim1=-2, dim2=-1).mul_(0.5)
    by_gram = torch.bmm(torch.bmm(turned, half), inverse)
    by_gram.baddbmm_(less_by_known, unscaled.mT, alpha=-1)
    pairs = (by_gram + by_gram.mT).mul_(gram)
    # What is on the diagonal, the jitter with it, cancels here.
    through_gram = torch.baddbmm(pairs.sum(-1, keepdim=True) * scaled, pairs, scaled, beta=-1)
    by_phases, forces = torch.sin(phases), weights.shape[1]
    less_by_known = _of_forces(less_by_known, forces).to(weights.dtype)
    _of_forces(by_phases, forces).mul_(torch.bmm(less_by_known, weights.transpose(0, 1)))
    return torch.baddbmm(through_gram.to(near.dtype), by_phases, flat, alpha=_scale(weights))


def _inverse_factor(scaled: Tensor, jitter: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """L^{-1}, the Gram matrix with its jitter, and above 0 where that is not positive definite."""
    distance = torch.cdist(scaled, scaled, compute_mode="donot_use_mm_for_euclid_dist")
    gram = distance.square_().mul_(-0.5).exp_()
    gram.diagonal(dim1=-2, dim2=-1).add_(jitter)
    factor, info = torch.linalg.cholesky_ex(gram)
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    return torch.linalg.solve_triangular(factor, identity.expand_as(gram), upper=False), gram, info


def _scale(weights: Tensor) -> float:
    """√(2/B)."""
    return math.sqrt(2 / weights.shape[-1])


def _summed(gradient: Tensor, shape: torch.Size) -> Tensor:
    """Over what was broadcast; an operation less where nothing was."""
    if gradient.numel() == shape.numel():
        return gradient.view(shape)
    return gradient.sum_to_size(shape)


def _of_forces(columns: Tensor, forces: int) -> Tensor:
    """[sets, M, Q S / sets] as [Q, M, S], a view."""
    if len(columns) == forces:
        return columns
    return columns.view(columns.shape[1], forces, -1).transpose(0, 1)


def _of_sets(columns: Tensor, sets: int) -> Tensor:
    """[Q, M, S] as [sets, M, Q S / sets]."""
    return columns if len(columns) == sets else columns.transpose(0, 1).flatten(1)[None]
