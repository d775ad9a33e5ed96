"""Runs: fit into a folder, and predict, report and update from there.

Killed at any moment the folder (`folders`) goes on with `--resume`, to the result of a run that was
not. One command at a time writes to it; the others are told who does.
"""

import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Literal

from deeplfm.app import folders, sources
from deeplfm.app.folders import CHECKPOINTS, RUN, check_new, check_out, check_same, request_of
from deeplfm.app.sources import Rows, Source, read_like, rows_of, source_like, unseen, with_columns
from deeplfm.app.together import shared
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
from deeplfm.regressor.saving import SETTINGS
from deeplfm.regressor.settings import to_json
from deeplfm.training import join
from deeplfm.training.evidence import CHECKPOINT
from deeplfm.training.restarts import RACE

LARGE = 2**27  # numbers of a Parquet file (1 GiB) above which batches are read from disk

_BEGUN = (RACE, CHECKPOINT, f"{REHEARSAL}/{CHECKPOINT}")  # first checkpoints of a training
Say = Callable[[str], None]


def fit_run(
    source: Source, model: DeepLFMRegressor, out: Path, *, resume: bool = False, say: Say = print
) -> Literal["done", "interrupted", "followed"]:
    """Fit `model` to a table into the folder `out`. Nothing is written before all is checked.

    Of several processes the first reads, says and writes; what the others do is "followed".
    """
    device, _ = model.check_settings()
    processes = join(device)
    processes.share(lambda: folders.check_folder(out))
    with processes.locked(out, "a fit"):
        data = shared(lambda: _begun(source, model, out, resume, say), processes)
        if data is not None:
            checkpoints = out / CHECKPOINTS
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FitWarning)  # it is printed, with the check
                    if isinstance(data, Stored):
                        model.fit_stored(data, checkpoints=checkpoints)
                    else:
                        model.fit(data.x, data.y, **data.beside, checkpoints=checkpoints)
            except InputError:  # of what only the start of a model sees: nothing to go on from
                if processes.leads and not resume and not _has_checkpoint(out):
                    folders.take_back(out)
                raise
            training = model.fitted_.training
            stopped = model.fitted_.steps < training.steps and not training.held_out
            if stopped or model.check_ == INTERRUPTED:
                return "interrupted"
            if processes.leads:
                model.save_beside(out, {})
                folders.tidy(out)
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
        check_same(request, out)
        if folders.holds(out, SETTINGS):
            folders.tidy(out)
            say(f"{out} is finished: there is nothing to resume.")
            return None
        if not _has_checkpoint(out):
            say(f"{out} has no checkpoint yet: it starts from the beginning.")
    else:
        check_new(out)
    rule = chosen.recipe.likelihood
    stored = (yield from _stored(source, request, out, rule)) if large else None
    if not resume:
        files.seal(out, {RUN: folders.as_request(request)})
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


def _has_checkpoint(out: Path) -> bool:
    return any((out / CHECKPOINTS / name).exists() for name in _BEGUN)


def _stored(
    source: Source, request: dict[str, Any], out: Path, rule: TargetRule
) -> Generator[object, None, Stored]:
    """The rows of a large table in the folder of the run; there already where one goes on."""
    inputs, outputs = source.inputs, source.outputs
    path = out / CHECKPOINTS / folders.ROWS / "rows.npy"
    about = {name: request[name] for name in ("sha256", "inputs", "outputs", "origins")}
    names = tuple(inputs), tuple(outputs)

    def chunks() -> Iterator[Dataset]:
        for frame in tables.read_chunks(source.path, [*inputs, *outputs]):
            x, _ = cells.inputs(frame, inputs, source.path, request["origins"])
            y = cells.targets(frame, outputs, source.path)
            yield Dataset(x.to_numpy(), y.to_numpy(), *names)

    if files.adopted(path) != about:  # of an interruption before their end, or damaged
        try:
            yield from store(chunks(), path)
            Stored(path, *names).scaling(rule)  # checks every value
            files.adopt(path, about)
        except InputError:
            path.unlink(missing_ok=True)
            for folder in (path.parent, path.parent.parent):
                with suppress(OSError):  # not empty, or not there
                    folder.rmdir()
            raise
    return Stored(path, *names)


def predict_run(run: Path, at: Path, out: Path, device: str = "auto") -> int:
    """Predict at the inputs of a table; how many rows were written."""
    check_out(out, run, {"--at": at})
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
    check_out(out, run, {"--held-out": held_out})
    if out.is_file() and out.suffix not in (".html", ".htm"):
        raise InputError(
            f"--out must be a new file, or a page (.html) to replace; {out} is another. "
            "Choose another name."
        )
    folders.check_finished(run)
    beside = run.resolve() in out.resolve().parents
    with folders.held(run, "a report") if beside else nullcontext():
        _report(run, out, held_out, device)


def _report(run: Path, out: Path, held_out: Path | None, device: str) -> None:
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
        check_new(out)
    folders.check_finished(run)
    with files.locked(out or run, "an update"):
        if out is not None:
            check_new(out)
        return _update(run, table, out)


def _update(run: Path, table: Path, out: Path | None) -> tuple[int, int]:
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
    beside = {}
    if out is not None and folders.holds(run, RUN):
        beside[RUN] = folders.as_request(request)
    model.save_beside(run if out is None else out, beside)
    return len(model.fitted_.data) - len(before), len(model.fitted_.data)


def open_run(run: Path, device: str = "auto") -> DeepLFMRegressor:
    """The fitted model of a run, or a sentence that says why there is none yet."""
    folders.check_finished(run)
    folders.tidy_if_free(run)
    return load(run, device)


def _request(source: Source, model: DeepLFMRegressor, origins: dict[str, str]) -> dict[str, Any]:
    return {
        "data": source.path.name,
        "sha256": files.checksum(source.path),
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
