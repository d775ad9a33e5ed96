"""Two springs and the hidden force that moves them: are physics and force found, and covered?

    y_d'' + 2·damping_d·y_d' + frequency_d²·y_d = gain_d·u

Both outputs start from one template, and only gain times force can be known: the gain of the first
output is 1.
"""

from typing import Any, final

import numpy as np

from deeplfm.greens_functions import SecondOrder
from deeplfm.models import MarkovDLFM
from deeplfm.paper.datasets.simulated import Springs, springs
from deeplfm.paper.experiments.study import (
    PARAMETER_HEADINGS,
    Study,
    parameter_rows,
    parameters,
)
from deeplfm.paper.experiments.table import Results, Table
from deeplfm.regressor.estimator import DeepLFMRegressor

_ODE = ("damping", "frequency")


@final
class HiddenForce(Study[Springs]):
    """Thirty sets of 150 points."""

    def estimators(self) -> dict[str, DeepLFMRegressor]:
        template = SecondOrder(damping=0.5, frequency=1.5)
        return {
            "springs": DeepLFMRegressor(
                MarkovDLFM(greens_function=template, level=False), check=False
            )
        }

    def load(self, system: str, seed: int) -> Springs:
        return springs(seed)

    def fit(self, estimator: Any, simulated: Springs) -> None:
        estimator.fit(simulated.times, simulated.values)

    def score(self, estimator: Any, simulated: Springs) -> dict[str, Any]:
        lower, upper = estimator.latent_forces(simulated.times).interval(0.9)
        inside = (lower[:, 0] <= simulated.force) & (simulated.force <= upper[:, 0])
        return {
            "parameters": parameters(estimator, simulated.truth),
            "force": {"coverage_90": float(inside.mean())},
        }

    def tables(self, results: Results) -> list[Table]:
        if not results:
            return []
        covered = np.mean([one["metrics"]["force"]["coverage_90"] for one in results])
        swapped = sum(_swapped(one["metrics"]["parameters"]) for one in results)
        errors = [
            abs(found["p50"] / found["truth"] - 1)
            for one in results
            for name, found in one["metrics"]["parameters"].items()
            if name.endswith(_ODE)
        ]
        caption = (
            "Two springs moved by one hidden force, in simulated sets: how often the 90 % interval "
            "of a parameter holds its truth, and how far the median is from it (mean over sets; "
            f"{np.mean(errors):.2%} over all dampings and frequencies). The 90 % band of the force "
            f"holds {covered:.1%} of its points; the two systems were swapped in {swapped} sets."
        )
        return [Table("springs", caption, PARAMETER_HEADINGS, parameter_rows(results))]


def _swapped(found: dict[str, Any]) -> bool:
    """Whether both quantities of the outputs are in the wrong order."""
    return all(
        (found[f"y0: {name}"]["p50"] > found[f"y1: {name}"]["p50"])
        != (found[f"y0: {name}"]["truth"] > found[f"y1: {name}"]["truth"])
        for name in _ODE
    )
