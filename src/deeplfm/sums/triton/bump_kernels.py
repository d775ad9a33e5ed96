"""The kernels of `triton_bumps`: first-order bump responses, their products and derivatives.

With t = (x-z)/ℓ, κ = γℓ, m = κ - t, g = e^{-t²/2} the response is ℓ k_0, and k_n = g M_n(m); where
m < 0 the growing part of M_n is folded with g into one exponent. Derivatives are those of
`responses.bumps`, by whichever of two equal forms does not cancel.
"""

# ruff: noqa: RUF005 (kernels know no unpacking of tuples)

from typing import no_type_check

import triton
import triton.language as tl

from deeplfm.sums.triton.maths import columns_of, half_gaussian_moments


@triton.jit
@no_type_check
def _zeros(like, count: tl.constexpr):
    zeros = ()
    for _ in tl.static_range(count):
        zeros = zeros + (tl.zeros_like(like),)
    return zeros


@triton.jit
@no_type_check
def _lags(x, center_ptr, inverse, live, P: tl.constexpr):
    """t and e^{-t²/2} of one center, [P] each."""
    lags, here = (), ()
    for p in tl.static_range(P):
        t = (x[p] - tl.load(center_ptr + p, mask=live, other=0.0)) * inverse[p]
        lags = lags + (t,)
        here = here + (tl.exp(-0.5 * t * t),)
    return lags, here


@triton.jit
@no_type_check
def _moments(t, here, kappa, with_first: tl.constexpr):
    """k_0 and k_1."""
    m = kappa - t
    left = m < 0
    zeroth, first = half_gaussian_moments(tl.abs(m), with_first)
    growth = tl.exp(tl.where(left, kappa * (0.5 * kappa - t), -1e30)) * 2.5066282746310002
    zeroth = here * tl.where(left, -zeroth, zeroth) + growth
    if with_first:
        first = here * first + growth * tl.abs(m)
    return zeroth, first


@triton.jit
@no_type_check
def _slopes(t, here, kappa, k0, k1):
    """∂h/∂z and ∂h/∂ℓ."""
    k2 = k0 - (kappa - t) * k1
    far = tl.abs(t) > kappa
    by_center = tl.where(far, kappa * k0 - here, t * k0 - k1)
    late = (1 + kappa * kappa) * k0 - (t + kappa) * here
    return by_center, tl.where(far, late, t * (t * k0 - 2 * k1) + k2)


@triton.jit
@no_type_check
def forward(
    x_ptr, center_ptr, scale_ptr, decay_ptr, coefficient_ptr, out_ptr,
    points, x_s, x_n, x_p,
    Q: tl.constexpr, M: tl.constexpr, P: tl.constexpr, D: tl.constexpr, OWN: tl.constexpr,
    CHUNK: tl.constexpr, APART: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    GROUPS: tl.constexpr = D // OWN
    CHUNKS: tl.constexpr = (M + CHUNK - 1) // CHUNK
    row = tl.program_id(0).to(tl.int64)
    s, first = row // GROUPS, row % GROUPS * OWN
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = columns_of(x_ptr + s * x_s, n, points, x_n, x_p, P)
    totals = _zeros(x[0], OWN)
    for i in range(CHUNK if APART else Q * M):
        j, q, live = i, i // M, True
        if APART:
            q = tl.program_id(2) // CHUNKS
            live = tl.program_id(2) % CHUNKS * CHUNK + i < M
            j = q * M + tl.program_id(2) % CHUNKS * CHUNK + i
        products = ()
        for _ in tl.static_range(OWN):
            products = products + (tl.full(n.shape, 1.0, x[0].dtype),)
        for p in tl.static_range(P):
            scale = tl.load(scale_ptr + q * P + p)
            t = (x[p] - tl.load(center_ptr + j * P + p, mask=live, other=0.0)) * (1.0 / scale)
            here = tl.exp(-0.5 * t * t)
            more = ()
            for d in tl.static_range(OWN):
                kappa = tl.load(decay_ptr + (first + d) * P + p) * scale
                more = more + (products[d] * (scale * _moments(t, here, kappa, False)[0]),)
            products = more
        more = ()
        for d in tl.static_range(OWN):
            if APART:
                at = ((first + d) * points + n) * (Q * M) + j
                tl.store(out_ptr + at, products[d], mask=(n < points) & live)
                more = more + (totals[d],)
            else:
                coefficient = tl.load(coefficient_ptr + (s * D + first + d) * (Q * M) + j)
                more = more + (totals[d] + coefficient * products[d],)
        totals = more
    if not APART:
        for d in tl.static_range(OWN):
            tl.store(out_ptr + (s * points + n) * D + first + d, totals[d], mask=n < points)


@triton.jit
@no_type_check
def _parameters(scale_ptr, decay_ptr, OWN: tl.constexpr, P: tl.constexpr):
    """ℓ and 1/ℓ, [P] each, and κ of each output, [OWN·P]."""
    scale, inverse, kappa = (), (), ()
    for p in tl.static_range(P):
        ell = tl.load(scale_ptr + p)
        scale = scale + (ell,)
        inverse = inverse + (1.0 / ell,)
    for d in tl.static_range(OWN):
        for p in tl.static_range(P):
            kappa = kappa + (tl.load(decay_ptr + d * P + p) * scale[p],)
    return scale, inverse, kappa


@triton.jit
@no_type_check
def _partials(t, here, scale, kappa, weight, d: tl.constexpr, P: tl.constexpr):
    """weight·∂Π/∂z_p, weight·∂Π/∂ℓ_p, -weight·∂Π/∂γ_p of the product Π of one output; and Π."""
    responses, by_center, by_scale, by_decay = (), (), (), ()
    for p in tl.static_range(P):
        k0, k1 = _moments(t[p], here[p], kappa[d * P + p], True)
        in_center, in_scale = _slopes(t[p], here[p], kappa[d * P + p], k0, k1)
        responses = responses + (scale[p] * k0,)
        by_center = by_center + (in_center,)
        by_scale = by_scale + (in_scale,)
        by_decay = by_decay + (scale[p] * scale[p] * k1,)
    z, ell, gamma = (), (), ()
    before, product = weight, responses[0]
    for p in tl.static_range(P):
        others = before
        for later in tl.static_range(p + 1, P):
            others = others * responses[later]
        z = z + (others * by_center[p],)
        ell = ell + (others * by_scale[p],)
        gamma = gamma + (others * by_decay[p],)
        before = before * responses[p]
        if p > 0:
            product = product * responses[p]
    return z, ell, gamma, product


@triton.jit
@no_type_check
def _added(left, right, count: tl.constexpr):
    total = ()
    for k in tl.static_range(count):
        total = total + (left[k] + right[k],)
    return total


@triton.jit
@no_type_check
def backward(
    x_ptr, center_ptr, scale_ptr, decay_ptr, coefficient_ptr, gradient_ptr,
    by_x_ptr, by_parameters_ptr, by_coefficient_ptr,
    points, x_s, x_n, x_p, g_0, g_1, g_2, samples,
    M: tl.constexpr, P: tl.constexpr, D: tl.constexpr, OWN: tl.constexpr,
    CHUNK: tl.constexpr, APART: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    GROUPS: tl.constexpr = D // OWN
    CHUNKS: tl.constexpr = (M + CHUNK - 1) // CHUNK
    q, chunk = tl.program_id(2) // CHUNKS, tl.program_id(2) % CHUNKS
    Q = tl.num_programs(2) // CHUNKS
    row, piece = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    s, first = row // GROUPS, row % GROUPS * OWN
    WIDTH: tl.constexpr = (M + CHUNKS * (1 + OWN)) * P
    by_parameters_ptr += ((piece * tl.num_programs(0) + row) * Q + q) * WIDTH
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = columns_of(x_ptr + s * x_s, n, points, x_n, x_p, P)
    scale, inverse, kappa = _parameters(scale_ptr + q * P, decay_ptr + first * P, OWN, P)
    gradients = _zeros(x[0], OWN)
    if not APART:
        gradients = columns_of(gradient_ptr + s * g_0 + first * g_2, n, points, g_1, g_2, OWN)
    by_x, by_scale, by_decay = _zeros(x[0], P), _zeros(x[0], P), _zeros(x[0], OWN * P)
    for i in range(CHUNK):
        live = chunk * CHUNK + i < M
        j = q * M + chunk * CHUNK + i
        t, here = _lags(x, center_ptr + j * P, inverse, live, P)
        by_center, more_decay = _zeros(x[0], P), ()
        for d in tl.static_range(OWN):
            at = ((s * D + first + d) * Q) * M + j
            weight = gradients[d]
            if APART:
                away = (first + d) * g_0 + n * g_1 + j * g_2
                weight = tl.load(gradient_ptr + away, mask=(n < points) & live, other=0.0)
            coefficient = tl.load(coefficient_ptr + at, mask=live, other=0.0)
            z, ell, gamma, product = _partials(t, here, scale, kappa, weight * coefficient, d, P)
            by_center = _added(by_center, z, P)
            by_scale = _added(by_scale, ell, P)
            for p in tl.static_range(P):
                more_decay = more_decay + (by_decay[d * P + p] - gamma[p],)
            out = piece * samples * (D * M) * Q + at
            tl.store(by_coefficient_ptr + out, tl.sum(weight * product), mask=live)
        by_decay, more_x = more_decay, ()
        for p in tl.static_range(P):
            more_x = more_x + (by_x[p] - by_center[p],)
            at = (chunk * CHUNK + i) * P + p
            tl.store(by_parameters_ptr + at, tl.sum(by_center[p]), mask=live)
        by_x = more_x
    by_scale_ptr = by_parameters_ptr + (M + chunk) * P
    by_decay_ptr = by_parameters_ptr + (M + CHUNKS + chunk * OWN) * P
    by_x_ptr += (((row % GROUPS * Q + q) * CHUNKS + chunk) * samples + s) * points * P
    for p in tl.static_range(P):
        tl.store(by_x_ptr + n * P + p, by_x[p], mask=n < points)
        tl.store(by_scale_ptr + p, tl.sum(by_scale[p]))
    for k in tl.static_range(OWN * P):
        tl.store(by_decay_ptr + k, tl.sum(by_decay[k]))
