"""The models of the tables by name: ours, ours with the paper's settings, and every baseline.

A name gives a new, unfitted estimator; all of them have `fit`, `predictive` and `history_`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

from sklearn.base import clone

from deeplfm.errors import InputError
from deeplfm.greens_functions import NoDynamics
from deeplfm.models import FourierDLFM, InducingDLFM, MarkovDLFM, ModelSettings
from deeplfm.models.automatic import recipe_for_table
from deeplfm.paper.baselines import Baseline, registered_baselines
from deeplfm.paper.datasets.registry import RegisteredDataSet, registered_data_sets
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.training import Training
from deeplfm.training.automatic import training_for_table

Estimator: TypeAlias = DeepLFMRegressor | Baseline


@final
@dataclass(frozen=True)
class Model:
    """A model of the tables.

    label: what tables call it.
    make:  makes a new estimator.
    on:    the data sets it is run on, by name or by kind.
    tasks: the only tasks it can do; None: all.
    """

    label: str
    make: Callable[[], Estimator]
    on: tuple[str, ...]
    tasks: tuple[str, ...] | None = None


def _ours(recipe: ModelSettings, training: Training | None = None) -> Callable[[], Estimator]:
    # What is compared is the model alone: its check, `planted` looks at.
    return lambda: DeepLFMRegressor(recipe, training or Training(), check=False)


MIXTURE = Training(restarts=6, combine="mixture")
LARGE_MIXTURE = Training(restarts=12, combine="mixture")
VIP_PAPER = Training(steps=2000, num_samples=50, rate="constant", warmup=0.0, gradient_norm=None)
_EVERYWHERE = ("toy", "cardiac", "series", "table")
_IN_THE_PAPER = ("physio", "charis", "table")
_TABLE = recipe_for_table(1000, 8), training_for_table(1000)  # sizes follow with each table

_OURS = {
    "dlfm-markov": Model(
        "DLFM, state space (ours)",
        _ours(MarkovDLFM()),
        ("choosing", "scored", "general"),
    ),
    "lfm-markov": Model(
        "LFM, state space (ours)",
        _ours(MarkovDLFM(num_layers=1)),
        (
            "physio",
            "charis",
            "uneven",
            "cardiac",
            "choosing",
            "choosing-uneven",
            "origins",
            "scored",
        ),
    ),
    # Starts differ most where half of the observations is gone.
    "dlfm-rff-mixture-12": Model(
        "DLFM-RFF (ours, 12 starts)", _ours(FourierDLFM(), LARGE_MIXTURE), ("uneven",)
    ),
    "dlfm-rff-mixture": Model(
        "DLFM-RFF (ours, 6 starts)", _ours(FourierDLFM(), MIXTURE), ("series",)
    ),
    "dlfm-rff": Model("DLFM-RFF (ours)", _ours(FourierDLFM()), _EVERYWHERE),
    "dlfm-vip": Model("DLFM-VIP (ours)", _ours(InducingDLFM()), _EVERYWHERE),
    "dlfm-rff-paper": Model(
        "DLFM-RFF (paper)", _ours(FourierDLFM.paper(), Training.paper()), _IN_THE_PAPER
    ),
    "dlfm-vip-paper": Model(
        "DLFM-VIP (paper)", _ours(InducingDLFM.paper(), VIP_PAPER), _IN_THE_PAPER
    ),
    "dgp-rff": Model(
        "DGP-RFF", _ours(FourierDLFM(greens_function=NoDynamics())), ("toy", "series", "table")
    ),
    "dgp-vip": Model(
        "DGP, pathwise", _ours(InducingDLFM(greens_function=NoDynamics())), ("toy", "series")
    ),
    "lfm-rff": Model(
        "LFM-RFF", _ours(FourierDLFM(num_layers=1, num_forces=2, num_features=20)), ("series",)
    ),
    "dlfm-table": Model("LFM for tables (ours)", _ours(*_TABLE), ("tables",)),
    "dlfm-table-start": Model("LFM for tables, its start", _ours(*_TABLE), ("tables",)),
}
OURS = ("dlfm-rff-mixture", "dlfm-rff", "dlfm-vip")
PAPER = ("dlfm-rff-paper", "dlfm-vip-paper")

# Settings of a fit that takes seconds, by the names that parameters of our estimator have.
_SMALL = {
    "model__modes": 4,
    "model__num_features": 10,
    "model__num_inducing": 10,
    "model__grid_points": 20,
    "model__num_basis": 10,
    "training__steps": 4,
    "training__num_samples": 2,
}


def models() -> dict[str, Model]:
    """Every model by its name, in the order of the tables: ours, then the baselines."""
    baselines = {
        name: Model(entry.label, entry.cls, entry.on, entry.tasks)
        for name, entry in registered_baselines().items()
    }
    if taken := sorted(set(_OURS) & set(baselines)):
        raise InputError(
            f"the name of a baseline must not be that of a model of ours; got {taken}. "
            "Choose another name."
        )
    return _OURS | baselines


def models_on(data_set: RegisteredDataSet) -> list[str]:
    """The names of the models that are run on a data set."""
    data_sets = registered_data_sets()
    kinds = {kind for other in data_sets.values() for kind in other.kinds}
    for name, model in models().items():
        if unknown := sorted(set(model.on) - set(data_sets) - kinds):
            raise InputError(
                f"{name!r} must be run on data sets among {sorted(data_sets)} or kinds among "
                f"{sorted(kinds)}; got {unknown}. Correct the argument `on` of @baseline, or "
                "import the file that registers the data set."
            )
    names = {data_set.name, *data_set.kinds}
    return [name for name, model in models().items() if names & set(model.on)]


def shared_tasks(name: str, data_set: RegisteredDataSet) -> tuple[str, ...]:
    """The tasks of a data set that a model can do."""
    possible = models()[name].tasks
    return tuple(task for task in data_set.tasks if possible is None or task in possible)


def make(name: str, **settings: object) -> Estimator:
    """A new estimator; `settings` by their names, nested ones as `model__num_inducing`."""
    every = models()
    if name not in every:
        raise InputError(f"models must be among {sorted(every)}; got {name!r}. Correct the name.")
    return every[name].make().set_params(**settings)


def smaller(estimator: Estimator) -> Estimator:
    """The same model, so small that a fit takes seconds: few features or points, few steps."""
    small: Estimator = clone(estimator)
    of_baselines = {entry.cls: entry.smoke for entry in registered_baselines().values()}
    if type(estimator) in of_baselines:
        return small.set_params(**of_baselines[type(estimator)])
    parameters = estimator.get_params()
    settings: dict[str, Any] = {k: value for k, value in _SMALL.items() if k in parameters}
    if parameters.get("model__greens_function") is not None:
        settings.pop("model__modes", None)  # physics of the user stays without oscillators
    settings["training__restarts"] = min(2, parameters["training__restarts"])
    settings["training__stages"] = tuple(
        replace(stage, num_samples=1) for stage in parameters["training__stages"]
    )
    return small.set_params(**settings)
