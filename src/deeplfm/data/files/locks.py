"""Locks: one command at a time in a folder; the others are told who holds it.

The system lets go of a lock when its process ends, however that happens: what a killed one left
binds nobody. Where a file system knows no locks, the process that the file names is looked for.
"""

import errno
import json
import os
import socket
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from deeplfm.data.files.writing import make_folder
from deeplfm.errors import InputError

LOCK = ".lock"
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}  # of a file system that has none
_LOOKS, _PAUSE = 3, 0.05  # at a lock that is taken, and seconds between them
_LONGEST = 4096  # bytes that are read of a file of somebody


@contextmanager
def locked(folder: Path, action: str) -> Iterator[None]:
    """Hold a folder, which is made if need be, for an `action` such as "a fit"; or an error."""
    made, descriptor = _held(folder)
    try:
        said = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now().astimezone().isoformat(" ", "seconds"),
            "action": action,
        }
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(said).encode())
        yield
    finally:
        with suppress(OSError):  # before it is let go of: who waits for it looks again
            (folder / LOCK).unlink(missing_ok=True)
        os.close(descriptor)
        for one in reversed(made):
            with suppress(OSError):  # it holds something, or is gone
                one.rmdir()


def holder(folder: Path) -> str | None:
    """Who holds a folder, in words; None where nobody does."""
    try:
        descriptor = os.open(folder / LOCK, _FLAGS & ~os.O_CREAT)
    except OSError:
        return None
    try:
        return None if _taken(descriptor) else _told(descriptor)
    finally:
        os.close(descriptor)


def _held(folder: Path) -> tuple[list[Path], int]:
    """The folders that were made, and the open file of a lock that is held."""
    made, looks = list[Path](), 0
    while True:
        made += make_folder(folder)
        try:
            descriptor = os.open(folder / LOCK, _FLAGS, 0o666)
        except FileNotFoundError:  # whoever made the folder has removed it again
            continue
        except IsADirectoryError:
            raise _no_lock(folder / LOCK) from None
        keep = False
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _no_lock(folder / LOCK)
            if not _taken(descriptor):
                looks += 1
                if looks < _LOOKS:  # somebody may only have looked whether it is free
                    time.sleep(_PAUSE)
                    continue
                raise InputError(
                    f"{folder} must be used by one command at a time; {_told(descriptor)} holds "
                    "it. Wait until that has ended, or choose another folder."
                )
            with suppress(FileNotFoundError):  # else it was removed after it was opened
                keep = os.path.samestat(os.fstat(descriptor), os.stat(folder / LOCK))
            if keep:
                return made, descriptor
        finally:
            if not keep:
                os.close(descriptor)


def _taken(descriptor: int) -> bool:
    """Whether the lock is ours now."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 2**30, os.SEEK_SET)  # the text stays readable
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return not _lives(_said(descriptor))
        return False
    return True


def _lives(said: Mapping[str, Any]) -> bool:
    """Whether the process that a lock names may still be there; one elsewhere may."""
    pid = said.get("pid")
    if type(pid) is not int or pid <= 0:
        return False
    if said.get("host") != socket.gethostname() or sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _told(descriptor: int) -> str:
    said = _said(descriptor)
    if not said:  # it is being written
        time.sleep(_PAUSE)
        said = _said(descriptor)
    if not said:
        return "another process"
    parts = (str(said.get(name))[:80] for name in ("action", "pid", "host", "since"))
    return "{} (process {} on {}, since {})".format(*parts)


def _said(descriptor: int) -> dict[str, Any]:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        found = json.loads(os.read(descriptor, _LONGEST))
    except (ValueError, RecursionError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def _no_lock(path: Path) -> InputError:
    return InputError(
        f"{path} must be a file that commands make for themselves; it is something else. Remove it."
    )
