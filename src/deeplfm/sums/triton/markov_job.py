"""Arguments of the Markov sums as kernels take them: padded tables, and series cut into windows.

A program of a kernel works on one lane: a window of a series, L rows. What a lane begins and ends
with is a record: a covariance P with means m, or backwards R with r (`markov_tiles`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from deeplfm.sums.triton.markov_kernels import filter_rows, smooth_rows

_LEAST_ROWS = 2000  # of a window: to join two of them costs as much as some hundred rows
_NUMBERS = 3 * 2**30  # that are kept between a pass and the pass back, at most


def room(count: int, least: int) -> int:
    """The power of two that kernels round a size up to."""
    return max(least, 1 << max(0, count - 1).bit_length())


class Kept(NamedTuple):
    """What a pass back needs of the pass before it; empty tensors where it needs nothing."""

    gains: Tensor  # [lanes, L, D, s]
    variances: Tensor  # [lanes, L, D]
    errors: Tensor  # [lanes, L, D, CP]
    Pz: Tensor  # [lanes, L, E, s]
    zPz: Tensor  # noqa: N815
    zm: Tensor  # [lanes, L, E, CP]
    records: Tensor  # [lanes, L, z], for gradients
    moved: Tensor  # [lanes, L, s, WP]
    before: Tensor  # [lanes, L, CP, WP]


@final
class Job:
    """The tables of a call, the same for all lanes; `model` are the arguments of the evidence."""

    def __init__(self, model: Sequence[Tensor], readout: Tensor | None = None) -> None:
        decay, turn, transition, diffusion, start, loadings, noise, targets, step, observed = model
        self.series, self.num_rows, self.outputs, self.columns = targets.shape
        self.oscillators, self.dense = decay.shape[1], transition.shape[1]
        self.KP, self.WP = room(self.oscillators, 8), room(self.dense, 2)
        self.CP = room(self.columns, 2)
        self.states = 2 * self.KP + self.WP
        self.size = 4 * self.KP**2 + (self.WP + self.CP) * self.states
        self.decay, self.step, self.start = decay, step, start
        self._model = list(model)
        self.targets, self.observed = targets, observed
        self.noise = noise.expand(self.series, self.num_rows, -1)
        fade = (-decay).exp()
        self.tables = (
            self._table(fade * turn.cos(), 1.0),
            self._table(fade * turn.sin(), 0.0),
            self._table(-torch.expm1(-2 * decay), 0.0),
            self._blocks(transition, 1.0),
            self._blocks(diffusion, 0.0),
        )
        self.loadings = self.padded(loadings)
        self.readout = self.padded(loadings[:0] if readout is None else readout)
        self.readouts = len(self.readout)

    def _table(self, values: Float[Tensor, "T K"], last: float) -> Float[Tensor, "T1 KP"]:
        """With a last step that changes nothing, for rows that are none."""
        return torch.cat(
            (pad(values, (0, self.KP - self.oscillators)), values.new_full((1, self.KP), last))
        )

    def _blocks(self, values: Float[Tensor, "T M M"], last: float) -> Float[Tensor, "T1 WP WP"]:
        more = self.WP - self.dense
        own = torch.eye(self.WP, dtype=values.dtype, device=values.device)[None]
        return torch.cat((pad(values, (0, more, 0, more)), last * own))

    def padded(self, vectors: Float[Tensor, "n s"]) -> Float[Tensor, "n sp"]:
        """Vectors over the states, with room."""
        K, M = self.oscillators, self.dense
        x, y, w = vectors.split((K, K, M), 1)
        parts = pad(x, (0, self.KP - K)), pad(y, (0, self.KP - K)), pad(w, (0, self.WP - M))
        return torch.cat(parts, 1).contiguous()

    def plain(self, vectors: Float[Tensor, "*n sp"]) -> Float[Tensor, "*n s"]:
        """The opposite."""
        K, M = self.oscillators, self.dense
        x, y, w = vectors.split((self.KP, self.KP, self.WP), -1)
        return torch.cat((x[..., :K], y[..., :K], w[..., :M]), -1)

    def at_rest(self) -> Float[Tensor, " z"]:
        """The record that a series begins with."""
        KP, WP, K, M = self.KP, self.WP, self.oscillators, self.dense
        own = torch.diag(pad(self.start.new_ones(K), (0, KP - K))).reshape(-1)
        none = torch.zeros_like(own)
        start = pad((self.start + self.start.mT) / 2, (0, WP - M, 0, WP - M)).reshape(-1)
        rest = self.start.new_zeros(2 * KP * WP), start
        return torch.cat((own, none, none, own, *rest, start.new_zeros(self.CP * self.states)))

    def with_targets(self, targets: Tensor) -> list[Tensor]:
        """The arguments of the evidence, with other targets."""
        return [*self._model[:7], targets, *self._model[8:]]

    @cached_property
    def _states(self) -> Tensor:
        """Where the states are among the padded ones."""
        return self.plain(torch.arange(self.states, dtype=torch.float64)).long()

    def dense_of(self, record: Float[Tensor, "*n z"]) -> tuple[Tensor, Tensor]:
        """The matrix [s, s] and the vectors [C, s] of records on the CPU."""
        KP, WP, head = self.KP, self.WP, record.shape[:-1]
        sizes = [KP * KP] * 4 + [KP * WP] * 2 + [WP * WP, self.CP * self.states]
        *tiles, vectors = record.split(sizes, -1)
        xx, xy, yx, yy = (part.reshape(*head, KP, KP) for part in tiles[:4])
        xw, yw = (part.reshape(*head, KP, WP) for part in tiles[4:6])
        ww = tiles[6].reshape(*head, WP, WP)
        rows = (
            torch.cat((xx, xy, xw), -1),
            torch.cat((yx, yy, yw), -1),
            torch.cat((xw.mT, yw.mT, ww), -1),
        )
        own = self._states
        matrix = torch.cat(rows, -2)[..., own, :][..., own]
        vectors = vectors.reshape(*head, self.CP, self.states)[..., : self.columns, own]
        return (matrix + matrix.mT) / 2, vectors

    def record_of(
        self, matrix: Float[Tensor, "*n s s"], vectors: Float[Tensor, "*n C s"]
    ) -> Float[Tensor, "*n z"]:
        """The opposite."""
        KP, own, head = self.KP, self._states, matrix.shape[:-2]
        whole = matrix.new_zeros(*head, self.states, self.states)
        whole[..., own[:, None], own] = matrix
        wide = vectors.new_zeros(*head, self.CP, self.states)
        wide[..., : self.columns, :][..., own] = vectors
        x, y, w = slice(0, KP), slice(KP, 2 * KP), slice(2 * KP, None)
        pairs = ((x, x), (x, y), (y, x), (y, y), (x, w), (y, w), (w, w))
        parts = [whole[..., a, b].flatten(-2) for a, b in pairs]
        return torch.cat((*parts, wide.flatten(-2)), -1)

    @property
    def kept_per_row(self) -> int:
        """Numbers that a smoother keeps of a row."""
        return (self.outputs + self.readouts) * (self.states + self.CP + 1)

    @property
    def warps(self) -> int:
        """The warps of a program: as many as share its matrices well."""
        return {8: 1, 16: 2, 32: 4}.get(self.KP, 8)

    def windows(self) -> int:
        """Into how many windows a series is cut, so that lanes keep a device busy."""
        if self.targets.device.type != "cuda":
            return 1
        device = torch.cuda.get_device_properties(self.targets.device)
        at_once = device.multi_processor_count * max(1, 8 // self.warps)
        return max(1, min(self.num_rows // _LEAST_ROWS, at_once // self.series))

    def lanes(self, first: int, last: int, windows: int | None = None) -> "Lanes":
        """The rows of some of the series."""
        count = self.windows() if windows is None else windows
        length = -(-self.num_rows // count)
        more = count * length - self.num_rows
        step = self.step[first:last].long()
        following = pad(step[:, 1:], (0, 1 + more), value=len(self.decay))
        parts = self.observed, self.noise, self.targets
        observed, noise, targets = (part[first:last] for part in parts)
        return Lanes(
            self,
            first,
            last,
            count,
            following.to(torch.int32).unflatten(1, (count, length)).contiguous(),
            pad(observed, (0, 0, 0, more)).unflatten(1, (count, length)).contiguous(),
            pad(noise, (0, 0, 0, more)).unflatten(1, (count, length)).contiguous(),
            pad(targets, (0, 0, 0, 0, 0, more)).unflatten(1, (count, length)).contiguous(),
        )

    def some_series(self, per_row: int) -> list[tuple[int, int]]:
        """From and to which series fit into memory at a time, if each row keeps so much."""
        count = max(1, _NUMBERS // (per_row * self.num_rows))
        return [(k, min(k + count, self.series)) for k in range(0, self.series, count)]


@final
@dataclass(frozen=True, eq=False)
class Lanes:
    """Windows of series: [B, W, L, …] of what comes row by row."""

    job: Job
    first: int
    last: int  # the series that they are windows of
    windows: int
    following: Tensor  # the step that leads to the next row
    observed: Tensor
    noise: Tensor
    targets: Tensor

    @property
    def count(self) -> int:
        return len(self.following) * self.windows

    @property
    def length(self) -> int:
        return int(self.following.shape[2])

    def part(self, first: int, last: int) -> "Lanes":
        """Some of the windows of all series."""
        own = (self.following, self.observed, self.noise, self.targets)
        parts = (one[:, first:last].contiguous() for one in own)
        return Lanes(self.job, self.first, self.last, last - first, *parts)

    def groups(self) -> list[tuple[int, int]]:
        """From and to which windows fit into memory at a time."""
        each = max(1, len(self.following) * self.length * self.job.kept_per_row)
        size = max(1, min(self.windows, _NUMBERS // each))
        return [(k, min(k + size, self.windows)) for k in range(0, self.windows, size)]

    def begin(self) -> Float[Tensor, "B W z"]:
        """Records of a state at rest, with which a series begins."""
        return self.job.at_rest().repeat(len(self.following), self.windows, 1)

    def room(self, *, gains: bool, everything: bool = False) -> Kept:
        """Memory for what is kept."""
        job, like = self.job, self.job.loadings
        rows, D, E = (self.count, self.length), job.outputs, job.readouts
        own = (rows, D) if gains else ((0, 0), 0)
        read = (rows, E) if gains and not everything else ((0, 0), 0)
        whole = rows if everything else (0, 0)
        return Kept(
            like.new_empty(*own[0], own[1], job.states),
            like.new_empty(*own[0], own[1]),
            like.new_empty(*own[0], own[1], job.CP),
            like.new_empty(*read[0], read[1], job.states),
            like.new_empty(*read[0], read[1]),
            like.new_empty(*read[0], read[1], job.CP),
            like.new_empty(*whole, job.size),
            like.new_empty(*whole, job.states, job.WP),
            like.new_empty(*whole, job.CP, job.WP),
        )

    def filtered(
        self, begin: Float[Tensor, "B W z"], kept: Kept | None = None
    ) -> tuple[Float[Tensor, "B W z"], Float[Tensor, "B W"], Float[Tensor, "B W CP CP"]]:
        """Records that the lanes end with, and what their innovations add up to."""
        job = self.job
        own = self.room(gains=False) if kept is None else kept
        ends, log_det = torch.empty_like(begin), begin.new_empty(begin.shape[:2])
        gram = begin.new_empty(*begin.shape[:2], job.CP, job.CP)
        filter_rows[(self.count,)](
            *job.tables, job.loadings, self.noise, self.targets, self.following, self.observed,
            job.readout, begin.contiguous(), ends, log_det, gram, own.gains, own.variances,
            own.errors, own.records, own.moved, own.before, own.Pz, own.zPz, own.zm,
            self.length, job.outputs, job.columns, job.readouts,
            SZ=job.size, KP=job.KP, WP=job.WP, CP=job.CP,
            KEEP_GAINS=own.gains.numel() > 0, KEEP_ALL=own.records.numel() > 0,
            READ=own.Pz.numel() > 0, num_warps=job.warps, maxnreg=255,
        )  # fmt: skip
        return ends, log_det, gram

    def smoothed(
        self, after: Float[Tensor, "B W z"], kept: Kept, results: tuple[Tensor, Tensor, Tensor]
    ) -> Float[Tensor, "B W z"]:
        """Fill in mean, variance and weights; give the records that the lanes begin with."""
        job, begins = self.job, torch.empty_like(after)
        smooth_rows[(self.count,)](
            *job.tables, job.loadings, self.following, self.observed, after.contiguous(), begins,
            kept.gains, kept.variances, kept.errors, kept.Pz, kept.zPz, kept.zm, *results,
            self.length, job.outputs, job.columns, job.readouts,
            SZ=job.size, KP=job.KP, WP=job.WP, CP=job.CP, num_warps=job.warps, maxnreg=255,
        )  # fmt: skip
        return begins

    def results(self) -> tuple[Tensor, Tensor, Tensor]:
        """Memory for mean, variance and weights."""
        job, like = self.job, self.job.loadings
        shape, C = tuple(self.following.shape), job.columns
        return (
            like.new_empty(*shape, job.readouts, C),
            like.new_empty(*shape, job.readouts),
            like.new_empty(*shape, job.outputs, C),
        )

    def rows(self, table: Float[Tensor, "B W L *rest"]) -> Float[Tensor, "B N *rest"]:
        """Windows one after the other, without the rows that are none."""
        return table.flatten(1, 2)[:, : self.job.num_rows]
