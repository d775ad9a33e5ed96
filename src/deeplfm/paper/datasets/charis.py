"""CHARIS: arterial pressure, ECG and intracranial pressure of brain-injured patients, at 50 Hz.

Records of PhysioNet's charisdb 1.0.0 in WFDB format, read by the package `wfdb`. A header holds the
16-bit sum of all samples of each signal: every load reads the whole record, in chunks, to verify
the sums. The tests are those of physio.
"""

import re
import warnings
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from deeplfm.data.series import Series, Values
from deeplfm.errors import InputError
from deeplfm.paper.datasets.locate import Source, locate
from deeplfm.paper.datasets.physio import POINTS, with_tests
from deeplfm.paper.datasets.registry import Folder, data_set

_SOURCE = Source(
    "https://physionet.org/content/charisdb/1.0.0/", "https://physionet.org/files/charisdb/1.0.0"
)
_CHUNK = 1 << 20  # samples read at once: records hold many millions


def charis(
    record: str = "charis6",
    channels: Sequence[str] = ("ABP", "ECG", "ICP"),
    start: int = 0,
    path: Path | str | None = None,
) -> Series:
    """1000 samples of `record` from sample `start` on, t in [0, 1]; NaN where one is missing.

    The files `charis/<record>.hea` and `.dat` lie in `path`, $DEEPLFM_DATA or the cache, or are
    downloaded (charis6 is 50 MB). Each channel is standardised over these samples.
    """
    wfdb = _wfdb()
    if not re.fullmatch(r"[\w-]+", record):
        raise InputError(
            f"record must be a name of letters and digits, such as 'charis6'; got {record!r}. "
            "Give the folder as path."
        )
    file = locate(f"charis/{record}.hea", path, beside=(f"{record}.dat",), source=_SOURCE)
    header = _header(wfdb, file)
    columns = _columns(channels, header.sig_name, file)
    whole = isinstance(start, Integral) and not isinstance(start, bool)
    if not whole or not 0 <= start <= header.sig_len - POINTS:
        raise InputError(
            f"start must leave {POINTS} of the {header.sig_len} samples of {file.stem}; got "
            f"{start!r}. Choose from 0 to the length less {POINTS}, or a longer record."
        )
    _verify(wfdb, file, header)
    window = wfdb.rdrecord(_stem(file), sampfrom=start, sampto=start + POINTS, channels=columns)
    names = tuple(channels)
    where = f"samples {start} to {start + POINTS - 1} of {file.stem}"
    return with_tests(_standardised(window.p_signal, names, where), names)


@data_set("charis", records=("charis6",), kinds=("series", "grid"))
def charis_record(record: str, seed: int, path: Folder) -> Series:
    """The first samples of a record, which are the same for every seed."""
    return charis(record, path=path)


def _wfdb() -> Any:
    """The package wfdb, or an error that says how to install it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import warns about how it uses pandas
        try:
            import wfdb
        except ImportError:
            raise InputError(
                "charis needs the package wfdb; it is not installed. "
                "Run pip install 'deeplfm[charis]'."
            ) from None
    return wfdb


def _stem(file: Path) -> str:
    """The record's name as wfdb wants it: a path without suffix."""
    return str(file.with_suffix(""))


def _header(wfdb: Any, file: Path) -> Any:
    """The header of a single-segment record with one data file, lengths and checksums."""
    try:
        header = wfdb.rdheader(_stem(file))
        complete = (
            set(header.file_name) == {f"{file.stem}.dat"}
            and len(header.sig_name) == header.n_sig
            and header.sig_len is not None
            and None not in header.checksum
        )
    except (ValueError, IndexError, TypeError, AttributeError):  # wfdb raises any of them
        complete = False
    if not complete:
        raise InputError(
            f"{file} must be a WFDB header of signals in {file.stem}.dat, with their length and "
            f"checksums; it is not. Get it again from {_SOURCE.page}."
        )
    return header


def _columns(channels: Sequence[str], names: list[str], file: Path) -> list[int]:
    """The places of the channels among the signals of the file, or an error."""
    wrong = [name for name in channels if name not in names]
    if isinstance(channels, str) or wrong or not channels or len(set(channels)) < len(channels):
        raise InputError(
            f"channels must be different names out of {names}, which {file} holds; got "
            f"{channels!r}. Choose some of them."
        )
    return [names.index(name) for name in channels]


def _verify(wfdb: Any, file: Path, header: Any) -> None:
    """Raise an error unless the sums of all samples, modulo 2^16, are those of the header."""
    data = file.with_suffix(".dat")
    sums = np.zeros(header.n_sig, dtype=np.int64)
    try:
        for start in range(0, header.sig_len, _CHUNK):
            chunk = wfdb.rdrecord(
                _stem(file),
                sampfrom=start,
                sampto=min(start + _CHUNK, header.sig_len),
                physical=False,
                smooth_frames=False,
                ignore_skew=True,
            )
            sums += [int(np.sum(signal, dtype=np.int64)) for signal in chunk.e_d_signal]
        got = "other sums" if ((sums - header.checksum) % (1 << 16)).any() else ""
    except ValueError:
        got = "fewer samples"
    if got:
        raise InputError(
            f"{data} must hold {header.sig_len} samples of each signal with the checksums in "
            f"{file.name}; got {got}. Delete it, and get it again from {_SOURCE.page}."
        )


def _standardised(values: Values, names: tuple[str, ...], where: str) -> Values:
    """Values [N, D] with mean 0 and spread 1 per channel; a constant channel is an error."""
    for name, column in zip(names, values.T, strict=True):
        if len(np.unique(column[~np.isnan(column)])) < 2:
            raise InputError(
                f"channel {name!r} must vary; it does not in {where}. Choose another start."
            )
    return np.asarray((values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0))
