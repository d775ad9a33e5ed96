"""Gradients of the evidence of a Markov state by the adjoint of its filter, one series a program.

The formulas are those of `c/markov_gradient.c`, by the names that it has. Sums over the rows that
one step leads to are left to the caller: every row writes its own.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import no_type_check

import triton
import triton.language as tl

from deeplfm.sums.triton.markov_kernels import UNEVEN, move, take_in
from deeplfm.sums.triton.markov_tiles import (
    evened,
    inner,
    load_record,
    load_vector,
    store_vector,
    times,
    turned,
    turned_vectors,
)


@triton.jit
@no_type_check
def _toward(A, v):
    """t_c = -Σ_d (A + Aᵀ)_cd v_d, of C vectors."""
    both = -(A + tl.trans(A))
    return (
        tl.sum(both[:, :, None] * v[0][None, :, :], 1),
        tl.sum(both[:, :, None] * v[1][None, :, :], 1),
        tl.sum(both[:, :, None] * v[2][None, :, :], 1),
    )


@triton.jit
@no_type_check
def _column(v, c, at):
    """The one of C vectors whose number is `at`."""
    own = (c == at)[:, None]
    return (
        tl.sum(tl.where(own, v[0], 0.0), 0),
        tl.sum(tl.where(own, v[1], 0.0), 0),
        tl.sum(tl.where(own, v[2], 0.0), 0),
    )


@triton.jit
@no_type_check
def _add_to(at, size, x, y, w, KP: tl.constexpr, WP: tl.constexpr):
    ox, oy, ow = load_vector(at, KP, WP)
    store_vector(at, ox + size * x, oy + size * y, ow + size * w, KP, WP)


@triton.jit
@no_type_check
def _by_entries(
    P, row, lane, a, A, gains, variances, us, ws, qs, by_noise, by_targets, by_loadings,
    D: tl.constexpr, C: tl.constexpr, KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr,
    TARGETS: tl.constexpr,
):  # fmt: skip
    """By noise and targets; by loadings the part of the log det: 2 a (P of that entry) q."""
    S: tl.constexpr = 2 * KP + WP
    c = tl.arange(0, CP)
    for d in range(D):
        entry, own = row * D + d, lane * D + d
        u = tl.load(us + own * CP + c)
        by_u = -tl.sum((A + tl.trans(A)) * u[None, :], 1)
        other = tl.load(us + own * CP + c)  # in the order of `by_u`
        tl.store(by_noise + entry, a * tl.load(ws + own) + tl.sum(other * by_u, 0) / 2)
        if TARGETS:
            tl.store(by_targets + entry * C + c, -by_u, mask=c < C)
        qx, qy, qw = load_vector(qs + own * S, KP, WP)
        px, py, pw = times(P, qx, qy, qw)
        for i in range(d):
            gx, gy, gw = load_vector(gains + (row * D + i) * S, KP, WP)
            size = inner(gx, gy, gw, qx, qy, qw) / tl.load(variances + row * D + i)
            px, py, pw = px - size * gx, py - size * gy, pw - size * gw
        _add_to(by_loadings + own * S, 2 * a, px, py, pw, KP, WP)


@triton.jit
@no_type_check
def _by_block(
    R, r, t, row, a, moved, before, by_phi, by_q,
    KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr, FIRST: tl.constexpr,
):  # fmt: skip
    """By Φ and Q of the dense block; `moved` and `before` are those of the step to this row."""
    k, m, c = tl.arange(0, KP), tl.arange(0, WP), tl.arange(0, CP)
    Gx = a * R[4] + 0.5 * tl.sum(t[0][:, :, None] * r[2][:, None, :], 0)
    Gy = a * R[5] + 0.5 * tl.sum(t[1][:, :, None] * r[2][:, None, :], 0)
    Gw = a * R[6] + 0.5 * tl.sum(t[2][:, :, None] * r[2][:, None, :], 0)
    small = m[:, None] * WP + m[None, :]
    tl.store(by_q + row * WP * WP + small, Gw)
    if not FIRST:
        at = moved + (row - 1) * (2 * KP + WP) * WP
        tall = k[:, None] * WP + m[None, :]
        found = tl.sum(Gx[:, :, None] * tl.load(at + tall)[:, None, :], 0)
        found += tl.sum(Gy[:, :, None] * tl.load(at + KP * WP + tall)[:, None, :], 0)
        found += tl.sum(Gw[:, :, None] * tl.load(at + 2 * KP * WP + small)[:, None, :], 0)
        means = tl.load(before + (row - 1) * CP * WP + c[:, None] * WP + m[None, :])
        found = 2 * found + tl.sum(t[2][:, :, None] * means[:, None, :], 0)
        tl.store(by_phi + row * WP * WP + small, found)


@triton.jit
@no_type_check
def _by_oscillators(R, P, a):
    """2 a of R P in each tile: its trace, its turn; and a times the trace of R."""
    xx, xy, yx, yy, xw, yw, _ = R
    pxx, pxy, pyx, pyy, pxw, pyw, _ = P
    same = tl.sum(xx * pxx + xy * pxy + yx * pyx + yy * pyy, 1)
    same += tl.sum(xw * pxw + yw * pyw, 1)
    other = tl.sum(yx * pxx + yy * pxy - xx * pyx - xy * pyy, 1)
    other += tl.sum(yw * pxw - xw * pyw, 1)
    k = tl.arange(0, xx.shape[0])
    trace = tl.sum(tl.where(k[:, None] == k[None, :], xx + yy, 0.0), 1)
    return 2 * a * same, 2 * a * other, a * trace


@triton.jit
@no_type_check
def _by_columns(
    P, v, R, r, t, lane, a, A, us, by_loadings,
    D: tl.constexpr, C: tl.constexpr, KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr,
):  # fmt: skip
    """By the tiles of oscillators; by loadings the part of the columns: Σ_c t(u)_c x_c."""
    c = tl.arange(0, CP)
    same, other, trace = _by_oscillators(R, P, a)
    for at in range(C):
        rx, ry, rw = _column(r, c, at)
        x, y, w = times(P, rx, ry, rw)
        mx, my, mw = _column(v, c, at)
        x, y, w = x + mx, y + my, w + mw
        tx, ty, _ = _column(t, c, at)
        same += tx * x + ty * y
        other += ty * x - tx * y
        trace += (tx * rx + ty * ry) / 2
        for d in range(D):
            u = tl.load(us + (lane * D + d) * CP + c)
            own = tl.where(c == at, 1.0, 0.0)
            size = -tl.sum(tl.sum((A + tl.trans(A)) * own[:, None], 0) * u, 0)
            _add_to(by_loadings + (lane * D + d) * (2 * KP + WP), size, x, y, w, KP, WP)
    return same, other, trace


@triton.jit
@no_type_check
def gradient_rows(
    cosines, sines, spreads, phis, diffusions, loadings, following, observed,
    gains, variances, errors, kept, moved, before,
    by_log_det, by_gram, us, ws, qs,
    by_same, by_other, by_trace, by_phi, by_q, by_loadings, by_noise, by_targets,
    L, D: tl.constexpr, C: tl.constexpr,
    SZ: tl.constexpr, KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr,
    TARGETS: tl.constexpr,
):  # fmt: skip
    """Back over all rows of a series."""
    lane = tl.program_id(0).to(tl.int64)
    S: tl.constexpr = 2 * KP + WP
    k, c = tl.arange(0, KP), tl.arange(0, CP)
    a = tl.load(by_log_det + lane)
    A = tl.load(by_gram + lane * CP * CP + c[:, None] * CP + c[None, :])
    R, r = load_record(kept + lane * L * SZ, KP, WP, CP)
    R = (R[0] * 0, R[1] * 0, R[2] * 0, R[3] * 0, R[4] * 0, R[5] * 0, R[6] * 0)
    r = (r[0] * 0, r[1] * 0, r[2] * 0)
    back = 0
    while back < L:
        row = lane * L + L - 1 - back
        cosine, sine, phi = move(
            cosines, sines, phis, tl.load(following + row).to(tl.int64), KP, WP
        )
        R = turned(R, cosine, -sine, tl.trans(phi))
        r = turned_vectors(r, cosine, -sine, tl.trans(phi))
        for j in range(D):
            d = D - 1 - j
            R, r, u, w, qx, qy, qw = take_in(
                R, r, row * D + d, d, loadings, gains, variances, errors, observed, KP, WP, CP
            )
            own = lane * D + d
            tl.store(us + own * CP + c, u)
            tl.store(ws + own, w)
            store_vector(qs + own * S, qx, qy, qw, KP, WP)
        tl.debug_barrier()  # what was stored is read by other threads
        P, v = load_record(kept + row * SZ, KP, WP, CP)
        _by_entries(
            P, row, lane, a, A, gains, variances, us, ws, qs, by_noise, by_targets, by_loadings,
            D, C, KP, WP, CP, TARGETS,
        )  # fmt: skip
        t = _toward(A, r)
        same, other, trace = _by_columns(
            P, v, R, r, t, lane, a, A, us, by_loadings, D, C, KP, WP, CP
        )
        tl.store(by_same + row * KP + k, same)
        tl.store(by_other + row * KP + k, other)
        tl.store(by_trace + row * KP + k, trace)
        if back == L - 1:
            _by_block(R, r, t, row, a, moved, before, by_phi, by_q, KP, WP, CP, True)
        else:
            _by_block(R, r, t, row, a, moved, before, by_phi, by_q, KP, WP, CP, False)
        tl.debug_barrier()
        if back % UNEVEN == 0:
            R = evened(R)
        back += 1
