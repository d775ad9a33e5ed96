"""What every fitted model can do, whatever stands inside: draws, predictions, forces, noise.

    f = fitted.draw(5);  fitted.predictive(X);  fitted.summary(X);  fitted.latent_forces(X)

All in the user's units.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.data import Dataset, Scaling, inputs_table
from deeplfm.evaluation.check import Check
from deeplfm.evaluation.predictive import Predictive
from deeplfm.models import ModelSettings
from deeplfm.regressor.reach import check_reach
from deeplfm.training import Training
from deeplfm.training.plateau import sentence_of

Values = NDArray[np.float64]
Functions = Callable[..., Values]  # of X; of a panel, of X and series

_STDS = 6  # that a range of one of several inputs has, where the data are not there
_TOGETHER = 64  # draws of observations


@dataclass(frozen=True)
class Summary:
    """What is kept of a prediction at many points: [N, D] each; quantiles by their level."""

    mean: Values
    std: Values
    quantiles: Mapping[float, Values] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted(ABC):
    """A fitted model with the units it speaks in.

    `histories` hold what training recorded, one per member; `steps` is how far it went, which is
    all the way where it ended by itself; `data` is what it was fitted to, where that was kept;
    `check` is what it found out about itself.
    """

    recipe: ModelSettings
    training: Training
    scaling: Scaling
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    histories: tuple[Mapping[str, Values], ...]
    seed: int
    steps: int
    data: Dataset | None = None
    check: Check | None = None

    @abstractmethod
    def draw(self, num_samples: int = 5, seed: int | None = None) -> Functions:
        """Functions: f(X) is [S, N, D], the same ones wherever and however often evaluated."""

    @abstractmethod
    def predictive(self, X: Any, num_samples: int = 200, seed: int | None = None) -> Predictive:
        """The predictive distribution at `X`, with the noise; the fit's seed by default."""

    @abstractmethod
    def summary(
        self,
        X: Any,
        levels: Sequence[float] = (),
        num_samples: int = 200,
        seed: int | None = None,
    ) -> Summary:
        """Mean, standard deviation and quantiles of `predictive`, in memory that X alone needs."""

    @abstractmethod
    def latent_forces(
        self, X: Any, layer: int = 0, num_samples: int = 200, seed: int | None = None
    ) -> Predictive:
        """The forces that drive a layer, at `X`, without noise; `.names` says which they are."""

    @abstractmethod
    def hidden_functions(
        self, X: Any, layer: int = 0, num_samples: int = 200, seed: int | None = None
    ) -> Predictive:
        """What a layer hands on to the next, at `X`: no noise, and no units but for the last."""

    @abstractmethod
    def function_names(self, layer: int) -> tuple[str, ...]:
        """The names of what a layer makes: those of the outputs for the last one."""

    @abstractmethod
    def force_names(self, layer: int) -> tuple[str, ...]:
        """The names of the forces that drive a layer; none where no force does."""

    @abstractmethod
    def noise(self) -> Mapping[str, Values]:
        """What was learnt of the noise of each output, [D] by name."""

    @property
    @abstractmethod
    def num_parameters(self) -> int:
        """How many numbers were learnt, per member."""

    @property
    @abstractmethod
    def place(self) -> tuple[str, str]:
        """The device that it predicts on, and the type of its numbers."""

    def together(self, X: Any, seed: int) -> Values:
        """A few draws of observations [S, N, D] at `X`: all rows of a draw are of one function."""
        return self.predictive(X, _TOGETHER, seed).sample_y()

    def near(self, X: Any) -> Values:
        """New inputs [N, P], which must not be too far from the data; far away is a warning."""
        x, unit = inputs_table(X, len(self.input_names)), self.scaling.input_scale
        low, high = self.scaling.input_origin, self.scaling.input_origin + unit
        if self.data is not None:
            low, high = self.data.x.min(0), self.data.x.max(0)
        elif len(unit) > 1:
            high = low + _STDS * unit
        check_reach(x, low, high, unit, self.input_names)
        return x

    def factor_at(self, X: Any) -> Values | None:
        """How many times wider predictions at `X` are than the model says, [N]; None: not so."""
        if self.check is None or self.check.spread.is_plain:
            return None
        spread, x = self.check.spread, inputs_table(X, len(self.input_names))
        if x.shape[1] > 1:
            return np.full(len(x), spread.inside)
        first = float(self.scaling.input_origin[0])
        last = first + float(self.scaling.input_scale[0])
        if self.data is not None:
            first, last = float(self.data.x.min()), float(self.data.x.max())
        return spread.at(x[:, 0], first, last)

    @property
    def convergence(self) -> str:
        """Whether the bound had stopped rising when training ended, in a sentence."""
        if self.steps < self.training.steps and not self.training.held_out:
            return f"The fit was interrupted after {self.steps} of {self.training.steps} steps."
        found = sentence_of(self.training, self.histories[0])
        return "Nothing was recorded of the training." if found is None else found

    @property
    def num_members(self) -> int:
        """How many models it is a mixture of."""
        return 1

    @property
    def hidden_width(self) -> int:
        """How many functions the widest hidden layer has; 0 where there is none."""
        return 0
