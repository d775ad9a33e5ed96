"""Weights of plane waves that an ODE of first order in every input answers, with infinite memory.

    cosine - j·sine [s,qb,d] = sensitivity_dq amplitude_sqb e^{jβ_qb} Π_p 1/(γ_dp + jθ_qbp)

So that Σ_b cos(θ_b·x) cosine_b + sin(θ_b·x) sine_b answers Σ_b amplitude cos(θ_b·x + β_b).
"""

# ruff: noqa: RUF005 (kernels know no unpacking of tuples)

from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.triton.blocks import blocks

_WAVES, _SAMPLES = 16, 64  # of a tile


def first_order_wave_weights(
    theta: Float[Tensor, "Q B P"],
    phase: Float[Tensor, "Q B"],
    decay: Float[Tensor, "D P"],
    sensitivities: Float[Tensor, "D Q"],
    amplitude: Float[Tensor, "S Q B"],
) -> Float[Tensor, "2 S W D"]:
    """Weights of cos and of sin, W = QB. The phase has no gradient."""
    weights: Tensor = _WaveWeights.apply(theta, phase, decay, sensitivities, amplitude)
    return weights


class _WaveWeights(torch.autograd.Function):
    """Keeps its arguments only."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        theta, phase, decay, sensitivities, amplitude = (part.contiguous() for part in arguments)
        ctx.save_for_backward(theta, phase, decay, sensitivities, amplitude)
        (forces, count, inputs), samples = theta.shape, len(amplitude)
        weights = theta.new_empty(2, samples, forces * count, len(decay))
        if weights.numel():
            _forward[(forces, blocks(count, _WAVES), blocks(samples, _SAMPLES))](
                *(theta, phase, decay, sensitivities, amplitude, weights),
                S=samples,
                Q=forces,
                B=count,
                P=inputs,
                D=len(decay),
                WAVES=_WAVES,
                SAMPLES=_SAMPLES,
            )
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        theta, phase, decay, sensitivities, amplitude = ctx.saved_tensors
        (forces, count, inputs), samples, outputs = theta.shape, len(amplitude), len(decay)
        if gradient.numel() == 0:
            zeros = (torch.zeros_like(part) for part in (theta, decay, sensitivities, amplitude))
            by_theta, *rest = zeros
            return by_theta, None, *rest
        parts = blocks(count, _WAVES)
        by_theta, by_amplitude = torch.empty_like(theta), torch.empty_like(amplitude)
        sums = theta.new_empty(parts, forces, outputs, inputs + 1)
        _backward[(forces, parts, 1 + blocks(samples, _SAMPLES))](
            *(theta, phase, decay, sensitivities, amplitude, gradient.contiguous()),
            *(by_theta, by_amplitude, sums),
            S=samples,
            Q=forces,
            B=count,
            P=inputs,
            D=outputs,
            WAVES=_WAVES,
            SAMPLES=_SAMPLES,
        )
        sums = sums.sum(0)  # Q D (P + 1)
        by_decay = sums[0, :, :inputs] if forces == 1 else sums[..., :inputs].sum(0)
        return by_theta, None, by_decay, sums[..., inputs].mT, by_amplitude


@triton.jit
@no_type_check
def _answer(theta_ptr, phase, decay_ptr, inside, P: tl.constexpr):
    """e^{jβ} Π_p 1/(γ_p + jθ_p) of some waves."""
    real, imag = tl.cos(phase), tl.sin(phase)
    for p in tl.static_range(P):
        theta = tl.load(theta_ptr + p, mask=inside, other=1.0)
        decay = tl.load(decay_ptr + p)
        share = 1.0 / (decay * decay + theta * theta)
        u, v = decay * share, theta * share
        real, imag = real * u + imag * v, imag * u - real * v
    return real, imag


@triton.jit
@no_type_check
def _forward(
    theta_ptr, phase_ptr, decay_ptr, sensitivity_ptr, amplitude_ptr, out_ptr,
    S: tl.constexpr, Q: tl.constexpr, B: tl.constexpr, P: tl.constexpr, D: tl.constexpr,
    WAVES: tl.constexpr, SAMPLES: tl.constexpr,
):  # fmt: skip
    q = tl.program_id(0)
    b = tl.program_id(1) * WAVES + tl.arange(0, WAVES)
    s = (tl.program_id(2) * SAMPLES + tl.arange(0, SAMPLES)).to(tl.int64)[:, None]
    here = b < B
    wave, inside = (q * B + b)[None, :], (s < S) & here[None, :]
    amplitude = tl.load(amplitude_ptr + s * (Q * B) + wave, mask=inside, other=0.0)
    phase = tl.load(phase_ptr + q * B + b, mask=here, other=0.0)
    for d in range(D):
        real, imag = _answer(theta_ptr + (q * B + b) * P, phase, decay_ptr + d * P, here, P)
        scaled = amplitude * tl.load(sensitivity_ptr + d * Q + q)
        out = (s * (Q * B) + wave) * D + d
        tl.store(out_ptr + out, scaled * real[None, :], mask=inside)
        tl.store(out_ptr + S * Q * B * D + out, -scaled * imag[None, :], mask=inside)


@triton.jit
@no_type_check
def _backward(
    theta_ptr, phase_ptr, decay_ptr, sensitivity_ptr, amplitude_ptr, gradient_ptr,
    by_theta_ptr, by_amplitude_ptr, sums_ptr,
    S: tl.constexpr, Q: tl.constexpr, B: tl.constexpr, P: tl.constexpr, D: tl.constexpr,
    WAVES: tl.constexpr, SAMPLES: tl.constexpr,
):  # fmt: skip
    """The first program of a block of waves adds up over samples, the others over outputs."""
    q = tl.program_id(0)
    b = tl.program_id(1) * WAVES + tl.arange(0, WAVES)
    here = b < B
    phase = tl.load(phase_ptr + q * B + b, mask=here, other=0.0)
    theta_ptr += (q * B + b) * P
    by_theta_ptr += (q * B + b) * P
    sums_ptr += (tl.program_id(1) * Q + q) * (D * (P + 1))
    if tl.program_id(2) == 0:
        _over_samples(
            theta_ptr, phase, decay_ptr, sensitivity_ptr + q, amplitude_ptr, gradient_ptr,
            by_theta_ptr, sums_ptr, q * B + b, here, S, Q, B, P, D, SAMPLES,
        )  # fmt: skip
    else:
        s = ((tl.program_id(2) - 1) * SAMPLES + tl.arange(0, SAMPLES)).to(tl.int64)[:, None]
        inside, at = (s < S) & here[None, :], s * (Q * B) + (q * B + b)[None, :]
        total = tl.zeros([SAMPLES, WAVES], phase.dtype)
        for d in range(D):
            real, imag = _answer(theta_ptr, phase, decay_ptr + d * P, here, P)
            by_cosine = tl.load(gradient_ptr + at * D + d, mask=inside, other=0.0)
            by_sine = tl.load(gradient_ptr + S * Q * B * D + at * D + d, mask=inside, other=0.0)
            sensitivity = tl.load(sensitivity_ptr + d * Q + q)
            total += sensitivity * (by_cosine * real[None, :] - by_sine * imag[None, :])
        tl.store(by_amplitude_ptr + at, total, mask=inside)


@triton.jit
@no_type_check
def _over_samples(
    theta_ptr, phase, decay_ptr, sensitivity_ptr, amplitude_ptr, gradient_ptr,
    by_theta_ptr, sums_ptr, wave, here,
    S: tl.constexpr, Q: tl.constexpr, B: tl.constexpr, P: tl.constexpr, D: tl.constexpr,
    SAMPLES: tl.constexpr,
):  # fmt: skip
    by_theta = ()
    for _ in tl.static_range(P):
        by_theta = by_theta + (tl.zeros_like(phase),)
    for d in range(D):
        real, imag = _answer(theta_ptr, phase, decay_ptr + d * P, here, P)
        sensitivity = tl.load(sensitivity_ptr + d * Q)
        by_real, by_imag = tl.zeros_like(phase), tl.zeros_like(phase)
        for first in range(0, S, SAMPLES):
            s = (first + tl.arange(0, SAMPLES)).to(tl.int64)[:, None]
            inside, at = (s < S) & here[None, :], s * (Q * B) + wave[None, :]
            amplitude = tl.load(amplitude_ptr + at, mask=inside, other=0.0)
            by_cosine = tl.load(gradient_ptr + at * D + d, mask=inside, other=0.0)
            by_sine = tl.load(gradient_ptr + S * Q * B * D + at * D + d, mask=inside, other=0.0)
            by_real += tl.sum(amplitude * by_cosine, 0)
            by_imag -= tl.sum(amplitude * by_sine, 0)
        tl.store(sums_ptr + d * (P + 1) + P, tl.sum(by_real * real + by_imag * imag))
        more = ()
        for p in tl.static_range(P):
            theta = tl.load(theta_ptr + p, mask=here, other=1.0)
            decay = tl.load(decay_ptr + d * P + p)
            share = sensitivity / (decay * decay + theta * theta)
            # (real + j imag)/(γ + jθ), of which -1 and -j times are the derivatives.
            left, right = real * decay + imag * theta, imag * decay - real * theta
            tl.store(
                sums_ptr + d * (P + 1) + p, -tl.sum(share * (by_real * left + by_imag * right))
            )
            more = more + (by_theta[p] + share * (by_real * right - by_imag * left),)
        by_theta = more
    for p in tl.static_range(P):
        tl.store(by_theta_ptr + p, by_theta[p], mask=here)
