"""Whether the check of a fit warns where it must, and where it must not.

Each series of `datasets.planted` is fitted with the default training; one JSON says what its check
found. The bar: a warning for every planted failure, and for one easy series at most.
"""

import time
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from deeplfm.data import files
from deeplfm.errors import InputError
from deeplfm.evaluation.check import MODEL
from deeplfm.paper.datasets.planted import EASY, PLANTED, planted_series
from deeplfm.paper.experiments.report import latex, markdown
from deeplfm.paper.experiments.table import Table
from deeplfm.paper.experiments.tables import load_results
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.training import Training

_SMOKE = (PLANTED[0], EASY[0])  # series of a run in seconds
_HEADINGS = ("series", "planted", "warned", "NMSE (inside, end)", "covers (inside, end)", "spread")


def reproduce_planted(
    out: Path,
    data: Path | None = None,
    *,
    names: Collection[str] = (),
    smoke: bool = False,
    say: Callable[[str], None] = print,
) -> Table:
    """Fit every series that has no result yet, and give the table of all results.

    data: the folder of data files.    names: only these.    smoke: two series, a few steps.
    """
    every = _SMOKE if smoke else (*PLANTED, *EASY)
    if unknown := sorted(set(names) - set(every)):
        raise InputError(f"datasets must be among {list(every)}; got {unknown}. Correct the name.")
    for name in names or every:
        path = out / "planted" / f"{name.replace(' ', '-').replace('/', '-')}.json"
        if not path.exists():
            result = _checked(name, data, Training(steps=4) if smoke else Training())
            files.save_json(path, result)
            say(f"{name}: {'warned' if result['warnings'] else 'not warned'}")
    table = planted_table(out)
    for suffix, text in (("md", markdown(table)), ("tex", latex(table))):
        files.save_text(out / "tables" / f"{table.name}.{suffix}", text)
    return table


def _checked(name: str, data: Path | None, training: Training) -> dict[str, Any]:
    times, values, recipe = planted_series(name, data)
    model = DeepLFMRegressor(recipe, training, progress=False)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(times, values)
    found = model.check_.to_json()
    return {
        "experiment": "planted",
        "series": name,
        "planted": name in PLANTED,
        "model": type(recipe).__name__,
        "seconds": time.perf_counter() - began,
        **found,
    }


def planted_table(out: Path) -> Table:
    """The table of all results under `out`: what each check said, the planted failures first."""
    results = load_results(out, "planted")
    rows: list[tuple[str, ...]] = []
    for one in sorted(results, key=lambda result: (not result["planted"], result["series"])):
        own = {row[0]: row for row in one["rows"] if row[1] == MODEL}
        kinds = [own[kind] for kind in ("inside", "end") if kind in own]
        errors = ", ".join(f"{row[3]:.2g}" for row in kinds)
        covers = ", ".join(f"{100 * row[6]:.0f} %" for row in kinds)
        spread = f"{one['spread']['inside']:.2f}, {one['spread']['beyond']:.2f}"
        said = ("yes" if one["planted"] else "no", "yes" if one["warnings"] else "no")
        rows.append((one["series"], *said, errors, covers, spread))
    caught = sum(1 for one in results if one["planted"] and one["warnings"])
    false = sum(1 for one in results if not one["planted"] and one["warnings"])
    planted = sum(1 for one in results if one["planted"])
    caption = (
        f"Checks of fits: {caught} of {planted} planted failures warned of, and {false} of "
        f"{len(results) - planted} easy series"
    )
    return Table("planted", caption, _HEADINGS, rows)
