"""A run: a folder with a request, checkpoints while it is fitted, and the model at its end.

    run.json       what was asked for: the data, the columns, the settings
    checkpoints/   while it trains; gone when it is done
    model.json …   the model (`saving`)

Killed at any moment the folder goes on with `--resume`, to the result of a run that was not.
"""

import hashlib
import json
import shutil
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from deeplfm.app import sources
from deeplfm.app.sources import Rows, Source, read_like, rows_of, source_like, unseen, with_columns
from deeplfm.data import Dataset, TargetRule, dataset, files
from deeplfm.data import columns as cells
from deeplfm.data import csv_tables as tables
from deeplfm.data.dataset import one_input
from deeplfm.data.stored import Stored, store
from deeplfm.errors import FitWarning, InputError
from deeplfm.models import MarkovDLFM
from deeplfm.regressor.checking import INTERRUPTED
from deeplfm.regressor.choosing import Size, choice, is_auto, is_markov
from deeplfm.regressor.devices import checked_device
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.regressor.loading import load
from deeplfm.regressor.markov_fitting import check_alone
from deeplfm.regressor.markov_rehearsal import REHEARSAL
from deeplfm.regressor.settings import to_json
from deeplfm.training import join
from deeplfm.training.evidence import CHECKPOINT

LARGE = 2**27  # numbers of a Parquet file (1 GiB) above which batches are read from disk

_RUN, _CHECKPOINTS, _MODEL = "run.json", "checkpoints", "model.json"
# Files that a training leaves at its first checkpoint.
_BEGUN = "race.json", CHECKPOINT, f"{REHEARSAL}/{CHECKPOINT}"
Say = Callable[[str], None]


def fit_run(
    source: Source, model: DeepLFMRegressor, out: Path, *, resume: bool = False, say: Say = print
) -> Literal["done", "interrupted", "followed"]:
    """Fit `model` to a table into the folder `out`. Nothing is written before all is checked.

    Of several processes the first reads, says and writes; what the others do is "followed".
    """
    device, _ = model.check_settings()
    processes = join(device)
    data = processes.share_work(lambda: _begun(source, model, out, resume, say))
    if data is not None:
        checkpoints = out / _CHECKPOINTS
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FitWarning)  # the check is printed, and these too
                if isinstance(data, Stored):
                    model.fit_stored(data, checkpoints=checkpoints)
                else:
                    model.fit(data.x, data.y, **data.beside, checkpoints=checkpoints)
        except InputError:  # of what only the start of a model sees: nothing to go on from
            if processes.leads and not resume:
                _leave_nothing(out)
            raise
        training = model.fitted_.training
        stopped = model.fitted_.steps < training.steps and not training.held_out
        if stopped or model.check_ == INTERRUPTED:
            return "interrupted"
        if processes.leads:
            model.save(out)
            shutil.rmtree(checkpoints, ignore_errors=True)
    return "done" if processes.leads else "followed"


def _begun(
    source: Source, model: DeepLFMRegressor, out: Path, resume: bool, say: Say
) -> "Generator[object, None, Rows | Stored | None]":
    """The data to fit, with the request written; None where all was done before.

    A large table is stored with the checkpoints, a chunk at a time, where the model can read it
    from there: in batches, or row after row as a state-space model does.
    """
    markov = is_markov(model.model, max(1, len(source.inputs)))  # by default the first column
    if markov:
        check_alone()
    by_parts = markov or is_auto(model.model) or model.training.batch_size is not None
    large = by_parts and source.plain and tables.numbers_in(source.path) > LARGE
    frame = next(tables.read_chunks(source.path)) if large else source.read()
    source = with_columns(source, frame)
    rows = rows_of(source, frame, None)
    count = tables.numbers_in(source.path) // len(frame.columns) if large else len(frame)
    size = Size(count, tuple(source.inputs), tuple(source.outputs))
    if markov:
        one_input(rows.x.to_numpy())
    if not large:
        model.check_data(rows.x, rows.y, **rows.beside)
    chosen = choice(model.model, model.training, size)
    request = _request(source, model, rows.origins)
    request |= {"model": to_json(chosen.recipe), "training": to_json(chosen.training)}
    if resume:
        _check_same(request, out)
        if (out / _MODEL).exists():
            say(f"{out} is finished: there is nothing to resume.")
            return None
        if not any((out / _CHECKPOINTS / name).exists() for name in _BEGUN):
            say(f"{out} has no checkpoint yet: it starts from the beginning.")
    else:
        _check_new(out)
    rule = chosen.recipe.likelihood
    stored = (yield from _stored(source, rows.origins, out, rule)) if large else None
    if not resume:
        files.save_json(out / _RUN, request)
    if is_auto(model.model):
        inputs, name = len(source.inputs), type(chosen.recipe).__name__
        say(
            f"{inputs} input{'s' if inputs > 1 else ''}: fitted with a {name}, in "
            f"{chosen.training.steps} steps."
        )
    if stored is None:
        return rows
    seen = "" if markov else "; the start and reports look at some of them"
    say(f"{len(stored):,} rows are read from disk{seen}.")
    return stored


def _stored(
    source: Source, origins: dict[str, str], out: Path, rule: TargetRule
) -> Generator[object, None, Stored]:
    """The rows of a large table in the folder of the run; there already where one goes on."""
    path, inputs, outputs = out / _CHECKPOINTS / "rows.npy", source.inputs, source.outputs
    names = tuple(inputs), tuple(outputs)

    def chunks() -> Iterator[Dataset]:
        for frame in tables.read_chunks(source.path, [*inputs, *outputs]):
            x, _ = cells.inputs(frame, inputs, source.path, origins)
            y = cells.targets(frame, outputs, source.path)
            yield Dataset(x.to_numpy(), y.to_numpy(), *names)

    if not (out / _RUN).exists() or not path.exists():
        try:
            yield from store(chunks(), path)
            Stored(path, *names).scaling(rule)  # checks every value
        except InputError:
            _leave_nothing(out)
            raise
    return Stored(path, *names)


def predict_run(run: Path, at: Path, out: Path, device: str = "auto") -> int:
    """Predict at the inputs of a table; how many rows were written."""
    if out.exists() and out.samefile(at):
        raise InputError(f"--out must be another file than --at; got {out} twice. Choose another.")
    tables.check_ending(out)
    model = open_run(run, device)
    request = request_of(run)
    source = source_like(model, request, at, outputs=False)
    frame, rows = read_like(source, request["origins"])
    found = model.fitted_.summary(rows.x, levels=tuple(sources.LEVELS), **rows.beside)
    table = sources.predicted(source, frame, model.output_names_, found)
    tables.write_table(table, out)
    return len(table)


def report_run(run: Path, out: Path, held_out: Path | None = None, device: str = "auto") -> None:
    """Write the page of a run; `held_out` is a table of observations that were not fitted."""
    import pandas as pd

    from deeplfm.report import write_report

    model = open_run(run, device)
    request = request_of(run)
    origins = request["origins"]
    tested = None
    if held_out is not None:
        _, rows = read_like(source_like(model, request, held_out, outputs=True), origins)
        tested = dataset(rows.x, rows.y, **rows.beside)
        if model.data_ is not None and unseen(rows, model.data_).isna().all(axis=None):
            raise InputError(
                f"--held-out must hold observations that were not fitted; all of {held_out} were. "
                "Leave it out, or keep some data back from the fit."
            )
    names = model.fitted_.input_names
    origin = pd.Timestamp(origins[names[0]]) if len(names) == 1 and origins else None
    write_report(model, out, origin=origin, held_out=tested, folder=run)


def update_run(run: Path, table: Path, out: Path | None = None) -> tuple[int, int]:
    """Take the new rows of a table into a run, or into a copy of it in `out`; how many, of all.

    Rows that the model has already are left out: they would count twice.
    """
    if out is not None:
        _check_new(out)
    model, request = open_run(run, "cpu"), request_of(run)
    recipe = model.fitted_.recipe
    if not isinstance(recipe, MarkovDLFM):
        raise InputError(
            f"update needs a run of a state-space model; {run} holds a "
            f"{type(recipe).__name__}. Fit with --model markov, or fit again with all rows."
        )
    _, rows = read_like(source_like(model, request, table, outputs=True), request["origins"])
    before = model.fitted_.data
    y = unseen(rows, before)
    if y.isna().all(axis=None):
        raise InputError(
            f"{table} must hold observations that are new to {run}; it has none. "
            "Add rows, or check the file."
        )
    model.update(rows.x, y, **rows.beside)
    if out is not None and (run / _RUN).exists():
        files.save_json(out / _RUN, json.loads((run / _RUN).read_text(encoding="utf-8")))
    model.save(run if out is None else out)
    return len(model.fitted_.data) - len(before), len(model.fitted_.data)


def open_run(run: Path, device: str = "auto") -> DeepLFMRegressor:
    """The fitted model of a run, or a sentence that says why there is none yet."""
    if run.exists() and not run.is_dir():
        raise InputError(f"the run must be a folder; {run} is a file. Name the folder of a fit.")
    if (run / _RUN).exists() and not (run / _MODEL).exists():
        raise InputError(
            f"{run} must hold a finished run; its fit was interrupted. "
            "Continue it with deeplfm fit … --resume."
        )
    return load(run, device)


def request_of(run: Path) -> dict[str, Any]:
    """What was asked for; a model that was saved from Python has no request."""
    path = run / _RUN
    if not path.exists():
        return {"origins": {}}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return dict(found) | {"origins": dict(found["origins"])}
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} must be the request of a run; it was changed. Copy the whole folder again."
        ) from None


def _request(source: Source, model: DeepLFMRegressor, origins: dict[str, str]) -> dict[str, Any]:
    with source.path.open("rb") as stream:
        checksum = hashlib.file_digest(stream, "sha256").hexdigest()
    return {
        "data": source.path.name,
        "sha256": checksum,
        "inputs": list(source.inputs),
        "outputs": list(source.outputs),
        "series": source.series,
        "known": list(source.known) or None,
        "origins": origins,
        "seed": model.seed,
        "dtype": model.dtype,
        "check": model.check,
        "device": checked_device(model.device),  # each has random numbers of its own
    }


def _leave_nothing(out: Path) -> None:
    """Take back a run that could not begin, and its folder where nothing else is in it."""
    shutil.rmtree(out / _CHECKPOINTS, ignore_errors=True)
    (out / _RUN).unlink(missing_ok=True)
    with suppress(OSError):  # not empty, or not there
        out.rmdir()


def _check_new(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"--out must be a folder; {out} is a file. Choose another name.")
    if (out / _RUN).exists() or (out / _MODEL).exists():
        raise InputError(
            f"--out must be a new folder; {out} holds a run already. "
            "Choose another, or continue that one with --resume."
        )


def _check_same(request: dict[str, Any], out: Path) -> None:
    if not (out / _RUN).exists():
        raise InputError(
            f"--resume needs a run to continue; {out} holds none. Leave --resume out to start one."
        )
    before = request_of(out)
    other = [name for name, value in request.items() if before.get(name) != value]
    if other:
        raise InputError(
            f"--resume needs the settings that {out} was started with; got other "
            f"{' and '.join(other)}. Repeat the same command, or choose a new --out."
        )
