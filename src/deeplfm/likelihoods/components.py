"""Components of a predictive mixture from the methods of any likelihood.

Numbers go to torch in float64 on the CPU and come back as numpy, in the user's units.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, final, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.evaluation import Components, Support
from deeplfm.evaluation.components import ALL, Chosen

Values = NDArray[np.float64]


@runtime_checkable
class Conditional(Protocol):
    """p(y | f), as far as it is asked here; `Likelihood` says what the methods are."""

    support: Support

    def log_density(self, y: Tensor, f: Tensor) -> Tensor: ...

    def cdf(self, y: Tensor, f: Tensor) -> Tensor: ...

    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor: ...

    def mean(self, f: Tensor) -> Tensor: ...

    def variance(self, f: Tensor) -> Tensor: ...


@final
@dataclass(frozen=True, eq=False)
class LikelihoodComponents(Components):
    """p(y | f) of a likelihood for D outputs.

    likelihood: in float64 on the CPU; functions: [S, N, D], in its units; shift, scale: what 0 and
    1 in its units are in the user's, [D]; outputs: the numbers of those that are asked for.
    """

    likelihood: Conditional
    functions: Values
    shift: Values
    scale: Values
    outputs: NDArray[np.integer]

    @property
    def support(self) -> Support:
        return self.likelihood.support

    @property
    def mean(self) -> Values:
        return self._in_user_units(self._of_functions(self.likelihood.mean))

    @property
    def variance(self) -> Values:
        variance = self._of_functions(self.likelihood.variance)
        return np.asarray(variance * self.scale[self.outputs] ** 2)

    def cdf(self, y: Values) -> Values:
        support = self.support
        share = self._of_targets(self.likelihood.cdf, np.floor(y) if support.whole else y)
        below = (y < support.low) | (y == -np.inf)
        share = np.where(below, 0.0, np.where(y >= support.high, 1.0, share))
        return np.where(np.isnan(y), np.nan, share)

    def log_density(self, y: Values) -> Values:
        logs = self._of_targets(self.likelihood.log_density, y)
        if not self.support.whole:
            logs = logs - np.log(self.scale[self.outputs])
        logs = np.where(self.support.contains(y), logs, -np.inf)
        return np.where(np.isnan(y), np.nan, logs)

    def sample(self, seed: int) -> Values:
        generator = torch.Generator().manual_seed(seed)
        drawn = self._of_functions(lambda f: self.likelihood.sample(f, generator))
        return self._in_user_units(drawn)

    def select(self, rows: Chosen = ALL, outputs: Chosen = ALL) -> "LikelihoodComponents":
        return replace(self, functions=self.functions[:, rows], outputs=self.outputs[outputs])

    def _in_user_units(self, targets: Values) -> Values:
        return np.asarray(targets * self.scale[self.outputs] + self.shift[self.outputs])

    def _of_functions(self, method: Callable[[Tensor], Tensor]) -> Values:
        with torch.no_grad():
            found: Values = method(torch.tensor(self.functions)).numpy()
        return found[:, :, self.outputs]

    def _of_targets(self, method: Callable[[Tensor, Tensor], Tensor], y: Values) -> Values:
        """At targets of the chosen outputs; what is not in the support is not shown to it."""
        inside = self.support.contains(y)
        shown = np.full((len(y), len(self.shift)), self.support.inside, dtype=np.float64)
        scaled = (y - self.shift[self.outputs]) / self.scale[self.outputs]
        shown[:, self.outputs] = np.where(inside, scaled, self.support.inside)
        return self._of_functions(lambda f: method(torch.tensor(shown), f))
