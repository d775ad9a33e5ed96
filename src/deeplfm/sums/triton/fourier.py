"""A Fourier layer of first order that starts from rest, summed over its inputs.

    f[s,n,d] = offset_d + Σ_{qr} Φ'[n,d,qr]·cosine[s,d,qr] + Φ''[n,d,qr]·sine[s,d,qr]
    Φ = Σ_p |amplitude_{gpq}|/√R · wave(x_p; γ_{gp}, ω_{gqrp})   (`layers.fourier`)

Inputs that each sample has for itself go through one kernel that keeps no wave; those that all
samples share give the features Φ once, a factor of one product with the weights of all samples.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.triton import fourier_kernels as kernels
from deeplfm.sums.triton.blocks import block_of, blocks

_ROWS, _WAVES = 8, 32  # of a tile of features
_KEPT = 2**24  # features, kept for the backward pass: more are made again
_BLOCK = 128


def first_order_fourier_sum(
    x: Float[Tensor, "S N P1"] | None,
    shared: Float[Tensor, "N P2"] | None,
    omega: Float[Tensor, "G Q R P"],
    decay: Float[Tensor, "G P"],
    amplitude: Float[Tensor, "G P Q"],
    weights: Float[Tensor, "S D F"],
    offset: Float[Tensor, " D"],
) -> Float[Tensor, "S N D"]:
    """P = P1 + P2, F = 2QR: cosine and sine weights of each force; G is 1 or D.

    The sign of an amplitude does not count.
    """
    total: Tensor = _FromRest.apply(x, shared, omega, decay, amplitude, weights, offset)
    return total


class _Sizes(NamedTuple):
    groups: int
    forces: int
    waves: int  # of a force
    inputs: int
    own: int  # of the inputs, those of each sample
    samples: int
    outputs: int

    @property
    def constants(self) -> dict[str, int]:
        return {"P": self.inputs, "OWN": self.own, "Q": self.forces, "R": self.waves}


class _FromRest(torch.autograd.Function):
    """Keeps its arguments, and the features where they are few."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor | None,
        shared: Tensor | None,
        omega: Tensor,
        decay: Tensor,
        amplitude: Tensor,
        weights: Tensor,
        offset: Tensor,
    ) -> Tensor:
        decay, weights = decay.contiguous(), weights.contiguous()
        size = ctx.size = _sizes(x, omega, weights)
        table = _table(size, omega, decay, amplitude)
        known = waves = None
        if shared is not None:
            waves = _features(size, shared, table, decay)
            known = _product(size, waves, weights)
            waves = waves if waves.numel() <= _KEPT else None
        ctx.save_for_backward(x, shared, omega, decay, amplitude, weights, table, waves)
        if x is None:
            return offset.expand(size.samples, 0, -1) if known is None else known + offset
        points = x.shape[1]
        total = x.new_empty(size.samples, points, size.outputs)
        rows = size.samples * size.outputs
        block = block_of(points, rows, 128)
        kernels.forward[(rows, blocks(points, block))](
            *(x, table, decay, weights, offset, x if known is None else known, total),
            *(points, *x.stride(), *((0, 0, 0) if known is None else known.stride())),
            G=size.groups,
            D=size.outputs,
            **size.constants,
            KNOWN=known is not None,
            BLOCK=block,
            num_warps=1,
        )
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, shared, omega, decay, amplitude, weights, table, waves = ctx.saved_tensors
        size: _Sizes = ctx.size
        by_x = by_shared = by_weights = None
        own = alike = decay  # sums of gradients, where there are such inputs
        if x is not None:
            by_x, by_weights, own = _own_gradients(size, x, table, decay, weights, gradient)
        tail = 1
        if shared is not None:
            waves = _features(size, shared, table, decay) if waves is None else waves
            columns = _columns(size, gradient)
            by_weights = _weight_gradients(size, columns, waves, by_weights)
            by_waves = _feature_gradients(size, columns, weights)
            with_x = ctx.needs_input_grad[1]
            by_shared, alike = _shared_gradients(size, shared, table, decay, by_waves, with_x)
            tail = alike.shape[-1] - 3 * size.forces * size.waves
        by_omega = omega.new_empty(omega.shape)
        by_decay, by_amplitude = torch.empty_like(decay), decay.new_empty(amplitude.shape)
        kernels.respond_backward[(decay.numel(),)](
            *(omega, decay, amplitude, own, alike, by_omega, by_decay, by_amplitude),
            *(*omega.stride(), *amplitude.stride()),
            **size.constants,
            ROOT=1 / math.sqrt(size.waves),
            TAIL=tail,
            BLOCK=_BLOCK,
        )
        # Where each output has waves of its own, the sums over points are there already.
        ready = x is not None and size.groups == size.outputs
        by_offset = own[:, 0, -1] if ready else gradient.sum((0, 1))
        return by_x, by_shared, by_omega, by_decay, by_amplitude, by_weights, by_offset


def _sizes(x: Tensor | None, omega: Tensor, weights: Tensor) -> _Sizes:
    groups, forces, waves, inputs = omega.shape
    samples, outputs, _ = weights.shape
    own = 0 if x is None else x.shape[2]
    return _Sizes(groups, forces, waves, inputs, own, samples, outputs)


def _table(size: _Sizes, omega: Tensor, decay: Tensor, amplitude: Tensor) -> Tensor:
    count = size.forces * size.waves
    table = decay.new_empty(size.groups, size.inputs, 5, count)
    kernels.respond[(size.groups * size.inputs, blocks(count, _BLOCK))](
        *(omega, decay, amplitude, table),
        *(*omega.stride(), *amplitude.stride()),
        P=size.inputs,
        Q=size.forces,
        R=size.waves,
        ROOT=1 / math.sqrt(size.waves),  # a number of full precision
        BLOCK=_BLOCK,
    )
    return table


def _features(size: _Sizes, shared: Tensor, table: Tensor, decay: Tensor) -> Tensor:
    count, points = size.forces * size.waves, len(shared)
    features = shared.new_empty(size.groups, points, 2 * count)
    kernels.features[(size.groups, blocks(points, _ROWS), blocks(count, _WAVES))](
        *(shared, table, decay, features),
        *(points, *shared.stride()),
        **size.constants,
        ROWS=_ROWS,
        WAVES=_WAVES,
        num_warps=1,
    )
    return features


def _product(size: _Sizes, waves: Tensor, weights: Tensor) -> Tensor:
    """[S, N, D], in whatever order the product leaves it."""
    if size.groups == 1:
        flat = waves[0] @ weights.flatten(0, 1).mT
        return flat.reshape(-1, size.samples, size.outputs).transpose(0, 1)
    product = torch.bmm(waves, weights.permute(1, 2, 0))  # D N S
    return product.permute(2, 1, 0)


def _columns(size: _Sizes, gradient: Tensor) -> Tensor:
    """The gradient of the product, [G, N, SD/G]."""
    if size.groups == 1:
        return gradient.transpose(0, 1).flatten(1)[None]
    return gradient.permute(2, 1, 0)


def _weight_gradients(size: _Sizes, columns: Tensor, waves: Tensor, known: Tensor | None) -> Tensor:
    """[S, D, F], added to those of the samples' own inputs."""
    shape = (size.samples, size.outputs, waves.shape[-1])
    if size.groups == 1:
        left, right = columns[0].mT, waves[0]
        flat = left @ right if known is None else torch.addmm(known.flatten(0, 1), left, right)
        return flat.reshape(shape)
    if known is None:
        return torch.bmm(columns.mT, waves).transpose(0, 1)
    return torch.baddbmm(known.transpose(0, 1), columns.mT, waves).transpose(0, 1)


def _feature_gradients(size: _Sizes, columns: Tensor, weights: Tensor) -> Tensor:
    """[G, N, F]."""
    if size.groups == 1:
        return (columns[0] @ weights.flatten(0, 1))[None]
    return torch.bmm(columns, weights.transpose(0, 1))


def _own_gradients(
    size: _Sizes, x: Tensor, table: Tensor, decay: Tensor, weights: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    points, count = x.shape[1], size.forces * size.waves
    rows = size.samples * size.outputs * size.own
    block = block_of(points, rows, 256)
    pieces = blocks(points, block)
    # Each output and each block has sums of its own, added up after: the same bits every time.
    by_x = x.new_empty(size.outputs, size.samples, points, size.own)
    by_weights = x.new_empty(pieces, size.samples, size.outputs, size.own, 2 * count)
    sums = x.new_empty(pieces * size.samples, size.outputs, size.own, 3 * count + 2)
    kernels.backward[(rows, pieces)](
        *(x, table, decay, weights, gradient, by_x, by_weights, sums),
        *(points, *x.stride(), *gradient.stride(), size.samples),
        G=size.groups,
        D=size.outputs,
        **size.constants,
        BLOCK=block,
        num_warps=1,
    )
    return (
        by_x[0] if size.outputs == 1 else by_x.sum(0),
        by_weights[0, :, :, 0] if pieces * size.own == 1 else by_weights.sum((0, 3)),
        sums.sum(0 if size.groups > 1 else (0, 1)).reshape(size.groups, size.own, -1),
    )


def _shared_gradients(
    size: _Sizes, shared: Tensor, table: Tensor, decay: Tensor, gradient: Tensor, with_x: bool
) -> tuple[Tensor | None, Tensor]:
    points, count = len(shared), size.forces * size.waves
    inputs, columns = size.inputs - size.own, blocks(count, _WAVES)
    rows = blocks(points, _ROWS)
    by_x = shared.new_empty(columns * size.groups, points, inputs) if with_x else shared
    sums = shared.new_empty(rows, size.groups, inputs, 3 * count + columns)
    kernels.features_backward[(size.groups, rows, columns)](
        *(shared, table, decay, gradient, by_x, sums),
        *(points, *shared.stride(), *gradient.stride()),
        **size.constants,
        WITH_X=with_x,
        ROWS=_ROWS,
        WAVES=_WAVES,
        num_warps=1,
    )
    return by_x.sum(0) if with_x else None, sums.sum(0)
