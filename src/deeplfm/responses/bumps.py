"""The response of one pole to a bump, and its moments, finite and accurate everywhere.

    B_n = ∫ v^n e^{-sv} e^{-(x-v-z)²/(2ℓ²)} dv,   v in (0, ∞) infinite memory, (0, x) zero memory

With t = (x-z)/ℓ, κ = sℓ, m = κ - t, ξ = x/ℓ, g = e^{-t²/2}: B_n = ℓ^{n+1} g ∫ v^n e^{-mv-v²/2} dv =
ℓ^{n+1} g K_n, half-Gaussian moments (`special.py`) whose growing parts are folded into one exponent
or cancelled by hand. B_0 is the response; n > 0 serves repeated poles and derivatives in s.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from deeplfm.responses.special import decaying_moments, gaussian_polynomials, piecewise
from deeplfm.shapes import Memory, Number, as_tensors, check_choice, check_positive

# Gauss–Legendre on (0, 1), for intervals so short that the integrand is nearly a polynomial.
_SHORT_RULE = [
    (float(node + 1) / 2, float(weight) / 2)
    for node, weight in zip(*np.polynomial.legendre.leggauss(8), strict=True)
]


def bump_response(
    x: Number, center: Number, lengthscale: Number, pole: Number, memory: Memory = "infinite"
) -> Tensor:
    """The response at `x` of a pole to e^{-(τ-z)²/(2ℓ²)}; real for a real pole, else complex.

    Broadcast over every argument. With infinite memory the real part of the pole must be positive.
    """
    return bump_moment(x, center, lengthscale, pole, memory, order=0)


def bump_moment(
    x: Number,
    center: Number,
    lengthscale: Number,
    pole: Number,
    memory: Memory = "infinite",
    order: int = 0,
) -> Tensor:
    """B_n, the n-th derivative of the response in -s (repeated poles)."""
    check_choice("memory", memory, Memory)
    x, center, lengthscale, pole = as_tensors(
        {"x": x, "center": center, "lengthscale": lengthscale, "pole": pole},
        complex_names=("pole",),
    )
    check_positive("lengthscale", lengthscale, "")
    if memory == "infinite":
        check_positive("pole", pole, " (in its real part) with infinite memory")
    return _apply(x, center, lengthscale, pole, memory, order)


def _apply(x: Tensor, z: Tensor, ell: Tensor, s: Tensor, memory: Memory, order: int) -> Tensor:
    moment: Tensor = _BumpMoment.apply(x, z, ell, s, memory, order)
    return moment


class _Scaled(NamedTuple):
    """Everything a value or a gradient needs, each already multiplied by g."""

    moments: list[Tensor]  # g K_0 … g K_{count-1}
    here: Tensor  # g, the bump at x
    start: Tensor  # g E = e^{-sx} · the bump at 0; zero with infinite memory
    short: Tensor  # whether the interval is short: moments by a Gauss–Legendre rule


class _BumpMoment(torch.autograd.Function):
    """Stores its arguments only; everything else is computed again in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, z: Tensor, ell: Tensor, s: Tensor, memory: Memory, order: int
    ) -> Tensor:
        ctx.save_for_backward(x, z, ell, s)
        ctx.memory, ctx.order = memory, order
        moment = _scaled_moments(x, z, ell, s, memory, order + 1).moments[order]
        return ell ** (order + 1) * moment

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        arguments = ctx.saved_tensors
        partials = _differentiable_partials if torch.is_grad_enabled() else _stable_partials
        x, z, ell, s = arguments
        derivatives = partials(x, z, ell, s, ctx.memory, ctx.order)
        needed = ctx.needs_input_grad[:4]
        results: list[Tensor | None] = []
        for argument, derivative, wanted in zip(arguments, derivatives, needed, strict=True):
            if not wanted:
                results.append(None)
                continue
            product = gradients[0] * derivative.conj()
            product = product if argument.is_complex() or not product.is_complex() else product.real
            results.append(product.sum_to_size(argument.shape))
        return (*results, None, None)


def _differentiable_partials(
    x: Tensor, z: Tensor, ell: Tensor, s: Tensor, memory: Memory, order: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The partial derivatives as functions that can be differentiated again."""
    b0, b1, b2 = (_apply(x, z, ell, s, memory, order + k) for k in range(3))
    distance = x - z
    in_center = (distance * b0 - b1) / ell**2
    in_lengthscale = (distance**2 * b0 - 2 * distance * b1 + b2) / ell**3
    in_x = -in_center
    if memory == "zero":
        in_x = in_x + x**order * torch.exp(-s * x - (z / ell) ** 2 / 2)
    return in_x, in_center, in_lengthscale, -b1


def _stable_partials(
    x: Tensor, z: Tensor, ell: Tensor, s: Tensor, memory: Memory, order: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The partial derivatives, by whichever of two equal forms does not cancel.

    In z and ℓ they are ∫ v^n (t-v)^j e^{-mv-v²/2} dv, j = 1, 2. Expanding the binomial loses (t/κ)²
    when the force lies far back (|t| > |κ|); integrating by parts first loses (κ/t)² otherwise.
    """
    t, kappa = (x - z) / ell, s * ell
    scaled = _scaled_moments(x, z, ell, s, memory, order + 3)
    xi = torch.where(scaled.start == 0, torch.zeros_like(t), x / ell)  # ξ^n E is 0 there, not NaN
    k0, k1, k2 = scaled.moments[order : order + 3]
    lower = scaled.moments[:order]
    one = scaled.here if order == 0 else 0.0  # e_n of the integration by parts: 1 - E, then -ξ^n E
    first = kappa * k0 - (one - xi**order * scaled.start)
    second = (
        (1 + kappa**2) * k0
        - (t + kappa) * (one - xi**order * scaled.start)
        - xi ** (order + 1) * scaled.start
    )
    if order > 0:
        previous = (scaled.here if order == 1 else 0.0) - xi ** (order - 1) * scaled.start
        first = first - order * lower[-1]
        second = second - 2 * order * kappa * lower[-1] + order * previous
    if order > 1:
        second = second + order * (order - 1) * lower[-2]
    far_back = (t.abs() > kappa.abs()) & ~scaled.short
    first = torch.where(far_back, first, t * k0 - k1)
    second = torch.where(far_back, second, t**2 * k0 - 2 * t * k1 + k2)
    scale = ell**order
    in_x = scale * (xi**order * scaled.start - first)
    return in_x, scale * first, scale * second, -(ell ** (order + 2)) * k1


def _scaled_moments(
    x: Tensor, z: Tensor, ell: Tensor, s: Tensor, memory: Memory, count: int
) -> _Scaled:
    """g K_n for n below `count`, with g and g E."""
    t, kappa = (x - z) / ell, s * ell
    m = kappa - t
    here = torch.exp(-(t**2) / 2)
    left = _real(m) < 0  # the maximum of the integrand lies at v > 0
    upper = _half_moments(m, left, count)
    if memory == "infinite":
        growth = _growth(x, z, ell, s, m, left, count)
        moments = [here * k + p for k, p in zip(upper, growth, strict=True)]
        return _Scaled(moments, here, torch.zeros_like(moments[0]), torch.zeros_like(left))
    xi = x / ell
    start = torch.exp(-s * x - (z / ell) ** 2 / 2)
    start_left = _real(m) + xi < 0
    reach = torch.where(start == 0, torch.zeros_like(t), xi)  # ξ^n E is 0 there, not NaN
    lower = _shifted(_half_moments(m + xi, start_left, count), reach)
    growth = _growth(x, z, ell, s, m, left != start_left, count)
    sign = torch.where(start_left, -1, 1)
    moments = [
        here * k - start * k0 + sign * p for k, k0, p in zip(upper, lower, growth, strict=True)
    ]
    # What is left of the difference above when the interval is short is its rounding: sum directly.
    short = (xi.abs() <= 1) & (m.abs() * xi.abs() <= 2)
    moments = piecewise(
        short,
        _short_interval,
        lambda t, m, xi, *known, count: known,
        t,
        m,
        xi,
        *moments,
        count=count,
    )
    return _Scaled(moments, here, start, short)


def _half_moments(m: Tensor, left: Tensor, count: int) -> list[Tensor]:
    """M_n(m), less its growing part sqrt(2π) e^{m²/2} p_n where Re m < 0."""
    sign = 1 - 2 * left.to(m.real.dtype)
    moments = decaying_moments(sign * m, count)
    return [moment if n % 2 else sign * moment for n, moment in enumerate(moments)]


def _growth(
    x: Tensor, z: Tensor, ell: Tensor, s: Tensor, m: Tensor, where: Tensor, count: int
) -> list[Tensor]:
    """g sqrt(2π) e^{m²/2} p_n(m) where asked, else 0; g e^{m²/2} = e^{κ²/2 - κt} is bounded there.

    The phase reaches 1e4 radians where the modulus still counts: it is formed in float64.
    """
    t, kappa = (x - z) / ell, s * ell
    decay = _real(kappa)
    if s.is_complex():
        modulus = -decay * (t - decay / 2) - kappa.imag**2 / 2
        wide = torch.float64 if x.device.type != "mps" else torch.float32
        phase = s.imag.to(wide) * (s.real.to(wide) * ell.to(wide) ** 2 + z.to(wide) - x.to(wide))
        phase = torch.remainder(phase, 2 * math.pi).to(t.dtype)
        modulus = torch.exp(torch.where(where, modulus, -torch.inf))
        whole = torch.complex(modulus * torch.cos(phase), modulus * torch.sin(phase))
    else:
        whole = torch.exp(torch.where(where, -decay * (t - decay / 2), -torch.inf))
    return [
        math.sqrt(2 * math.pi) * whole * polynomial
        for polynomial in gaussian_polynomials(torch.where(whole == 0, whole, m), count - 1)
    ]


def _shifted(moments: list[Tensor], xi: Tensor) -> list[Tensor]:
    """Moments of (v + ξ)^n from moments of v^n."""
    return [
        sum(
            (math.comb(n, j) * xi ** (n - j) * moments[j] for j in range(n)),
            start=moments[n],
        )
        for n in range(len(moments))
    ]


def _short_interval(t: Tensor, m: Tensor, xi: Tensor, *known: Tensor, count: int) -> list[Tensor]:
    """g ∫_0^ξ v^n e^{-mv-v²/2} dv where |ξ| ≤ 1 and |mξ| ≤ 2: eight nodes reach rounding."""
    totals = [torch.zeros_like(known[0]) for _ in range(count)]
    for node, weight in _SHORT_RULE:
        v = xi * node
        value = weight * xi * torch.exp(-m * v - (v**2 + t**2) / 2)
        for n in range(count):
            totals[n] = totals[n] + value
            value = value * v
    return totals


def _real(value: Tensor) -> Tensor:
    return value.real if value.is_complex() else value
