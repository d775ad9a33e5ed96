"""What an estimator remembers of its fit: the history of its steps, the data, and the check."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deeplfm.data import Dataset
from deeplfm.evaluation.check import Check
from deeplfm.regressor.checking import OFF
from deeplfm.training.schedule import USED


class FitMemories:
    """`history_`, `data_` and `check_`; for an estimator with a `fitted_`."""

    fitted_: Any  # a FittedModel or a FittedMarkov, as the recipe says

    @property
    def history_(self) -> dict[str, np.ndarray]:
        """step, loss, expected_log_likelihood, kl, seconds and backend by name, [steps] each.

        A state-space model has log_evidence and log_prior in place of the two parts of a bound;
        steps are those of its first layer, with all rows.
        """
        check_is_fitted(self)
        history = dict(self.fitted_.histories[0])
        if "backend" in history:
            history["backend"] = np.array(USED)[history["backend"].astype(int)]
        return history

    @property
    def data_(self) -> Dataset | None:
        """The data that it was fitted to, where they were kept."""
        check_is_fitted(self)
        data: Dataset | None = self.fitted_.data
        return data

    @property
    def check_(self) -> Check:
        """What the fit found out about itself on blocks that it held out: scores, and a verdict.

        Where nothing was checked it says so.
        """
        check_is_fitted(self)
        check: Check | None = self.fitted_.check
        return OFF if check is None else check
