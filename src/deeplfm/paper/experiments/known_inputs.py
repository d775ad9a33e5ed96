"""Systems with a known input and a hidden force: are gain and physics found, do they carry over?

    y' + decay·y = gain·u + force,    y'' + 2·damping·y' + frequency²·y = gain·u + force

A model that knows the physics answers a new input as the system does.
"""

from typing import Any, final

import numpy as np

from deeplfm.greens_functions import FirstOrder, SecondOrder
from deeplfm.models import MarkovDLFM
from deeplfm.paper.datasets.simulated import Driven, driven
from deeplfm.paper.experiments.study import (
    PARAMETER_HEADINGS,
    Study,
    parameter_rows,
    parameters,
)
from deeplfm.paper.experiments.table import Results, Table
from deeplfm.regressor.estimator import DeepLFMRegressor


@final
class KnownInputs(Study[Driven]):
    """Thirty sets of 400 points of either system."""

    def estimators(self) -> dict[str, DeepLFMRegressor]:
        templates = {
            "first-order": FirstOrder(decay=0.5),
            "second-order": SecondOrder(damping=0.5, frequency=1.0),
        }
        return {
            system: DeepLFMRegressor(MarkovDLFM(greens_function=template, level=False), check=False)
            for system, template in templates.items()
        }

    def load(self, system: str, seed: int) -> Driven:
        return driven(system, seed)

    def fit(self, estimator: Any, simulated: Driven) -> None:
        import pandas as pd

        known = pd.DataFrame({"u": simulated.inputs})
        estimator.fit(simulated.times, pd.DataFrame({"y": simulated.values}), known=known)

    def score(self, estimator: Any, simulated: Driven) -> dict[str, Any]:
        import pandas as pd

        known = pd.DataFrame({"u": simulated.later_inputs})
        mean = np.reshape(estimator.predict(simulated.later, known=known), -1)
        rows = simulated.settled
        error = np.mean((mean - simulated.answer)[rows] ** 2) / np.var(simulated.answer[rows])
        return {
            "parameters": parameters(estimator, simulated.truth),
            "new input": {"nmse": float(error)},
        }

    def tables(self, results: Results) -> list[Table]:
        made = []
        for system in self.estimators():
            own = [one for one in results if one["dataset"] == system]
            if not own:
                continue
            errors = [one["metrics"]["new input"]["nmse"] for one in own]
            caption = (
                f"A {system} system with a known input and a hidden force that carries 10 % of the "
                "variance: how often the 90 % interval of a parameter holds its truth, and how far "
                "the median is from it. The answer to a new input has a mean NMSE of "
                f"{np.mean(errors):.4f} (worst {np.max(errors):.4f})."
            )
            name = f"driven_{system}"
            made.append(Table(name, caption, PARAMETER_HEADINGS, parameter_rows(own)))
        return made
