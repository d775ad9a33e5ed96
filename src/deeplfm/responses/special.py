"""Special functions for complex tensors: the moments of half a Gaussian, the Faddeeva function.

    M_n(m) = ∫_0^∞ v^n e^{-mv - v²/2} dv,   M_n' = -M_{n+1},
    erfcx(a) = sqrt(2/π) M_0(√2 a),   wofz(z) = erfcx(-jz).

PyTorch has only the real erfcx. Nothing here knows of forces or ODEs; `bumps.py` builds on it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from deeplfm.shapes import Number, as_tensors

Branch = Callable[..., Sequence[Tensor]]

# Above |m|² the asymptotic series has this many useful terms: its error is at most the first term
# left out and e^{-|m|²/2}, both below the rounding of the type.
_FAR = {torch.float32: (40.0, 10), torch.float64: (98.0, 20)}
# Nodes of the trapezoidal rule for w(z): the error is about e^{-π(N+1)}.
_NODES = {torch.float32: 5, torch.float64: 11}


def wofz(z: Number) -> Tensor:
    """The Faddeeva function w(z) = e^{-z²} erfc(-jz), for complex (or real) `z`; complex."""
    (z,) = as_tensors({"z": z}, complex_names=("z",))
    minus_jz = torch.complex(z.imag, -z.real) if z.is_complex() else torch.complex(0 * z, -z)
    return erfcx(minus_jz)


def erfcx(a: Number) -> Tensor:
    """The scaled complementary error function e^{a²} erfc(a); real for a real argument."""
    (a,) = as_tensors({"a": a}, complex_names=("a",))
    return math.sqrt(2 / math.pi) * half_gaussian_moment(math.sqrt(2) * a, 0)


def half_gaussian_moment(m: Tensor, order: int) -> Tensor:
    """M_n(m) for any real or complex `m`, differentiable to any order."""
    moment: Tensor = _HalfGaussianMoment.apply(m, order)
    return moment


class _HalfGaussianMoment(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, m: Tensor, order: int) -> Tensor:
        ctx.save_for_backward(m)
        ctx.order = order
        left = (m.real if m.is_complex() else m) < 0
        sign = 1 - 2 * left.to(m.real.dtype)
        moment = sign ** (order + 1) * decaying_moments(sign * m, order + 1)[order]
        growth = math.sqrt(2 * math.pi) * torch.exp(m * m / 2) * gaussian_polynomials(m, order)[-1]
        return moment + torch.where(left, growth, torch.zeros_like(growth))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (m,) = ctx.saved_tensors
        return gradients[0] * -half_gaussian_moment(m, ctx.order + 1).conj(), None


def gaussian_polynomials(m: Tensor, order: int) -> list[Tensor]:
    """p_0 … p_order with ∫_{-∞}^∞ v^n e^{-mv - v²/2} dv = sqrt(2π) e^{m²/2} p_n(m)."""
    polynomials = [torch.ones_like(m), -m]
    for n in range(1, order):
        polynomials.append(n * polynomials[n - 1] - m * polynomials[n])
    return polynomials[: order + 1]


def decaying_moments(m: Tensor, count: int) -> list[Tensor]:
    """M_0 … M_{count-1} where Re m ≥ 0, where they decay; not differentiable by itself."""
    threshold, _ = _FAR[m.real.dtype]
    far = m.abs() >= math.sqrt(threshold)
    return piecewise(far, _far_moments, _near_moments, m, count=count)


def piecewise(
    condition: Tensor, where_true: Branch, where_false: Branch, *arguments: Tensor, **options: int
) -> list[Tensor]:
    """Each entry by its own branch: gathered on a CPU, both evaluated and selected elsewhere.

    Only for use without gradients, where the branch not taken may hold NaN or infinity.
    """
    if condition.device.type != "cpu":
        pairs = zip(
            where_true(*arguments, **options), where_false(*arguments, **options), strict=True
        )
        return [torch.where(condition, yes, no) for yes, no in pairs]
    if bool(condition.all()):
        return list(where_true(*arguments, **options))
    if not bool(condition.any()):
        return list(where_false(*arguments, **options))
    arguments = tuple(argument.expand(condition.shape) for argument in arguments)
    results = where_false(*(argument[~condition] for argument in arguments), **options)
    chosen = where_true(*(argument[condition] for argument in arguments), **options)
    merged = []
    for yes, no in zip(chosen, results, strict=True):
        out = torch.empty(condition.shape, dtype=yes.dtype, device=yes.device)
        out[condition] = yes
        out[~condition] = no
        merged.append(out)
    return merged


def _far_moments(m: Tensor, count: int) -> list[Tensor]:
    """Large |m|: the asymptotic series at the two highest orders, the rest by recursion down."""
    _, terms = _FAR[m.real.dtype]
    inverse = 1 / m
    moments = [_asymptotic(inverse, n, terms) for n in range(max(count - 2, 0), count)]
    for n in range(count - 2, 0, -1):
        # n M_{n-1} = M_{n+1} + m M_n has no cancellation in this direction.
        moments.insert(0, (moments[1] + m * moments[0]) / n)
    return moments


def _asymptotic(inverse: Tensor, n: int, terms: int) -> Tensor:
    """n!/m^{n+1} Σ_k (-1)^k (n+2k)! / (n! k! (2m²)^k), by Horner's rule in 1/m²."""
    square = inverse * inverse
    total = torch.ones_like(inverse)
    for k in range(terms - 1, 0, -1):
        total = 1 - square * ((n + 2 * k) * (n + 2 * k - 1) / (2 * k)) * total
    return math.factorial(n) * inverse ** (n + 1) * total


def _near_moments(m: Tensor, count: int) -> list[Tensor]:
    """Moderate |m|: M_0 from w, the rest by M_1 = 1 - m M_0, M_{n+1} = n M_{n-1} - m M_n."""
    zeroth = _near_zeroth(m) if m.is_complex() else torch.special.erfcx(m / math.sqrt(2))
    moments = [math.sqrt(math.pi / 2) * zeroth]
    if count > 1:
        moments.append(1 - m * moments[0])
    for n in range(1, count - 1):
        moments.append(n * moments[n - 1] - m * moments[n])
    return moments


def _near_zeroth(m: Tensor) -> Tensor:
    """w(jm/√2) for Re m ≥ 0, by the trapezoidal rule corrected for the poles of its integrand.

    Al Azah and Chandler-Wilde (2021), "Computation of the complex error function using modified
    trapezoidal rules": of the two sets of nodes kh and (k+½)h, the one farther from Re z is used.
    """
    x, y = m.imag.abs() / math.sqrt(2), m.real / math.sqrt(2)  # w(-z̄) is the conjugate of w(z)
    nodes = _NODES[x.dtype]
    h = math.sqrt(math.pi / (nodes + 1))
    fraction = x / h - torch.floor(x / h)
    on_grid = (y < x) & (fraction >= 0.25) & (fraction <= 0.75)
    chosen = on_grid.to(x.dtype)
    square_real, square_imag = (x - y) * (x + y), 2 * x * y
    sum_real, sum_imag = torch.zeros_like(x), torch.zeros_like(x)
    for k in range(nodes + 1):
        # The node 0 of the grid carries half the weight: its mirror image is itself.
        grid, middle = k * h, (k + 0.5) * h
        weight_grid = math.exp(-(grid**2)) * (0.5 if k == 0 else 1.0)
        weight_middle = math.exp(-(middle**2))
        # Chosen by arithmetic: numbers in tensors of their own would have to be copied there.
        node = middle**2 + (grid**2 - middle**2) * chosen
        weight = weight_middle + (weight_grid - weight_middle) * chosen
        real = square_real - node
        share = weight / (real * real + square_imag * square_imag)
        sum_real = sum_real + real * share
        sum_imag = sum_imag - share
    total = torch.complex(sum_real, sum_imag * square_imag)
    w = torch.complex(-y, x) * total * (2 * h / math.pi)  # 2jhz/π · Σ
    # The correction 2e^{-z²}/(1 ± e^{-2πjz/h}), none far above the real axis.
    # |e^{-2πjz/h}| = e^{2πy/h} ≥ 1: dividing through by it keeps every factor bounded.
    turn = 2 * math.pi / h
    decay = torch.exp(-turn * y)
    rotation = torch.complex(decay * torch.cos(turn * x), decay * torch.sin(turn * x))
    sign = 1 - 2 * chosen
    gauss = torch.exp(torch.clamp(-square_real - turn * y, max=0.0))
    phase = turn * x - square_imag
    numerator = 2 * torch.complex(gauss * torch.cos(phase), gauss * torch.sin(phase))
    correction = numerator / (rotation + sign)
    needed = y < torch.clamp(x, min=math.pi / h)
    w = w + torch.where(needed, correction, torch.zeros_like(correction))
    return torch.where(m.imag > 0, w.conj().resolve_conj(), w)
