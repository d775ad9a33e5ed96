"""Every run of every experiment, as data: which model is fitted to which data, with which seed.

toy              the paper's figure 3, by what its figure shows and by its printed equations
physio, uneven   tables 1 and 2 on other patients; the same with half of the observations gone
charis, uci      tables 1 and 2 on the paper's own record; table 3 (`tables`: others, beside trees)
cardiac, general the embedded signals; series without a heart in them, beside what users have
starts           whether losses stay finite, from twenty starts; simulated sets are in `studies`
overconfidence   longer training and held-out densities; `longer`: of the defaults of all recipes
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from deeplfm.errors import InputError
from deeplfm.models import FourierDLFM, InducingDLFM
from deeplfm.paper.datasets.physio import RECORDS
from deeplfm.paper.datasets.registry import RegisteredDataSet, registered_data_sets
from deeplfm.paper.experiments.general import general_fits
from deeplfm.paper.experiments.longer import longer_fits
from deeplfm.paper.experiments.models import (
    OURS,
    PAPER,
    Estimator,
    make,
    models_on,
    shared_tasks,
    smaller,
)
from deeplfm.paper.experiments.studies import STUDIES
from deeplfm.paper.experiments.study import Study
from deeplfm.paper.experiments.table_scores import MODELS as TABLE_MODELS
from deeplfm.paper.experiments.table_scores import table_estimator
from deeplfm.paper.experiments.tabular import tabular_model
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.training import Training

CHOSEN_ON = ("3083337", "3555523")  # the records that settings may be chosen on
SCORED_ON = tuple(record for record in RECORDS if record not in CHOSEN_ON)
PAPER_ON = ("3379471", "3600995")  # where the paper's settings are run as well
NO_CHANCE = ("lag-ridge", "ar-ridge")  # models that are the same for every seed
_FEW_POINTS = {"model__num_inducing": 20}
_TOY_SETTINGS = {"dlfm-vip": _FEW_POINTS, "dgp-vip": _FEW_POINTS}
# In float32 the covariances of this model do not stay positive definite on this record.
_RECORD_SETTINGS = {("slmc", "3600995"): {"dtype": "float64"}}


@final
@dataclass(frozen=True)
class Cell:
    """One fit of one model, the tasks it is scored on, and the name of its JSON."""

    experiment: str
    model: str
    dataset: str  # a record of the data set
    tasks: tuple[str, ...]  # hidden from the training together, scored apart
    seed: int
    estimator: Estimator
    pictured: bool = False  # predictions are kept, for a figure
    samples: int = 200  # samples of a prediction
    source: str = ""  # the registered data set; the name of the experiment, if it is left out
    study: Study[Any] | None = None  # how simulated sets are fitted and scored, instead of tasks
    panel: bool = False  # outputs are subjects of one system

    @property
    def name(self) -> str:
        """The name of the run, from which that of its files is made."""
        return "_".join([self.model, self.dataset, *self.tasks, str(self.seed)])

    @property
    def data_set(self) -> RegisteredDataSet:
        """The data set that the cell is fitted to."""
        name, data_sets = self.source or self.experiment, registered_data_sets()
        if name not in data_sets:
            raise InputError(
                f"the source of a cell must be one of {sorted(data_sets)}; got {name!r}. Name a "
                "registered data set."
            )
        return data_sets[name]


def cells(experiment: str) -> list[Cell]:
    """All runs of `experiment`."""
    by_name = experiments()
    if experiment not in by_name:
        names = sorted([*by_name, "decay", "planted"])
        raise InputError(
            f"experiment must be one of {names}; got {experiment!r}. Choose one of them."
        )
    return by_name[experiment]()


def experiments() -> dict[str, Callable[[], list[Cell]]]:
    """The runs of each experiment by name: those of the paper, and one for each other data set."""
    others = {
        name: partial(_of_data_set, data_set)
        for name, data_set in registered_data_sets().items()
        if name not in _OF_THE_PAPER
    }
    studies = {name: partial(_of_study, name, study) for name, study in STUDIES.items()}
    return _OF_THE_PAPER | studies | others


def smoke(cell: Cell) -> Cell:
    """The same run in seconds: few features or inducing points, few steps."""
    return replace(cell, estimator=smaller(cell.estimator), samples=10)


def _of_data_set(data_set: RegisteredDataSet) -> list[Cell]:
    """Every model that suits a data set, on each task alone; one without chance has one seed."""
    return [
        Cell(data_set.name, model, record, (task,), seed, make(model))
        for record in data_set.records
        for model in models_on(data_set)
        for task in shared_tasks(model, data_set)
        for seed in range(1 if model in NO_CHANCE else data_set.seeds)
    ]


def _of_study(name: str, study: Study[Any]) -> list[Cell]:
    """Every set of a study."""
    return [
        Cell(name, "lfm-markov", dataset, (), seed, estimator, study=study)
        for dataset, estimator in study.estimators().items()
        for seed in range(study.sets)
    ]


def _toy() -> list[Cell]:
    return [replace(cell, pictured=cell.seed == 0) for cell in _both_tasks("toy", _TOY_SETTINGS)]


def _both_tasks(name: str, settings: Mapping[str, Mapping[str, object]]) -> list[Cell]:
    """All tasks at once, the simplest model first, as in the paper's figure 3."""
    data_set = registered_data_sets()[name]
    return [
        Cell(name, model, record, tasks, seed, make(model, **settings.get(model, {})))
        for record in data_set.records
        for model in reversed(models_on(data_set))
        if (tasks := shared_tasks(model, data_set))
        for seed in range(data_set.seeds)
    ]


def _series(experiment: str, records: tuple[str, ...]) -> list[Cell]:
    """Two seeds of our models, one of the others; the paper's settings on two records."""
    data_set = registered_data_sets()[experiment]
    return [
        Cell(
            experiment,
            model,
            record,
            (task,),
            seed,
            make(model, **_RECORD_SETTINGS.get((model, record), {})),
            pictured=seed == 0 and model in (*OURS, *PAPER) and record in ("charis6", PAPER_ON[0]),
        )
        for model in models_on(data_set)
        for record in records
        if model not in PAPER or record in (*PAPER_ON, "charis6")
        for task in shared_tasks(model, data_set)
        for seed in range(_seeds(model, record))
    ]


def _seeds(model: str, record: str) -> int:
    """The number of seeds: our models have one more on the record that judges our defaults."""
    if model not in OURS:
        return 1
    return 3 if record == PAPER_ON[0] else 2


def _uci() -> list[Cell]:
    data_set = registered_data_sets()["uci"]
    return [
        Cell("uci", model, table, tasks, split, tabular_model(model, table))
        for table in data_set.records
        for model in models_on(data_set)
        if (tasks := shared_tasks(model, data_set))
        for split in range(data_set.seeds)
    ]


def _tables() -> list[Cell]:
    data_set = registered_data_sets()["tables"]
    return [
        Cell("tables", model, table, data_set.tasks, split, table_estimator(model, table))
        for table in data_set.records
        for model in TABLE_MODELS
        for split in range(data_set.seeds)
    ]


def _starts() -> list[Cell]:
    """Half of the starts are fitted, half are drawn; small batches and one sample: rough steps."""
    training = Training(steps=200, num_samples=1, batch_size=200)
    return [
        Cell(
            "starts",
            f"dlfm-vip-{dtype}",
            record,
            ("imputation",),
            seed,
            DeepLFMRegressor(
                InducingDLFM(weight_init="fitted" if seed < 10 else "prior"),
                training,
                dtype=dtype,
                check=False,
            ),
            source=source,
        )
        for dtype in ("float32", "float64")
        for source, record in (("toy", "figure"), ("physio", CHOSEN_ON[0]))
        for seed in range(20)
    ]


def _overconfidence() -> list[Cell]:
    """Three seeds of the default treatment: one difference of two fits is mostly their noise."""
    base = Training()
    return [
        Cell(
            "overconfidence",
            f"{treatment}-{factor}x",
            record,
            ("imputation",),
            seed,
            DeepLFMRegressor(
                FourierDLFM(frequencies=treatment),
                replace(base, steps=factor * base.steps),
                check=False,
            ),
            source="physio",
        )
        for treatment in ("prior_draws", "fixed_noise", "resampled")
        for factor in (1, 2, 4)
        for record in (*CHOSEN_ON, "3262086")
        for seed in range(3 if treatment == "prior_draws" and factor < 4 else 1)
    ]


def _general() -> list[Cell]:
    return [
        Cell(
            "general",
            fit.model,
            fit.record,
            registered_data_sets()["general"].tasks,
            fit.seed,
            make(fit.model, **fit.settings),
            panel=fit.panel,
        )
        for fit in general_fits()
    ]


def _longer() -> list[Cell]:
    steps = Training().steps
    return [
        Cell(
            "longer",
            fit.name,
            fit.record,
            (fit.task,),
            0,
            make(fit.model, training=Training(steps=fit.factor * steps)),
            source=fit.source,
            panel=fit.panel,
        )
        for fit in longer_fits()
    ]


_OF_THE_PAPER: dict[str, Callable[[], list[Cell]]] = {
    "toy": _toy,
    "physio": partial(_series, "physio", RECORDS),
    "uneven": partial(_series, "uneven", SCORED_ON),
    "charis": partial(_series, "charis", ("charis6",)),
    "uci": _uci,
    "cardiac": partial(_both_tasks, "cardiac", {}),
    "starts": _starts,
    "overconfidence": _overconfidence,
    "general": _general,
    "longer": _longer,
    "tables": _tables,
}
