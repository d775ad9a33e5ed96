"""Tables larger than memory: rows of numbers in a file, read as they are needed.

    Stored("rows.npy", ["t"], ["a", "b"])       an array [N, P + D], inputs first, NaN for gaps

Read by seeking, not through a memory map: whatever page of a map was touched counts as memory of
the process, and random rows touch them all.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from deeplfm.data import Dataset, Scaling, Statistics, TargetRule, files, scaling_from
from deeplfm.data.sizes import check_ranges, check_targets_size
from deeplfm.errors import InputError

Values = NDArray[np.float64]

_CHUNK = 2**16  # rows in memory at a time
_THINNED = 5000  # rows that starts and reports look at, as many as starts take of any data


class _Layout(NamedTuple):
    rows: int
    width: int
    dtype: np.dtype[np.floating]
    first: int  # byte of the first row


@final
@dataclass(frozen=True, eq=False)
class Stored:
    """The rows of an .npy file of floats [N, P + D], with the names of its columns."""

    path: Path
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    def __init__(
        self, path: Path | str, input_names: Sequence[str], output_names: Sequence[str]
    ) -> None:
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "input_names", tuple(input_names))
        object.__setattr__(self, "output_names", tuple(output_names))
        width = len(self.input_names) + len(self.output_names)
        if not self.input_names or not self.output_names or self._layout.width != width:
            raise InputError(
                f"{path} must have a column for each of {len(self.input_names)} inputs and "
                f"{len(self.output_names)} outputs; got {self._layout.width}. Name them all."
            )

    def __len__(self) -> int:
        return self._layout.rows

    def rows(self, chosen: NDArray[np.int64]) -> Dataset:
        """Those rows, in that order; the file is read from its start to its end."""
        layout = self._layout
        found = np.empty((len(chosen), layout.width), layout.dtype)
        stride = layout.width * layout.dtype.itemsize
        with self.path.open("rb", buffering=0) as stream:
            for place in np.argsort(chosen, kind="stable").tolist():
                stream.seek(layout.first + int(chosen[place]) * stride)
                stream.readinto(found[place].data)
        return self._dataset(found)

    def thinned(self) -> Dataset:
        """A few thousand rows, evenly spread over the file."""
        count = len(self)
        return self.rows(np.linspace(0, count - 1, min(count, _THINNED)).astype(np.int64))

    def chunks(self) -> Iterator[Dataset]:
        """All rows, some at a time."""
        layout = self._layout
        with self.path.open("rb") as stream:
            stream.seek(layout.first)
            for start in range(0, layout.rows, _CHUNK):
                count = min(_CHUNK, layout.rows - start) * layout.width
                yield self._dataset(np.fromfile(stream, layout.dtype, count))

    def scaling(self, rule: TargetRule | None = None) -> Scaling:
        """As `fit_scaling` of the same rows, in one pass; an error where they cannot be fitted."""
        inputs, targets = _Moments(len(self.input_names)), _Moments(len(self.output_names))
        for chunk in self.chunks():
            inputs.add(chunk.x)
            if rule is None:
                targets.add(chunk.y)
            else:
                rule.check_targets(chunk.y, self.output_names)
                targets.add(rule.start_targets(chunk.y))
        if len(self) < 2 or not (inputs.count == len(self)).all() or inputs.infinite():
            raise InputError(
                f"inputs in {self.path} must be finite, in 2 rows or more; got {len(self)} rows, "
                "with NaN or infinite ones among them. Remove those rows; gaps belong in outputs."
            )
        if (inputs.low == inputs.high).all():
            raise InputError(
                f"inputs in {self.path} must differ from row to row; got {len(self)} equal rows. "
                "Check the inputs."
            )
        if targets.infinite() or not targets.count.all():
            raise InputError(
                f"outputs in {self.path} must be finite or NaN, and observed somewhere; got "
                "infinite ones, or NaN only. Replace or drop them."
            )
        check_ranges(np.stack([inputs.low, inputs.high]), self.input_names)
        check_targets_size(np.stack([targets.low, targets.high]), self.output_names)
        size = np.maximum(np.abs(targets.low), np.abs(targets.high))
        return scaling_from(
            Statistics(inputs.low, inputs.high, inputs.std(), targets.mean, targets.std(), size),
            standardise=rule is None or rule.standardises_targets,
        )

    def _dataset(self, numbers: NDArray[np.floating]) -> Dataset:
        split = len(self.input_names)
        table = numbers.reshape(-1, self._layout.width).astype(np.float64, copy=False)
        return Dataset(table[:, :split], table[:, split:], self.input_names, self.output_names)

    @cached_property
    def _layout(self) -> _Layout:
        try:
            with files.plain_file(self.path) as stream:
                version = np.lib.format.read_magic(stream)
                read = np.lib.format
                header = (
                    read.read_array_header_1_0 if version == (1, 0) else read.read_array_header_2_0
                )
                shape, by_columns, dtype = header(stream)
                first = stream.tell()
                size = stream.seek(0, os.SEEK_END)
        except (InputError, PermissionError, MemoryError):
            raise
        except Exception as error:  # numpy reads a header as Python does, which may break anyhow
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"{self.path} must be an .npy file; it cannot be read ({reason}). Check the path."
            ) from None
        if len(shape) != 2 or by_columns or dtype.kind != "f":
            raise InputError(
                f"{self.path} must hold floats [N, P + D], row by row; got {dtype} {list(shape)}. "
                "Save it with numpy.save(path, numpy.ascontiguousarray(table))."
            )
        if size < first + shape[0] * shape[1] * dtype.itemsize:
            raise InputError(
                f"{self.path} must hold the {shape[0]} rows that it says; it has {size} bytes. "
                "Write it again."
            )
        return _Layout(*shape, dtype, first)


def store(chunks: Iterator[Dataset], path: Path) -> Iterator[int]:
    """Write chunks as the file of a `Stored`, whole or not at all; rows so far, after each.

    Rows without any target are dropped, as everywhere.
    """
    with files.whole(path) as partial, partial.open("wb") as stream:
        count = width = 0
        for chunk in chunks:
            table = np.hstack([chunk.x, chunk.y])[chunk.observed.any(axis=1)]
            if not count:
                width = table.shape[1]
                _write_header(stream, 0, width)
            stream.write(np.ascontiguousarray(table, dtype="<f8").data)
            count += len(table)
            yield count
        stream.seek(0)  # numpy leaves room in a header for the number of rows to grow
        _write_header(stream, count, width)


def _write_header(stream: BinaryIO, rows: int, width: int) -> None:
    header = {"descr": "<f8", "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(stream, header)


class _Moments:
    """Count, mean, spread and range of what is observed in columns that come in chunks."""

    def __init__(self, width: int) -> None:
        self.count, self.mean, self.squares = (np.zeros(width) for _ in range(3))
        self.low, self.high = np.full(width, np.inf), np.full(width, -np.inf)

    def add(self, values: Values) -> None:
        """Chan, Golub, LeVeque (1983): means of chunks are merged, no squares of large numbers."""
        seen = ~np.isnan(values)
        count = seen.sum(0)
        mean = np.where(seen, values, 0.0).sum(0) / np.maximum(count, 1)
        with np.errstate(invalid="ignore", over="ignore"):  # what is too large is told at the end
            squares = np.where(seen, values - mean, 0.0) ** 2
        total = np.maximum(self.count + count, 1)
        change = mean - self.mean
        with np.errstate(invalid="ignore", over="ignore"):
            self.squares += squares.sum(0) + change**2 * self.count * count / total
        self.mean += change * count / total
        self.count += count
        self.low = np.fmin(self.low, np.fmin.reduce(values, axis=0))
        self.high = np.fmax(self.high, np.fmax.reduce(values, axis=0))

    def std(self) -> Values:
        return np.sqrt(self.squares / np.maximum(self.count, 1))

    def infinite(self) -> bool:
        return bool((np.isinf(self.low) | np.isinf(self.high)).any() and self.count.all())
