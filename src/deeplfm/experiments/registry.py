"""Every run of every experiment, as data: what is fitted to what, with which seed.

toy            the paper's figure 3: both DLFMs and their counterparts without dynamics, five seeds
cardiac        gaps and the end of the embedded signals: what both models are like out of the box
physio         tables 1 and 2 on the stand-in records, imputation and extrapolation apart
starts         whether losses stay finite, from twenty starts in both types of numbers
overconfidence what training longer does to held-out densities, by treatment of the frequencies
"""

from dataclasses import dataclass, replace
from typing import Literal, final

from deeplfm.errors import InputError
from deeplfm.greens_functions import NoDynamics
from deeplfm.models import FourierDLFM, InducingDLFM, Recipe
from deeplfm.training import Training

CHOSEN_ON = ("3083337", "3555523")  # the records that settings may be chosen on
SCORED_ON = "3379471"


@final
@dataclass(frozen=True)
class Cell:
    """One fit of one model to one task, and the name of its JSON."""

    experiment: str
    model: str
    dataset: str
    tasks: tuple[str, ...]  # hidden from the training together, scored apart
    seed: int
    recipe: Recipe
    training: Training
    dtype: Literal["float32", "float64"] = "float32"

    @property
    def name(self) -> str:
        return "_".join([self.model, self.dataset, *self.tasks, str(self.seed)])


def cells(experiment: str) -> list[Cell]:
    """All runs of `experiment`."""
    known = {
        "toy": _toy,
        "cardiac": _cardiac,
        "physio": _physio,
        "starts": _starts,
        "overconfidence": _overconfidence,
    }
    if experiment not in known:
        names = sorted([*known, "decay"])
        raise InputError(
            f"experiment must be one of {names}; got {experiment!r}. Choose one of them."
        )
    return known[experiment]()


def smoke(cell: Cell) -> Cell:
    """The same path in seconds: few features or inducing points, few steps."""
    recipe = cell.recipe
    if isinstance(recipe, FourierDLFM):
        recipe = replace(recipe, num_features=10)
    elif isinstance(recipe, InducingDLFM):
        recipe = replace(recipe, num_inducing=10, grid_points=20, num_basis=10)
    stages = tuple(replace(stage, num_samples=1) for stage in cell.training.stages)
    training = replace(cell.training, steps=4, num_samples=2, stages=stages)
    return replace(cell, recipe=recipe, training=training)


def _models() -> dict[str, tuple[Recipe, Training]]:
    fourier, inducing, training = FourierDLFM(), InducingDLFM(), Training()
    return {
        "dlfm-rff": (fourier, training),
        "dlfm-rff-mixture": (fourier, replace(training, restarts=6, combine="mixture")),
        "dgp-rff": (replace(fourier, greens_function=NoDynamics()), training),
        "dlfm-rff-paper": (FourierDLFM.paper(), Training.paper()),
        "dlfm-vip": (inducing, training),
        "dgp-vip": (replace(inducing, greens_function=NoDynamics()), training),
        "dlfm-vip-paper": (
            InducingDLFM.paper(),
            Training(steps=2000, num_samples=50, rate="constant", warmup=0.0, gradient_norm=None),
        ),
    }


def _toy() -> list[Cell]:
    both = ("imputation", "extrapolation")
    return [
        Cell("toy", model, "figure", both, seed, _few(recipe), training)
        for model, (recipe, training) in _models().items()
        if not model.endswith(("paper", "mixture"))
        for seed in range(5)
    ]


def _few(recipe: Recipe) -> Recipe:
    """The toy has 20 inducing points."""
    return replace(recipe, num_inducing=20) if isinstance(recipe, InducingDLFM) else recipe


def _cardiac() -> list[Cell]:
    both = ("imputation", "extrapolation")
    return [
        Cell("cardiac", model, "cardiac", both, seed, *_models()[model])
        for model in ("dlfm-rff", "dlfm-vip")
        for seed in range(5)
    ]


def _physio() -> list[Cell]:
    return [
        Cell("physio", model, record, (task,), seed, *settings)
        for model, settings in _models().items()
        for record in (*CHOSEN_ON, SCORED_ON)
        for task in ("imputation", "extrapolation")
        for seed in range(_seeds(model, record))
    ]


def _seeds(model: str, record: str) -> int:
    """Three for our models; a mixture needs fewer where it was only chosen."""
    if model == "dlfm-rff-mixture":
        return 3 if record == SCORED_ON else 1
    return 3 if model in ("dlfm-rff", "dlfm-vip") else 1


def _starts() -> list[Cell]:
    """Half of them fitted, half from the prior; small batches, one sample: a rough ride."""
    training = Training(steps=200, num_samples=1, batch_size=200)
    dtypes: tuple[Literal["float32", "float64"], ...] = ("float32", "float64")
    return [
        Cell(
            "starts",
            f"dlfm-vip-{dtype}",
            dataset,
            ("imputation",),
            seed,
            InducingDLFM(weight_init="fitted" if seed < 10 else "prior"),
            training,
            dtype,
        )
        for dtype in dtypes
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
            FourierDLFM(frequencies=treatment),
            replace(base, steps=factor * base.steps),
        )
        for treatment in ("prior_draws", "fixed_noise", "resampled")
        for factor in (1, 2, 4)
        for record in (*CHOSEN_ON, "3262086")
        for seed in range(3 if treatment == "prior_draws" and factor < 4 else 1)
    ]
