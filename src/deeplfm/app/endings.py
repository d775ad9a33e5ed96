"""How a command ends: what went wrong is one sentence on stderr, and a code.

0 done, 2 bad usage or bad input, 1 anything else; warnings about data are sentences too.
"""

import io
import os
import sys
import warnings
from collections.abc import Callable
from typing import NoReturn, TextIO

from deeplfm.app.printing import printable
from deeplfm.errors import DataWarning, DeepLFMError, InputError
from deeplfm.training.distributed import TOLD, outlast_the_first

_INTERRUPTED = {
    "fit": "interrupted; a fit goes on from its last checkpoint with --resume",
    "reproduce": "interrupted; the same command goes on after the runs that are done",
    "update": "interrupted; the run is as it was before, or has all new rows",
}
_NO_MEMORY = "there was not enough memory; use fewer samples or functions, or a batch size"
_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "bytes overflow")


def ended(command: Callable[[], object]) -> None:
    """Run a command and end the process as it ended, where something went wrong."""
    follows = os.environ.get("RANK", "0") != "0"  # not the first of several processes
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files need not be UTF-8
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if follows and sys.argv[1:2] != ["fit"]:
            raise InputError(
                f"only fit can run in several processes; got {sys.argv[1:2]}. "
                "Start it without torchrun."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("always", DataWarning)
            warnings.showwarning = _said
            command()
    except (DeepLFMError, OSError) as error:
        code = 2 if isinstance(error, InputError) else 1
        told = TOLD in getattr(error, "__notes__", ())
        if told:
            outlast_the_first()
        prefix = "could not read or write a file: " if isinstance(error, OSError) else ""
        _fail(f"{prefix}{error}", code, told)
    except MemoryError:
        _fail(_NO_MEMORY, 1)
    except RuntimeError as error:
        if not any(words in str(error) for words in _OF_MEMORY):  # of torch, on any device
            raise
        _fail(_NO_MEMORY, 1)
    except KeyboardInterrupt:
        _fail(_interrupted(), 1, told=follows)
    except SystemExit as stopped:  # typer has a code of its own for an interrupt
        if stopped.code != 130:
            raise
        _fail(_interrupted(), 1, told=follows)


def _interrupted() -> str:
    command = next(iter(sys.argv[1:]), "it")
    return _INTERRUPTED.get(command, f"interrupted; {command} has written nothing, repeat it")


def _said(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as a sentence: where it was raised says nothing to who types a command."""
    print(f"deeplfm: {printable(str(message))}", file=sys.stderr)


def _fail(message: str, code: int, told: bool = False) -> NoReturn:
    if not told:
        print(f"deeplfm: {printable(message)}", file=sys.stderr)
    sys.exit(code)
