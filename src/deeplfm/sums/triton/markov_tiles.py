"""A symmetric matrix over the states of one series, in tiles, and what the Markov kernels do to it.

A state is x_1..x_K, y_1..y_K, w_1..w_M, padded to KP, KP and WP. A matrix A is its tiles
(xx, xy, yx, yy, xw, yw, ww); C vectors over the states are (x [CP,KP], y [CP,KP], w [CP,WP]). A
record of both lies in memory tile after tile.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def load_vector(at, KP: tl.constexpr, WP: tl.constexpr):
    """One vector over the states, in its three parts."""
    k = tl.arange(0, KP)
    return tl.load(at + k), tl.load(at + KP + k), tl.load(at + 2 * KP + tl.arange(0, WP))


@triton.jit
@no_type_check
def store_vector(at, x, y, w, KP: tl.constexpr, WP: tl.constexpr):
    k = tl.arange(0, KP)
    tl.store(at + k, x)
    tl.store(at + KP + k, y)
    tl.store(at + 2 * KP + tl.arange(0, WP), w)


@triton.jit
@no_type_check
def _places(KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr):
    """Where tiles begin in a record: xw, yw, ww, then the vectors; and places inside of a tile."""
    k, m, c = tl.arange(0, KP), tl.arange(0, WP), tl.arange(0, CP)
    square, tall = k[:, None] * KP + k[None, :], k[:, None] * WP + m[None, :]
    small = m[:, None] * WP + m[None, :]
    row: tl.constexpr = 2 * KP + WP
    return square, tall, small, c[:, None] * row + k[None, :], c[:, None] * row + m[None, :]


@triton.jit
@no_type_check
def load_record(at, KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr):
    """The tiles of a matrix and the parts of C vectors."""
    square, tall, small, wide, narrow = _places(KP, WP, CP)
    one: tl.constexpr = KP * KP
    xw: tl.constexpr = 4 * one
    ww: tl.constexpr = xw + 2 * KP * WP
    v: tl.constexpr = ww + WP * WP
    matrix = (
        tl.load(at + square),
        tl.load(at + one + square),
        tl.load(at + 2 * one + square),
        tl.load(at + 3 * one + square),
        tl.load(at + xw + tall),
        tl.load(at + xw + KP * WP + tall),
        tl.load(at + ww + small),
    )
    vectors = (
        tl.load(at + v + wide),
        tl.load(at + v + KP + wide),
        tl.load(at + v + 2 * KP + narrow),
    )
    return matrix, vectors


@triton.jit
@no_type_check
def store_record(at, A, v, KP: tl.constexpr, WP: tl.constexpr, CP: tl.constexpr):
    square, tall, small, wide, narrow = _places(KP, WP, CP)
    one: tl.constexpr = KP * KP
    xw: tl.constexpr = 4 * one
    ww: tl.constexpr = xw + 2 * KP * WP
    after: tl.constexpr = ww + WP * WP
    tl.store(at + square, A[0])
    tl.store(at + one + square, A[1])
    tl.store(at + 2 * one + square, A[2])
    tl.store(at + 3 * one + square, A[3])
    tl.store(at + xw + tall, A[4])
    tl.store(at + xw + KP * WP + tall, A[5])
    tl.store(at + ww + small, A[6])
    tl.store(at + after + wide, v[0])
    tl.store(at + after + KP + wide, v[1])
    tl.store(at + after + 2 * KP + narrow, v[2])


@triton.jit
@no_type_check
def times(A, x, y, w):
    """A v."""
    xx, xy, yx, yy, xw, yw, ww = A
    to_x = tl.sum(xx * x[None, :] + xy * y[None, :], 1) + tl.sum(xw * w[None, :], 1)
    to_y = tl.sum(yx * x[None, :] + yy * y[None, :], 1) + tl.sum(yw * w[None, :], 1)
    to_w = tl.sum(xw * x[:, None] + yw * y[:, None], 0) + tl.sum(ww * w[None, :], 1)
    return to_x, to_y, to_w


@triton.jit
@no_type_check
def inner(ax, ay, aw, bx, by, bw):
    """aᵀb."""
    return tl.sum(ax * bx + ay * by, 0) + tl.sum(aw * bw, 0)


@triton.jit
@no_type_check
def inners(v, x, y, w):
    """The inner products of each of C vectors with one, [CP]."""
    return tl.sum(v[0] * x[None, :] + v[1] * y[None, :], 1) + tl.sum(v[2] * w[None, :], 1)


@triton.jit
@no_type_check
def with_outer(A, ax, ay, aw, bx, by, bw):
    """A + a bᵀ + b aᵀ."""
    xx, xy, yx, yy, xw, yw, ww = A
    return (
        xx + (ax[:, None] * bx[None, :] + bx[:, None] * ax[None, :]),
        xy + (ax[:, None] * by[None, :] + bx[:, None] * ay[None, :]),
        yx + (ay[:, None] * bx[None, :] + by[:, None] * ax[None, :]),
        yy + (ay[:, None] * by[None, :] + by[:, None] * ay[None, :]),
        xw + (ax[:, None] * bw[None, :] + bx[:, None] * aw[None, :]),
        yw + (ay[:, None] * bw[None, :] + by[:, None] * aw[None, :]),
        ww + (aw[:, None] * bw[None, :] + bw[:, None] * aw[None, :]),
    )


@triton.jit
@no_type_check
def without_square(A, ax, ay, aw):
    """A - a aᵀ."""
    xx, xy, yx, yy, xw, yw, ww = A
    return (
        xx - ax[:, None] * ax[None, :],
        xy - ax[:, None] * ay[None, :],
        yx - ay[:, None] * ax[None, :],
        yy - ay[:, None] * ay[None, :],
        xw - ax[:, None] * aw[None, :],
        yw - ay[:, None] * aw[None, :],
        ww - aw[:, None] * aw[None, :],
    )


@triton.jit
@no_type_check
def with_vectors(v, size, x, y, w):
    """Each of C vectors plus `size` [CP] times one."""
    return (
        v[0] + size[:, None] * x[None, :],
        v[1] + size[:, None] * y[None, :],
        v[2] + size[:, None] * w[None, :],
    )


@triton.jit
@no_type_check
def turned(A, c, s, phi):
    """Φ A Φᵀ, Φ = Rot with cosine c and sine s, and phi of the dense block."""
    xx, xy, yx, yy, xw, yw, ww = A
    ca, sa, cb, sb = c[:, None], s[:, None], c[None, :], s[None, :]
    # Two tiles at a time: registers have room for six, and all of them are eight.
    left, low = ca * xx - sa * yx, sa * xx + ca * yx
    right, high = ca * xy - sa * yy, sa * xy + ca * yy
    across_x, across_y = ca * xw - sa * yw, sa * xw + ca * yw
    inside = tl.sum(phi[:, :, None] * ww[None, :, :], 1)
    return (
        left * cb - right * sb,
        left * sb + right * cb,
        low * cb - high * sb,
        low * sb + high * cb,
        tl.sum(across_x[:, None, :] * phi[None, :, :], 2),
        tl.sum(across_y[:, None, :] * phi[None, :, :], 2),
        tl.sum(inside[:, None, :] * phi[None, :, :], 2),
    )


@triton.jit
@no_type_check
def turned_vectors(v, c, s, phi):
    """Φ v, of each of C vectors."""
    x, y, w = v
    return (
        c[None, :] * x - s[None, :] * y,
        s[None, :] * x + c[None, :] * y,
        tl.sum(w[:, None, :] * phi[None, :, :], 2),
    )


@triton.jit
@no_type_check
def evened(A):
    """A as symmetric as it should be; rounding makes it uneven."""
    xx, xy, yx, yy, xw, yw, ww = A
    across = 0.5 * (xy + tl.trans(yx))
    return (
        0.5 * (xx + tl.trans(xx)),
        across,
        tl.trans(across),
        0.5 * (yy + tl.trans(yy)),
        xw,
        yw,
        0.5 * (ww + tl.trans(ww)),
    )
