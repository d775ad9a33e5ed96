"""Filter, smoother and gradient of a Markov state, one series (or stretch of one) per program.

    P → Φ P Φᵀ + Q,   g = P h,  v = hᵀg + noise,  e = y - hᵀm,  m += g e/v,  P -= g gᵀ/v
    back: u = (e - gᵀr)/v,  r += h u,  R → (I - h gᵀ/v) R (I - g hᵀ/v) + h hᵀ/v,  r, R → Φᵀr, Φᵀ R Φ

Formulas of gradients are those of `c/markov_gradient.c`. Matrices stay in registers.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import no_type_check

import triton
import triton.language as tl

from deeplfm.sums.triton.markov_tiles import (
    evened,
    inner,
    inners,
    load_record,
    load_vector,
    store_record,
    store_vector,
    times,
    turned,
    turned_vectors,
    with_outer,
    with_vectors,
    without_square,
)

UNEVEN = tl.constexpr(16)  # rows until rounding may have made a matrix uneven


@triton.jit
@no_type_check
def move(cosines, sines, phis, step, KP: tl.constexpr, WP: tl.constexpr):
    """Cosine and sine of a step, and Φ of the dense block."""
    k, m = tl.arange(0, KP), tl.arange(0, WP)
    c = tl.load(cosines + step * KP + k)
    s = tl.load(sines + step * KP + k)
    phi = tl.load(phis + step * WP * WP + m[:, None] * WP + m[None, :])
    return c, s, phi


@triton.jit
@no_type_check
def _keep_moved(to, P, cosine, sine, phi, KP: tl.constexpr, WP: tl.constexpr):
    """Φ P, of the columns of the dense block: for the gradient of its Φ."""
    k, m = tl.arange(0, KP), tl.arange(0, WP)
    xw, yw, ww = P[4], P[5], P[6]
    ca, sa = cosine[:, None], sine[:, None]
    places = k[:, None] * WP + m[None, :]
    tl.store(to + places, ca * xw - sa * yw)
    tl.store(to + KP * WP + places, sa * xw + ca * yw)
    inside = tl.sum(phi[:, :, None] * ww[None, :, :], 1)
    tl.store(to + 2 * KP * WP + m[:, None] * WP + m[None, :], inside)


@triton.jit
@no_type_check
def _use_entry(
    P, v, entry, d, loadings, noise, targets, observed,
    C: tl.constexpr, KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr,
):  # fmt: skip
    """One entry: P and m with it, its gain, variance and errors."""
    c = tl.arange(0, CP)
    seen = tl.load(observed + entry).to(tl.float64)
    hx, hy, hw = load_vector(loadings + d * (2 * KP + WP), KP, WP)
    gx, gy, gw = times(P, hx, hy, hw)
    gx, gy, gw = gx * seen, gy * seen, gw * seen
    size = tl.maximum(inner(hx, hy, hw, gx, gy, gw), 0.0) + tl.load(noise + entry)
    size = tl.where(seen > 0, size, 1.0)
    y = tl.load(targets + entry * C + c, mask=c < C, other=0.0)
    error = tl.where(seen > 0, y - inners(v, hx, hy, hw), 0.0)
    v = with_vectors(v, error / size, gx, gy, gw)
    root = 1 / tl.sqrt(size)
    P = without_square(P, gx * root, gy * root, gw * root)
    return P, v, gx, gy, gw, size, error


@triton.jit
@no_type_check
def filter_rows(
    cosines, sines, spreads, phis, qs, loadings, noise, targets, following, observed, readout,
    first, last, log_det, gram, gains, variances, errors, kept, moved, before, Pz, zPz, zm,
    L, D: tl.constexpr, C: tl.constexpr, E: tl.constexpr,
    SZ: tl.constexpr, KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr,
    KEEP_GAINS: tl.constexpr, KEEP_ALL: tl.constexpr, READ: tl.constexpr,
):  # fmt: skip
    """Rows of one series from a given record to the next; what passes back needs is kept."""
    lane = tl.program_id(0).to(tl.int64)
    S: tl.constexpr = 2 * KP + WP
    k, m, c = tl.arange(0, KP), tl.arange(0, WP), tl.arange(0, CP)
    P, v = load_record(first + lane * SZ, KP, WP, CP)
    total = tl.sum(tl.zeros([CP], tl.float64), 0)
    squares = tl.zeros([CP, CP], tl.float64)
    t = 0
    while t < L:
        row = lane * L + t
        if KEEP_ALL:
            store_record(kept + row * SZ, P, v, KP, WP, CP)
        for d in range(D):
            entry = row * D + d
            P, v, gx, gy, gw, size, error = _use_entry(
                P, v, entry, d, loadings, noise, targets, observed, C, KP, WP, CP
            )
            total += tl.log(size)
            squares += error[:, None] * error[None, :] / size
            if KEEP_GAINS:
                store_vector(gains + entry * S, gx, gy, gw, KP, WP)
                tl.store(variances + entry, size)
                tl.store(errors + entry * CP + c, error)
        if READ:
            for e in range(E):
                at = row * E + e
                zx, zy, zw = load_vector(readout + e * S, KP, WP)
                px, py, pw = times(P, zx, zy, zw)
                store_vector(Pz + at * S, px, py, pw, KP, WP)
                tl.store(zPz + at, inner(zx, zy, zw, px, py, pw))
                tl.store(zm + at * CP + c, inners(v, zx, zy, zw))
        step = tl.load(following + row).to(tl.int64)
        cosine, sine, phi = move(cosines, sines, phis, step, KP, WP)
        if KEEP_ALL:
            tl.store(before + row * CP * WP + c[:, None] * WP + m[None, :], v[2])
            _keep_moved(moved + row * S * WP, P, cosine, sine, phi, KP, WP)
        spread = tl.load(spreads + step * KP + k)
        on_diagonal = tl.where(k[:, None] == k[None, :], spread[:, None], 0.0)
        q = tl.load(qs + step * WP * WP + m[:, None] * WP + m[None, :])
        P = turned(P, cosine, sine, phi)
        P = (P[0] + on_diagonal, P[1], P[2], P[3] + on_diagonal, P[4], P[5], P[6] + q)
        v = turned_vectors(v, cosine, sine, phi)
        if t % UNEVEN == 0:
            P = evened(P)
        t += 1
    store_record(last + lane * SZ, P, v, KP, WP, CP)
    tl.store(log_det + lane, total)
    tl.store(gram + lane * CP * CP + c[:, None] * CP + c[None, :], squares)


@triton.jit
@no_type_check
def take_in(
    R, r, entry, d, loadings, gains, variances, errors, observed,
    KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr,
):  # fmt: skip
    """One entry, backwards: R and r with it, its u [CP] and w, and its q = w h - R g/v."""
    S: tl.constexpr = 2 * KP + WP
    c = tl.arange(0, CP)
    seen = tl.load(observed + entry).to(tl.float64)
    hx, hy, hw = load_vector(loadings + d * S, KP, WP)
    hx, hy, hw = hx * seen, hy * seen, hw * seen
    gx, gy, gw = load_vector(gains + entry * S, KP, WP)
    size = tl.load(variances + entry)
    kx, ky, kw = times(R, gx, gy, gw)
    kx, ky, kw = kx / size, ky / size, kw / size
    w = seen * (1 / size + inner(gx, gy, gw, kx, ky, kw) / size)
    u = seen * (tl.load(errors + entry * CP + c) - inners(r, gx, gy, gw)) / size
    r = with_vectors(r, u, hx, hy, hw)
    half = 0.5 * w
    R = with_outer(R, hx, hy, hw, half * hx - kx, half * hy - ky, half * hw - kw)
    return R, r, u, w, w * hx - kx, w * hy - ky, w * hw - kw


@triton.jit
@no_type_check
def smooth_rows(
    cosines, sines, spreads, phis, qs, loadings, following, observed, first, last,
    gains, variances, errors, Pz, zPz, zm,
    mean, variance, weights,
    L, D: tl.constexpr, C: tl.constexpr, E: tl.constexpr,
    SZ: tl.constexpr, KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr,
):  # fmt: skip
    """Back over the rows of a series, from what is known of those after them."""
    lane = tl.program_id(0).to(tl.int64)
    S: tl.constexpr = 2 * KP + WP
    c = tl.arange(0, CP)
    R, r = load_record(first + lane * SZ, KP, WP, CP)
    back = 0
    while back < L:
        row = lane * L + L - 1 - back
        cosine, sine, phi = move(
            cosines, sines, phis, tl.load(following + row).to(tl.int64), KP, WP
        )
        R = turned(R, cosine, -sine, tl.trans(phi))
        r = turned_vectors(r, cosine, -sine, tl.trans(phi))
        for e in range(E):
            at = row * E + e
            px, py, pw = load_vector(Pz + at * S, KP, WP)
            qx, qy, qw = times(R, px, py, pw)
            after = tl.load(zPz + at) - inner(px, py, pw, qx, qy, qw)
            tl.store(variance + at, tl.maximum(after, 0.0))
            found = tl.load(zm + at * CP + c) + inners(r, px, py, pw)
            tl.store(mean + at * C + c, found, mask=c < C)
        for j in range(D):
            d = D - 1 - j
            entry = row * D + d
            R, r, u, _, _, _, _ = take_in(
                R, r, entry, d, loadings, gains, variances, errors, observed, KP, WP, CP
            )
            tl.store(weights + entry * C + c, u, mask=c < C)
        if back % UNEVEN == 0:
            R = evened(R)
        back += 1
    store_record(last + lane * SZ, R, r, KP, WP, CP)
