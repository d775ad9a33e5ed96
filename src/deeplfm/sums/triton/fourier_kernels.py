"""The kernels of `triton_rest`: waves that one real pole answers from rest, and their derivatives.

With lag = |x|, h = cos(ω lag) - e^{-γ lag}, w = sin(ω lag), H = H' + jH'' the answer of the ODE:
an input gives sign(x)·(h H' - w H'') to the cosine of a wave and h H'' + w H' to its sine. h is
formed as (1 - e^{-γ lag}) - (1 - cos), which does not cancel near the origin.
A table holds for each wave ω in turns (high, low), H', H'' and ω.
"""

from typing import no_type_check

import triton
import triton.language as tl

from deeplfm.sums.triton.maths import half_waves, rise_and_fade, turns


@triton.jit
@no_type_check
def respond(
    omega_ptr, decay_ptr, amplitude_ptr, table_ptr,
    o_g, o_q, o_r, o_p, a_g, a_p, a_q,
    P: tl.constexpr, Q: tl.constexpr, R: tl.constexpr, ROOT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The table [G, P, 5, QR]; the sign of an amplitude does not count."""
    g, p = tl.program_id(0) // P, tl.program_id(0) % P
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < Q * R
    q, r = i // R, i % R
    omega = tl.load(omega_ptr + g * o_g + q * o_q + r * o_r + p * o_p, mask=inside, other=1.0)
    amplitude = tl.load(amplitude_ptr + g * a_g + p * a_p + q * a_q, mask=inside, other=0.0)
    decay = tl.load(decay_ptr + tl.program_id(0))
    share = tl.abs(amplitude) * ROOT / (decay * decay + omega * omega)
    high, low = turns(omega)
    table_ptr += tl.program_id(0) * 5 * (Q * R) + i
    tl.store(table_ptr, high, mask=inside)
    tl.store(table_ptr + Q * R, low, mask=inside)
    tl.store(table_ptr + 2 * Q * R, share * decay, mask=inside)
    tl.store(table_ptr + 3 * Q * R, -share * omega, mask=inside)
    tl.store(table_ptr + 4 * Q * R, omega, mask=inside)


@triton.jit
@no_type_check
def respond_backward(
    omega_ptr, decay_ptr, amplitude_ptr, own_ptr, shared_ptr,
    by_omega_ptr, by_decay_ptr, by_amplitude_ptr,
    o_g, o_q, o_r, o_p, a_g, a_p, a_q,
    P: tl.constexpr, OWN: tl.constexpr, Q: tl.constexpr, R: tl.constexpr,
    ROOT: tl.constexpr, TAIL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients in the parameters, from those in H', H'', ω [G, P, 3QR] and parts of that in γ.

    Of a sample's own inputs that is one part, and one number follows that is not looked at.
    """
    g, p = tl.program_id(0) // P, tl.program_id(0) % P
    decay = tl.load(decay_ptr + tl.program_id(0))
    total = tl.zeros([BLOCK], decay.dtype)
    tail = tl.where(p < OWN, 1, TAIL)
    if p < OWN:
        sums_ptr = own_ptr + (g * OWN + p) * (3 * Q * R + 2)
    else:
        sums_ptr = shared_ptr + (g * (P - OWN) + p - OWN) * (3 * Q * R + TAIL)
    for first in range(0, TAIL, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(sums_ptr + 3 * Q * R + at, mask=at < tail, other=0.0)
    for q in range(Q):
        signed = tl.load(amplitude_ptr + g * a_g + p * a_p + q * a_q)
        amplitude = tl.abs(signed) * ROOT
        by_amplitude = tl.zeros([BLOCK], decay.dtype)
        for first in range(0, R, BLOCK):
            r = first + tl.arange(0, BLOCK)
            inside = r < R
            at = g * o_g + q * o_q + r * o_r + p * o_p
            omega = tl.load(omega_ptr + at, mask=inside, other=1.0)
            by_real = tl.load(sums_ptr + q * R + r, mask=inside, other=0.0)
            by_imag = tl.load(sums_ptr + (Q + q) * R + r, mask=inside, other=0.0)
            by_phase = tl.load(sums_ptr + (2 * Q + q) * R + r, mask=inside, other=0.0)
            share = 1.0 / (decay * decay + omega * omega)
            u, v = decay * share, omega * share
            difference, twice = (v - u) * (v + u), 2 * u * v
            by_omega = by_phase + amplitude * (by_imag * difference - by_real * twice)
            out = ((g * Q + q) * R + r) * P + p
            tl.store(by_omega_ptr + out, by_omega, mask=inside)
            total += amplitude * (by_real * difference + by_imag * twice)
            by_amplitude += by_real * u - by_imag * v
        total_slope = tl.sum(by_amplitude) * ROOT
        total_slope = tl.where(signed < 0, -total_slope, total_slope)
        tl.store(by_amplitude_ptr + tl.program_id(0) * Q + q, total_slope * (signed != 0))
    tl.store(by_decay_ptr + tl.program_id(0), tl.sum(total))


@triton.jit
@no_type_check
def forward(
    x_ptr, table_ptr, decay_ptr, weight_ptr, offset_ptr, known_ptr, out_ptr,
    points, x_s, x_n, x_p, k_s, k_n, k_d,
    G: tl.constexpr, D: tl.constexpr, P: tl.constexpr, OWN: tl.constexpr,
    Q: tl.constexpr, R: tl.constexpr, KNOWN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums over the inputs that each sample has for itself; `known` is what the others gave."""
    row = tl.program_id(0).to(tl.int64)
    s, d = row // D, row % D
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = n < points
    total = tl.zeros([BLOCK], x_ptr.dtype.element_ty) + tl.load(offset_ptr + d)
    if KNOWN:
        total += tl.load(known_ptr + s * k_s + n * k_n + d * k_d, mask=inside, other=0.0)
    weight_ptr += row * (2 * Q * R)
    for p in range(OWN):
        x = tl.load(x_ptr + s * x_s + n * x_n + p * x_p, mask=inside, other=0.0)
        lag = tl.abs(x)
        at_ptr = table_ptr + (d % G * P + p) * (5 * Q * R)
        by_sign, always = tl.zeros_like(x), tl.zeros_like(x)
        decay = tl.load(decay_ptr + d % G * P + p)
        signed_rise, rises = 0.0 * decay, 0.0 * decay
        for i in range(Q * R):
            versine, wave = half_waves(lag, tl.load(at_ptr + i), tl.load(at_ptr + Q * R + i))
            real, imag = tl.load(at_ptr + 2 * Q * R + i), tl.load(at_ptr + 3 * Q * R + i)
            cosine = tl.load(weight_ptr + i + i // R * R)
            sine = tl.load(weight_ptr + i + i // R * R + R)
            by_sign -= versine * (real * cosine) + wave * (imag * cosine)
            always += wave * (real * sine) - versine * (imag * sine)
            signed_rise += real * cosine
            rises += imag * sine
        rise, _ = rise_and_fade(decay * lag)
        by_sign = 2 * by_sign + rise * signed_rise
        total += 2 * always + rise * rises + tl.where(x < 0, -by_sign, by_sign)
    tl.store(out_ptr + (s * points + n) * D + d, total, mask=inside)


@triton.jit
@no_type_check
def backward(
    x_ptr, table_ptr, decay_ptr, weight_ptr, gradient_ptr, by_x_ptr, by_weight_ptr, sums_ptr,
    points, x_s, x_n, x_p, g_s, g_n, g_d, samples,
    G: tl.constexpr, D: tl.constexpr, P: tl.constexpr, OWN: tl.constexpr,
    Q: tl.constexpr, R: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums over a block of points for one sample, output and input."""
    row = tl.program_id(0).to(tl.int64)
    p, d, s = row % OWN, row // OWN % D, row // (OWN * D)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = n < points
    x = tl.load(x_ptr + s * x_s + n * x_n + p * x_p, mask=inside, other=0.0)
    gradient = tl.load(gradient_ptr + s * g_s + n * g_n + d * g_d, mask=inside, other=0.0)
    decay = tl.load(decay_ptr + d % G * P + p)
    lag, before = tl.abs(x), x < 0
    rise, fade = rise_and_fade(decay * lag)
    signed = tl.where(before, -gradient, gradient)
    by_signed_rise, by_rise = tl.sum(signed * rise), tl.sum(gradient * rise)
    table_ptr += (d % G * P + p) * (5 * Q * R)
    weight_ptr += (s * D + d) * (2 * Q * R)
    piece = tl.program_id(1).to(tl.int64) * tl.num_programs(0) + row
    by_weight_ptr += piece * (2 * Q * R)
    sums_ptr += piece * (3 * Q * R + 2)
    by_lag = tl.zeros_like(x)
    signed_rise, rises = 0.0 * decay, 0.0 * decay
    for i in range(Q * R):
        versine, wave = half_waves(lag, tl.load(table_ptr + i), tl.load(table_ptr + Q * R + i))
        real, imag = tl.load(table_ptr + 2 * Q * R + i), tl.load(table_ptr + 3 * Q * R + i)
        cosine = tl.load(weight_ptr + i + i // R * R)
        sine = tl.load(weight_ptr + i + i // R * R + R)
        signed_versine = by_signed_rise - 2 * tl.sum(signed * versine)
        signed_wave = 2 * tl.sum(signed * wave)
        plain_versine = by_rise - 2 * tl.sum(gradient * versine)
        plain_wave = 2 * tl.sum(gradient * wave)
        at = i + i // R * R
        tl.store(by_weight_ptr + at, real * signed_versine - imag * signed_wave)
        tl.store(by_weight_ptr + at + R, imag * plain_versine + real * plain_wave)
        tl.store(sums_ptr + i, cosine * signed_versine + sine * plain_wave)
        tl.store(sums_ptr + Q * R + i, sine * plain_versine - cosine * signed_wave)
        even = tl.where(before, imag * sine - real * cosine, imag * sine + real * cosine)
        odd = tl.where(before, real * sine + imag * cosine, real * sine - imag * cosine)
        slope = gradient * ((1 - 2 * versine) * odd - 2 * wave * even)
        tl.store(sums_ptr + 2 * Q * R + i, tl.sum(slope * lag))
        by_lag += slope * tl.load(table_ptr + 4 * Q * R + i)
        signed_rise += real * cosine
        rises += imag * sine
    left = gradient * fade * tl.where(before, rises - signed_rise, rises + signed_rise)
    tl.store(sums_ptr + 3 * Q * R, tl.sum(lag * left))
    tl.store(sums_ptr + 3 * Q * R + 1, tl.sum(gradient))
    by_lag += decay * left
    out = ((d * samples + s) * points + n) * OWN + p
    tl.store(by_x_ptr + out, tl.where(before, -by_lag, by_lag), mask=inside)


@triton.jit
@no_type_check
def features(
    x_ptr, table_ptr, decay_ptr, out_ptr,
    points, x_n, x_p,
    P: tl.constexpr, OWN: tl.constexpr, Q: tl.constexpr, R: tl.constexpr,
    ROWS: tl.constexpr, WAVES: tl.constexpr,
):  # fmt: skip
    """Features of the inputs that all samples share, summed over them: [G, N, 2QR]."""
    g = tl.program_id(0)
    n = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.program_id(2) * WAVES + tl.arange(0, WAVES)[None, :]
    cosine = tl.zeros([ROWS, WAVES], x_ptr.dtype.element_ty)
    sine = tl.zeros([ROWS, WAVES], x_ptr.dtype.element_ty)
    for p in range(OWN, P):
        x = tl.load(x_ptr + n * x_n + (p - OWN) * x_p, mask=n < points, other=0.0)
        lag = tl.abs(x)
        at_ptr = table_ptr + (g * P + p) * (5 * Q * R) + i
        high = tl.load(at_ptr, mask=i < Q * R, other=0.0)
        low = tl.load(at_ptr + Q * R, mask=i < Q * R, other=0.0)
        real = tl.load(at_ptr + 2 * Q * R, mask=i < Q * R, other=0.0)
        imag = tl.load(at_ptr + 3 * Q * R, mask=i < Q * R, other=0.0)
        versine, wave = half_waves(lag, high, low)
        rise, _ = rise_and_fade(tl.load(decay_ptr + g * P + p) * lag)
        h = rise - 2 * versine
        turned = h * real - 2 * wave * imag
        cosine += tl.where(x < 0, -turned, turned)
        sine += h * imag + 2 * wave * real
    out = (g.to(tl.int64) * points + n) * (2 * Q * R) + i + i // R * R
    inside = (n < points) & (i < Q * R)
    tl.store(out_ptr + out, cosine, mask=inside)
    tl.store(out_ptr + out + R, sine, mask=inside)


@triton.jit
@no_type_check
def features_backward(
    x_ptr, table_ptr, decay_ptr, gradient_ptr, by_x_ptr, sums_ptr,
    points, x_n, x_p, g_g, g_n, g_f,
    P: tl.constexpr, OWN: tl.constexpr, Q: tl.constexpr, R: tl.constexpr,
    WITH_X: tl.constexpr, ROWS: tl.constexpr, WAVES: tl.constexpr,
):  # fmt: skip
    """Sums over a block of points for each of some waves, [blocks, G, P - OWN, 3QR + tail]."""
    g, columns = tl.program_id(0), tl.num_programs(2)
    n = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.program_id(2) * WAVES + tl.arange(0, WAVES)[None, :]
    inside = (n < points) & (i < Q * R)
    at = g.to(tl.int64) * g_g + n * g_n + (i + i // R * R) * g_f
    by_cosine = tl.load(gradient_ptr + at, mask=inside, other=0.0)
    by_sine = tl.load(gradient_ptr + at + R * g_f, mask=inside, other=0.0)
    sums_ptr += (tl.program_id(1) * tl.num_programs(0) + g) * (P - OWN) * (3 * Q * R + columns)
    for p in range(OWN, P):
        x = tl.load(x_ptr + n * x_n + (p - OWN) * x_p, mask=n < points, other=0.0)
        decay = tl.load(decay_ptr + g * P + p)
        lag = tl.abs(x)
        rise, fade = rise_and_fade(decay * lag)
        at_ptr = table_ptr + (g * P + p) * (5 * Q * R) + i
        high = tl.load(at_ptr, mask=i < Q * R, other=0.0)
        low = tl.load(at_ptr + Q * R, mask=i < Q * R, other=0.0)
        real = tl.load(at_ptr + 2 * Q * R, mask=i < Q * R, other=0.0)
        imag = tl.load(at_ptr + 3 * Q * R, mask=i < Q * R, other=0.0)
        versine, wave = half_waves(lag, high, low)
        h, signed = rise - 2 * versine, tl.where(x < 0, -by_cosine, by_cosine)
        by_real = tl.sum(signed * h + by_sine * 2 * wave, 0)[None, :]
        by_imag = tl.sum(by_sine * h - signed * 2 * wave, 0)[None, :]
        even, odd = signed * real + by_sine * imag, by_sine * real - signed * imag
        slope = (1 - 2 * versine) * odd - 2 * wave * even
        tl.store(sums_ptr + i, by_real, mask=i < Q * R)
        tl.store(sums_ptr + Q * R + i, by_imag, mask=i < Q * R)
        tl.store(sums_ptr + 2 * Q * R + i, tl.sum(slope * lag, 0)[None, :], mask=i < Q * R)
        left = fade * even
        tl.store(sums_ptr + 3 * Q * R + tl.program_id(2), tl.sum(lag * left))
        sums_ptr += 3 * Q * R + columns
        if WITH_X:
            omega = tl.load(at_ptr + 4 * Q * R, mask=i < Q * R, other=0.0)
            by_lag = tl.sum(slope * omega + decay * left, 1)[:, None]
            out = ((tl.program_id(2) * tl.num_programs(0) + g) * points + n) * (P - OWN) + p - OWN
            tl.store(by_x_ptr + out, tl.where(x < 0, -by_lag, by_lag), mask=n < points)
