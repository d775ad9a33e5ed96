"""Where data files lie: an explicit path, $DEEPLFM_DATA, the user's cache; in this order."""

import os
from pathlib import Path

from deeplfm.errors import InputError


def locate(name: str, path: Path | str | None = None) -> Path:
    """The file `name` (such as physio/3379471.csv), in `path` or the usual places."""
    if path is not None:
        places = [Path(path)]
    else:
        import pooch

        given = os.environ.get("DEEPLFM_DATA")
        places = [*([Path(given)] if given else []), Path(pooch.os_cache("deeplfm"))]
    for place in places:
        for found in (place / name, place / Path(name).name):
            if found.is_file():
                return found
    looked = " or ".join(str(place / name) for place in places)
    raise InputError(
        f"the data file {name} must be on this machine; it is not at {looked}. Put it there, or "
        "set DEEPLFM_DATA to the folder that holds it."
    )
