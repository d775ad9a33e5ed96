"""Data files are found in the folder that is given, else in $DEEPLFM_DATA, then in the cache.

A file that is in neither is downloaded into the cache, if it can be had from its official place.
The data set that asks for a file verifies it.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

from deeplfm.data import files
from deeplfm.errors import InputError


@final
@dataclass(frozen=True)
class Source:
    """The official place of a data set, and how its file must look if it is made by hand."""

    page: str
    downloads: str | None = None  # address of the folder of files, where they can be used as is
    form: str = ""


def locate(
    name: str,
    path: Path | str | None = None,
    *,
    beside: tuple[str, ...] = (),
    source: Source | None = None,
) -> Path:
    """The path of the file `name`, such as physio/3379471.csv.

    path:   the folder to look in, with or without the part of the name before the slash.
    beside: names of files that must lie in the same folder.
    source: where the file comes from.
    """
    cache = _cache() if path is None else None
    given = path if path is not None else os.environ.get("DEEPLFM_DATA")
    places = [Path(place) for place in (given, cache) if place]
    wanted = (Path(name).name, *beside)
    absent: list[str] = []
    for place in places:
        folders = (place / Path(name).parent, place)
        missing = [[f for f in wanted if not (folder / f).is_file()] for folder in folders]
        for folder, files_missing in zip(folders, missing, strict=True):
            if not files_missing:
                return folder / wanted[0]
        fewest = int(len(missing[1]) < len(missing[0]))
        absent.append(" and ".join(str(folders[fewest] / file) for file in missing[fewest]))
    failed = ""
    if cache and source and source.downloads:
        folder = cache / Path(name).parent
        failed = _download(wanted, source.downloads, folder)
        if not failed:
            return folder / wanted[0]
    elsewhere = "set DEEPLFM_DATA to" if path is None else "name"
    put = f"Put it there, or {elsewhere}" if absent else "Set DEEPLFM_DATA to"
    raise InputError(
        f"the data file {name} must be on this machine"
        + (f", with {' and '.join(beside)} beside it" if beside else "")
        + (f"; not found: {' or '.join(absent)}" if absent else "; no folder was named")
        + f"{failed}. {put} the folder that holds {name}"
        + (f"; it comes from {source.page}{source.form}." if source else ".")
    )


def _cache() -> Path | None:
    """The user's folder for data of this package; None without the package pooch."""
    try:
        import pooch
    except ImportError:  # without it there is no cache, and nothing is downloaded
        return None
    return Path(pooch.os_cache("deeplfm"))


def _download(names: tuple[str, ...], address: str, folder: Path) -> str:
    """Download the missing files of `names` into `folder`, each whole or not at all.

    Returns nothing where it succeeded, and else the reason as the end of a sentence.
    """
    import pooch

    get = pooch.HTTPDownloader()
    for name in names:
        if (folder / name).is_file():
            continue
        try:
            with files.whole(folder / name) as partial:
                get(f"{address}/{name}", str(partial), None)
        except OSError as error:  # no network, no such file there, no space here
            reason = error.strerror or type(error).__name__
            return f", and the download of {address}/{name} failed ({reason})"
    return ""
