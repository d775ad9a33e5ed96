"""The folder of a run: what it holds, what a command may write to, and what is left to clear away.

run.json       what was asked for: the data, the columns, the settings
checkpoints/   while it trains; gone when it is done
model.json …   the model (`saving`);   manifest.json has the checksums of all but checkpoints
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from deeplfm.data import files
from deeplfm.errors import InputError
from deeplfm.regressor import saving
from deeplfm.regressor.formats import FORMAT

RUN, CHECKPOINTS, ROWS = "run.json", "checkpoints", "rows"
_PARTS = (RUN, *saving.FILES, files.LOCK)


def holds(run: Path, name: str) -> bool:
    """Whether a file of a run is there, under its own name or about to have it."""
    return name in files.names(run) or (run / name).exists()


def as_request(request: Mapping[str, Any]) -> bytes:
    """The file `run.json`."""
    return files.json_text({"format": FORMAT, **request}).encode()


def request_of(run: Path) -> dict[str, Any]:
    """What was asked for; a model that was saved from Python has no request."""
    import pandas as pd

    path = run / RUN
    sealed = files.opened(run, [RUN])
    listed = sealed is not None and RUN in sealed.found
    if not listed and not path.exists():
        return {"origins": {}}
    content = sealed.read(RUN) if sealed is not None and listed else files.contents(path)
    found = files.parsed(content, path)
    with files.understood(path):
        if not listed and "format" in found:  # only older versions sealed no request
            raise InputError(
                f"{path} must be the request of a run; it is not the one that was written. "
                "Copy the whole folder again."
            )
        origins = {
            str(name): str(pd.Timestamp(one)) and one
            for name, one in dict(found["origins"]).items()
        }
        return dict(found) | {"origins": origins}


def check_finished(run: Path) -> None:
    """A run, or a model that was saved from Python; not one that is still being fitted."""
    if run.exists() and not run.is_dir():
        raise InputError(f"the run must be a folder; {run} is a file. Name the folder of a fit.")
    if not holds(run, RUN) and not holds(run, saving.SETTINGS):
        raise InputError(
            f"{run} must hold a saved model; {saving.SETTINGS} is not there. Check the folder."
        )
    if holds(run, saving.SETTINGS):
        return
    if (who := files.holder(run)) is not None:
        raise InputError(
            f"{run} must hold a finished run; {who} is at work there. Wait until that has ended."
        )
    raise InputError(
        f"{run} must hold a finished run; its fit was interrupted. "
        "Continue it with deeplfm fit … --resume."
    )


def check_folder(out: Path) -> None:
    """A folder, or a name that is free."""
    if out.exists() and not out.is_dir():
        raise InputError(f"--out must be a folder; {out} is a file. Choose another name.")


def check_new(out: Path) -> None:
    """A folder for a run that is new; nothing that is there may be lost."""
    check_folder(out)
    if any(holds(out, name) for name in (RUN, *saving.FILES)):
        raise InputError(
            f"--out must be a new folder; {out} holds a run already. "
            "Choose another, or continue that one with --resume."
        )
    if {path.name for path in _inside(out / CHECKPOINTS)} - {ROWS}:  # rows: of one that was killed
        raise InputError(
            f"--out must be a new folder; {out / CHECKPOINTS} is there and holds something. "
            "Choose another."
        )


def check_same(request: Mapping[str, Any], out: Path) -> None:
    """The run that is to go on was started with the same request."""
    if not holds(out, RUN):
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


def check_out(out: Path, run: Path, given: Mapping[str, Path | None]) -> None:
    """A file to write to that is none of those `given`, by option, and no part of a run."""
    for option, path in given.items():
        if path is not None and _same(out, path):
            raise InputError(
                f"--out must be another file than {option}; got {out} twice. Choose another."
            )
    place = out.resolve()
    inside = any(
        folder.name == CHECKPOINTS and holds(folder.parent, RUN) for folder in place.parents
    )
    parts = [folder / name for folder in (run, place.parent) for name in _parts_of(folder)]
    if inside or any(_same(out, part) for part in parts):
        raise InputError(f"--out must be no part of a run; {out} is one. Choose another name.")
    if out.is_file() and files.checksum(out) == request_of(run).get("sha256"):
        raise InputError(
            f"--out must be another file than the data of {run}; {out} holds them. Choose another."
        )


@contextmanager
def held(run: Path, action: str) -> Iterator[None]:
    """Nobody else writes to a run meanwhile; what an earlier command left is cleared away."""
    if not run.is_dir():  # a lock would make it
        yield
        return
    with files.locked(run, action):
        tidy(run)
        yield


def tidy(run: Path) -> None:
    """Clear away what a command left that was killed as it ended; the folder is held."""
    files.finish(run)
    if holds(run, saving.SETTINGS) and holds(run, RUN):
        shutil.rmtree(run / CHECKPOINTS, ignore_errors=True)


def take_back(out: Path) -> None:
    """Clear away a run that could not begin, and its folder where nothing else is in it."""
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    for name in (RUN, files.MANIFEST):
        (out / name).unlink(missing_ok=True)


def tidy_if_free(run: Path) -> None:
    """`tidy`, where something is left and nobody else is at work there."""
    left = (run / CHECKPOINTS, run / files.LOCK)
    if holds(run, saving.SETTINGS) and (any(map(Path.exists, left)) or files.unfinished(run)):
        with suppress(InputError, OSError), held(run, "clearing away"):
            pass


def _parts_of(folder: Path) -> list[str]:
    """The names that belong to a run, of a folder that is one."""
    if not any(holds(folder, name) for name in (RUN, saving.SETTINGS)):
        return []
    return [*_PARTS, CHECKPOINTS, *files.names(folder)]


def _same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        if one.samefile(other):
            return True
    return one.resolve() == other.resolve()


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
