"""What a fit is a fit of, in a few words each: two fits with the same words have the same result.

{"data": sha256, "seed": "0", "settings": sha256, "precision": "float32, cpu", "version": …}
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from deeplfm.data import Dataset, files
from deeplfm.data.stored import Stored
from deeplfm.errors import InputError
from deeplfm.regressor.settings import to_json
from deeplfm.training import Processes
from deeplfm.training.checkpoints import Checkpoints


@contextmanager
def checkpoints_of(
    folder: Path | None,
    processes: Processes,
    data: Dataset | Stored,
    settings: tuple[Any, ...],
    seed: int,
    precision: str,
) -> Iterator[Checkpoints | None]:
    """The checkpoints of a fit in a folder, which is locked while it goes on; None without one."""
    if folder is None:
        yield None
        return
    found = processes.share(lambda: fingerprint(data, settings, seed, precision))
    with processes.locked(folder, "a fit"):
        yield Checkpoints(folder, found)


def fingerprint(
    data: Dataset | Stored, settings: tuple[Any, ...], seed: int, precision: str
) -> dict[str, str]:
    """The words, by what they are about."""
    try:
        release = version("deeplfm")
    except PackageNotFoundError:
        release = "unknown"
    return {
        "data": files.checksum(data.path) if isinstance(data, Stored) else _of_table(data),
        "seed": str(seed),
        "settings": files.sha256(files.json_text(_described(settings)).encode()),
        "precision": precision,
        "version": release,
    }


def _of_table(data: Dataset) -> str:
    found = hashlib.sha256()
    names: list[Any] = [list(data.input_names), list(data.output_names)]
    tables: list[np.ndarray] = [data.x, data.y]
    if data.panel is not None:
        names.append(list(data.panel.labels))
        tables.append(data.panel.codes)
    if data.known is not None:
        names.append(list(data.known.names))
        tables += [data.known.times, data.known.codes, data.known.values]
    found.update(files.json_text(names).encode())
    for table in tables:
        found.update(f"{table.shape} {table.dtype};".encode())
        found.update(np.ascontiguousarray(table).data)
    return found.hexdigest()


def _described(settings: object) -> Any:
    """Settings as JSON; of what nobody registered, the name of its class and its fields."""
    if isinstance(settings, tuple):
        return [_described(one) for one in settings]
    try:
        return to_json(settings)
    except InputError:
        cls = type(settings)
        name = f"{cls.__module__}.{cls.__qualname__}"
        if not is_dataclass(settings):
            return name
        own = {one.name: _described(getattr(settings, one.name)) for one in fields(settings)}
        return {name: own}
