"""Every run of every experiment, as data: what is fitted to what, with which seed.

toy            the paper's figure 3: DLFM-RFF and DGP-RFF, five seeds
physio         tables 1 and 2 on the stand-in records, imputation and extrapolation apart
overconfidence what training longer does to held-out densities, by treatment of the frequencies
"""

from dataclasses import dataclass, replace
from typing import final

from deeplfm.errors import InputError
from deeplfm.greens_functions import NoDynamics
from deeplfm.models import FourierDLFM
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
    recipe: FourierDLFM
    training: Training

    @property
    def name(self) -> str:
        return "_".join([self.model, self.dataset, *self.tasks, str(self.seed)])


def cells(experiment: str) -> list[Cell]:
    """All runs of `experiment`."""
    known = {"toy": _toy, "physio": _physio, "overconfidence": _overconfidence}
    if experiment not in known:
        raise InputError(
            f"experiment must be one of {sorted(known)}; got {experiment!r}. Choose one of them."
        )
    return known[experiment]()


def smoke(cell: Cell) -> Cell:
    """The same path in seconds: few features, few steps."""
    recipe = replace(cell.recipe, num_features=10)
    stages = tuple(replace(stage, num_samples=1) for stage in cell.training.stages)
    training = replace(cell.training, steps=4, num_samples=2, stages=stages)
    return replace(cell, recipe=recipe, training=training)


def _models() -> dict[str, tuple[FourierDLFM, Training]]:
    ours, training = FourierDLFM(), Training()
    return {
        "dlfm-rff": (ours, training),
        "dgp-rff": (replace(ours, greens_function=NoDynamics()), training),
        "dlfm-rff-paper": (FourierDLFM.paper(), Training.paper()),
    }


def _toy() -> list[Cell]:
    both = ("imputation", "extrapolation")
    return [
        Cell("toy", model, "figure", both, seed, *settings)
        for model, settings in _models().items()
        if model != "dlfm-rff-paper"
        for seed in range(5)
    ]


def _physio() -> list[Cell]:
    return [
        Cell("physio", model, record, (task,), seed, *settings)
        for model, settings in _models().items()
        for record in (*CHOSEN_ON, SCORED_ON)
        for task in ("imputation", "extrapolation")
        for seed in range(3 if model == "dlfm-rff" else 1)
    ]


def _overconfidence() -> list[Cell]:
    base = Training()
    return [
        Cell(
            "overconfidence",
            f"{treatment}-{factor}x",
            record,
            ("imputation",),
            0,
            FourierDLFM(frequencies=treatment),
            replace(base, steps=factor * base.steps),
        )
        for treatment in ("prior_draws", "fixed_noise", "resampled")
        for factor in (1, 2, 4)
        for record in (*CHOSEN_ON, "3262086")
    ]
