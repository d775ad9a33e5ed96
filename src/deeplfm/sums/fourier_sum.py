"""The sum of a Fourier layer: random waves along each input, through an ODE, weighted.

    f_d(x) = c_d + Σ_p Σ_qr Re(φ_pqr(x)) w_dqr + Im(φ_pqr(x)) w'_dqr      [DLFM Eq. 9]
    φ_pqr(x) = |a_pq|/√R · α_p · e^{jβ} · wave(x_p; ω_qrp)

Infinite memory: wave = H(ω) e^{jωx}. Zero memory: H(ω) (e^{jωx} - transients), and before the
origin the ODE runs backwards from its zero state: (-1)^n times the conjugate of wave(|x|).
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.greens_functions import Dynamics
from deeplfm.greens_functions.factors import complex_product
from deeplfm.responses.transients import transients
from deeplfm.shapes import Memory
from deeplfm.sums.backend import Backend
from deeplfm.sums.candidate import sum_with
from deeplfm.sums.plane_wave_sum import plane_wave_sum


def _widths_agree(
    x: Tensor, shared: Tensor | None, dynamics: Dynamics, omega: Tensor, *others: Any, **_: Any
) -> None:
    """P = P1 + P2 and F = 2QR, which letters alone do not say; G is 1 or D."""
    inputs = x.shape[-1] + (0 if shared is None else shared.shape[-1])
    if inputs != omega.shape[-1]:
        raise InputError(
            f"inputs of fourier_sum must be {omega.shape[-1]}, as many as its frequencies have; "
            f"got {inputs}. Evaluate a draw at as many inputs as its layer has."
        )
    weights = others[3]
    features, groups = 2 * omega.shape[2] * omega.shape[3], omega.shape[1]
    if weights.shape[-1] != features or groups not in (1, weights.shape[1]):
        raise InputError(
            f"weights of fourier_sum must be [S, D, {features}] with D = {groups}, or any D for "
            f"one set of frequencies; got {list(weights.shape)}. Draw both from one layer."
        )


@sum_with(_widths_agree)
def fourier_sum(
    x: Float[Tensor, "#S N P1"],
    shared: Float[Tensor, "N P2"] | None,
    dynamics: Dynamics,
    omega: Float[Tensor, "#S G Q R P"],
    amplitude: Float[Tensor, "G P Q"],
    input_weights: Float[Tensor, " P"] | None,
    phases: Float[Tensor, "G Q R P"] | None,
    weights: Float[Tensor, "S D F"],
    offset: Float[Tensor, " D"],
    memory: Memory,
    *,
    backend: Backend = "plain",
) -> Float[Tensor, "S N D"]:
    """P = P1 + P2: inputs of each sample, then those that all samples share; F = 2QR.

    G is 1 or D; the sign of an amplitude does not count. The ODE has factors [1 or D, P].
    """
    from_zero_state = memory == "zero" and dynamics.order > 0
    response = _response(dynamics, omega, amplitude, input_weights)
    parts = _weights_of_waves(response, phases, weights, omega.shape[2:4])
    frequency = omega.permute(0, 1, 4, 2, 3).flatten(-2)  # #S G P QR
    total: Tensor = offset
    for points, along in _inputs(x, shared):
        signs = _signs(points, dynamics.order) if from_zero_state else None
        some = _Weights(*(torch.stack(part)[..., along, :] for part in parts))
        if signs is None:  # one sum will do
            some = _Weights(some.even.sum(0, keepdim=True), some.odd.sum(0, keepdim=True))
        # Not abs: its slope at 0 would be none, where the function is smooth.
        lag = points if signs is None else torch.where(points < 0, -points, points)
        sums = _along_inputs(lag, frequency[:, :, along], some, backend)  # T S N D P
        if from_zero_state:
            sums = sums - _transients(dynamics, lag, frequency[:, :, along], some, along)
        if signs is not None:
            sums = signs[..., None, :] * sums
        total = total + sums.sum((0, -1))
    return total


class _Weights(NamedTuple):
    """The weights of cos ωx and sin ωx, [T, S, D, P, QR].

    T is 2: what Re φ and Im φ give, which differ in their sign before the origin; or 1, their sum.
    """

    even: Tensor
    odd: Tensor


def _inputs(x: Tensor, shared: Tensor | None) -> list[tuple[Tensor, slice]]:
    """Inputs of each sample and inputs that all share, with their places among all inputs."""
    own = x.shape[-1]
    parts = [(x, slice(0, own))] if own else []
    return parts if shared is None else [*parts, (shared[None], slice(own, None))]


def _response(
    dynamics: Dynamics, omega: Tensor, amplitude: Tensor, input_weights: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Re and Im of H(ω) with amplitudes over √R, [#S, G, P, QR]; no Im where nothing turns."""
    count = omega.shape[3]
    size = amplitude.abs()
    if input_weights is not None:
        size = size * input_weights[:, None]
    scale = (size / math.sqrt(count))[..., None].expand(-1, -1, -1, count).flatten(-2)
    answer = dynamics.frequency_response(omega.permute(0, 1, 4, 2, 3).flatten(-2))
    return (scale, None) if answer is None else (scale * answer[0], scale * answer[1])


def _weights_of_waves(
    response: tuple[Tensor, Tensor | None],
    phases: Tensor | None,
    weights: Tensor,
    sizes: Sequence[int],
) -> tuple[list[Tensor], list[Tensor]]:
    """Weights of cos and of sin, [S, D, P, QR]: what Re φ gives, then what Im φ gives."""
    forces, count = sizes
    split = weights.unflatten(-1, (forces, 2, count))  # S D Q 2 R
    cosine, sine = (part.flatten(-2)[:, :, None] for part in split.unbind(-2))  # S D 1 QR
    real, imag = response
    if phases is not None:  # turned after the ODE has run backwards, before the origin
        turn = phases.permute(0, 3, 1, 2).flatten(-2)
        cosine, sine = complex_product((cosine, sine), (torch.cos(turn), -torch.sin(turn)))
    if imag is None:
        zero = torch.zeros_like(real * cosine)
        return [real * cosine, zero], [zero, real * sine]
    return [real * cosine, imag * sine], [-imag * cosine, real * sine]


def _signs(points: Tensor, order: int) -> Tensor | None:
    """What the parts of φ are multiplied by, [2, #S, N, P]; none where no point is before 0."""
    before = points < 0
    if points.device.type == "cpu" and not bool(before.any()):
        return None
    sign = torch.where(before, -1.0 if order % 2 else 1.0, 1.0)
    return torch.stack([sign, torch.where(before, -sign, sign)]).to(points)


def _along_inputs(lag: Tensor, frequency: Tensor, weights: _Weights, backend: Backend) -> Tensor:
    """The sums of waves along each input, [T, S, N, D, P]."""
    count, _, outputs = weights.even.shape[:3]
    each = outputs // frequency.shape[1]
    by_input = []
    for p in range(lag.shape[-1]):
        groups = []
        for g in range(frequency.shape[1]):
            own = slice(g * each, (g + 1) * each)
            columns = (part[:, :, own, p].permute(1, 3, 0, 2).flatten(2) for part in weights)
            sums = plane_wave_sum.by(
                backend, lag[..., p : p + 1], frequency[:, g, p, :, None], *columns
            )
            groups.append(sums.unflatten(-1, (count, each)))  # S N T D'
        by_input.append(torch.cat(groups, dim=-1))
    return torch.stack(by_input, dim=-1).permute(2, 0, 1, 3, 4)


def _transients(
    dynamics: Dynamics, lag: Tensor, frequency: Tensor, weights: _Weights, along: slice
) -> Tensor:
    """Σ_k b_k(lag) Re Σ_r (jω)^k H: what the start takes off, [T, S, N, D, P]."""
    rise, others = transients(dynamics.fixed().along(along), lag[:, :, None])
    total = (1 - rise) * weights.even.sum(-1)[:, :, None]
    for k, motion in enumerate(others, start=1):
        sign, part = (1, -1)[k // 2 % 2], (weights.even, weights.odd)[k % 2]
        total = total + motion * (sign * frequency**k * part).sum(-1)[:, :, None]
    return total


def _first_order(*arguments: Any, **options: Any) -> tuple[Any, ...]:
    """The arguments of the kernels for an ODE of first order from its zero state."""
    x, shared, dynamics, omega, amplitude, _, _, weights, offset = arguments[:9]
    (factor,), gain = dynamics.factors, dynamics.gain(trailing=1)
    if isinstance(gain, Tensor):  # positive, as the amplitudes are made there
        amplitude = amplitude * gain
    own: Tensor | None = x
    if len(x) == 1 and len(weights) > 1:  # nothing is a sample's own
        own, shared = None, x[0] if shared is None else torch.cat([x[0], shared], dim=-1)
    return own, shared, omega[0], factor[0], amplitude, weights, offset


def _is_first_order(
    x: Tensor,
    shared: Tensor | None,
    dynamics: Dynamics,
    omega: Tensor,
    amplitude: Tensor,
    input_weights: Tensor | None,
    phases: Tensor | None,
    weights: Tensor,
    offset: Tensor,
    memory: Memory,
    **_: Any,
) -> bool:
    """One ODE of first order along each input, from its zero state, and one Ω for all samples."""
    simple = dynamics.order == 1 and memory == "zero" and phases is None and input_weights is None
    return (
        simple
        and len(omega) == 1
        and dynamics.factors[0][0].shape[:1] == omega.shape[1:2]  # else several ODEs share forces
        and x.shape[1] > 0
    )


def _is_stable_first_order(*arguments: Any, **options: Any) -> bool:
    return arguments[2].stable and _is_first_order(*arguments, **options)


def _by_c(*arguments: Any, **_: Any) -> Tensor:
    from deeplfm.sums.c.fourier import first_order_fourier_sum

    return first_order_fourier_sum(*_first_order(*arguments))


def _by_lookup(*arguments: Any, **_: Any) -> Tensor | None:
    from deeplfm.sums.torch.fourier_lookup import first_order_fourier_sum

    return first_order_fourier_sum(*_first_order(*arguments))


def _by_triton(*arguments: Any, **_: Any) -> Tensor:
    from deeplfm.sums.triton.fourier import first_order_fourier_sum

    return first_order_fourier_sum(*_first_order(*arguments))


fourier_sum.add("c", _by_c, fits=_is_stable_first_order)
fourier_sum.add("triton", _by_triton, fits=_is_first_order)
fourier_sum.add("torch", _by_lookup, fits=_is_first_order)
