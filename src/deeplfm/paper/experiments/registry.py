"""Every run of every experiment, as data: what is fitted to what, with which seed.

toy            the paper's figure 3, by what its figure shows and by its printed equations
physio, uneven tables 1 and 2 on the stand-in records; the same with half of the observations gone
charis, uci    tables 1 and 2 on the paper's own record; table 3
cardiac        gaps and the end of the embedded signals: what both models are like out of the box
starts         whether losses stay finite, from twenty starts in both types of numbers
overconfidence what training longer does to held-out densities, by treatment of the frequencies
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

from deeplfm.errors import InputError
from deeplfm.models import FourierDLFM, InducingDLFM
from deeplfm.paper.experiments.models import MODELS, OURS, PAPER, Estimator, make, smaller
from deeplfm.paper.experiments.tabular import TABULAR, tabular_model
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.training import Training

CHOSEN_ON = ("3083337", "3555523")  # the records that settings may be chosen on
SCORED_ON = ("3262086", "3269261", "3379471", "3460047", "3600995", "3646209")
PAPER_ON = ("3379471", "3600995")  # where the paper's settings are run as well
TASKS = ("imputation", "extrapolation")
TABLES = ("power", "protein")
_SPLITS = 3
_TOY = ("gp", "dgp-dsvi", "dgp-rff", "dgp-vip", "dlfm-vip", "dlfm-rff")
_ONE_TASK = {"lag-ridge": "imputation", "ar-ridge": "extrapolation"}
# In float32 the covariances of this one do not stay positive definite.
_OWN = {("slmc", "3600995"): {"dtype": "float64"}}
_REGULAR = tuple(_ONE_TASK)  # lags need a grid


@final
@dataclass(frozen=True)
class Cell:
    """One fit of one model to one task, and the name of its JSON."""

    experiment: str
    model: str
    dataset: str
    tasks: tuple[str, ...]  # hidden from the training together, scored apart
    seed: int
    estimator: Estimator
    pictured: bool = False  # predictions are kept, for a figure
    samples: int = 200  # of a prediction

    @property
    def name(self) -> str:
        return "_".join([self.model, self.dataset, *self.tasks, str(self.seed)])


def cells(experiment: str) -> list[Cell]:
    """All runs of `experiment`."""
    if experiment not in EXPERIMENTS:
        names = sorted([*EXPERIMENTS, "decay"])
        raise InputError(
            f"experiment must be one of {names}; got {experiment!r}. Choose one of them."
        )
    return EXPERIMENTS[experiment]()


def smoke(cell: Cell) -> Cell:
    """The same path in seconds: few features or inducing points, few steps."""
    return replace(cell, estimator=smaller(cell.estimator), samples=10)


def _toy() -> list[Cell]:
    few = {"dlfm-vip": {"model__num_inducing": 20}, "dgp-vip": {"model__num_inducing": 20}}
    return [
        Cell("toy", model, generator, TASKS, seed, make(model, **few.get(model, {})), seed == 0)
        for generator in ("figure", "equations")
        for model in _TOY
        for seed in range(5)
    ]


def _cardiac() -> list[Cell]:
    return [
        Cell("cardiac", model, "cardiac", TASKS, seed, make(model))
        for model in ("dlfm-rff", "dlfm-vip")
        for seed in range(5)
    ]


def _physio() -> list[Cell]:
    left_out = (*_TABULAR, _LARGEST)
    return _series("physio", (*CHOSEN_ON, *SCORED_ON), [m for m in MODELS if m not in left_out])


def _uneven() -> list[Cell]:
    left_out = (*_REGULAR, *_TABULAR, *PAPER)
    return _series("uneven", SCORED_ON, [m for m in MODELS if m not in left_out])


def _charis() -> list[Cell]:
    left_out = (*_TABULAR, _LARGEST)
    return _series("charis", ("charis6",), [m for m in MODELS if m not in left_out])


def _series(experiment: str, records: tuple[str, ...], models: list[str]) -> list[Cell]:
    """Two seeds of our models, one of the others; the paper's settings on two records."""
    return [
        Cell(
            experiment,
            model,
            record,
            (task,),
            seed,
            make(model, **_OWN.get((model, record), {})),
            pictured=seed == 0 and model in (*OURS, *PAPER) and record in ("charis6", PAPER_ON[0]),
        )
        for model in models
        for record in records
        if model not in PAPER or record in (*PAPER_ON, "charis6")
        for task in TASKS
        if _ONE_TASK.get(model, task) == task
        for seed in range(_seeds(model, record))
    ]


def _seeds(model: str, record: str) -> int:
    """Of the record that our defaults are judged by, our models have one more."""
    if model not in OURS:
        return 1
    return 3 if record == PAPER_ON[0] else 2


def _uci() -> list[Cell]:
    return [
        Cell("uci", model, table, ("test",), split, tabular_model(model, table))
        for table in TABLES
        for model in TABULAR
        for split in range(_SPLITS)
    ]


def _starts() -> list[Cell]:
    """Half of them fitted, half from the prior; small batches, one sample: a rough ride."""
    training = Training(steps=200, num_samples=1, batch_size=200)
    return [
        Cell(
            "starts",
            f"dlfm-vip-{dtype}",
            dataset,
            ("imputation",),
            seed,
            DeepLFMRegressor(
                InducingDLFM(weight_init="fitted" if seed < 10 else "prior"), training, dtype=dtype
            ),
        )
        for dtype in ("float32", "float64")
        for dataset in ("figure", CHOSEN_ON[0])
        for seed in range(20)
    ]


def _overconfidence() -> list[Cell]:
    """The default treatment with three seeds: one difference of two fits is mostly their noise."""
    base = Training()
    return [
        Cell(
            "overconfidence",
            f"{treatment}-{factor}x",
            record,
            ("imputation",),
            seed,
            DeepLFMRegressor(
                FourierDLFM(frequencies=treatment), replace(base, steps=factor * base.steps)
            ),
        )
        for treatment in ("prior_draws", "fixed_noise", "resampled")
        for factor in (1, 2, 4)
        for record in (*CHOSEN_ON, "3262086")
        for seed in range(3 if treatment == "prior_draws" and factor < 4 else 1)
    ]


_TABULAR = ("svgp", "trees")  # for tables of rows: a series has the exact GP
_LARGEST = "dlfm-rff-mixture-12"  # where starts differ most: half of the observations gone
EXPERIMENTS: dict[str, Callable[[], list[Cell]]] = {
    "toy": _toy,
    "physio": _physio,
    "uneven": _uneven,
    "charis": _charis,
    "uci": _uci,
    "cardiac": _cardiac,
    "starts": _starts,
    "overconfidence": _overconfidence,
}
