"""p(y | f): how observations meet the functions. Missing targets contribute nothing.

A likelihood owns its density, its distribution function, its sampling, the values that targets can
have, how they are scaled, and how it starts. One given to a recipe is a template: `tiled(D)` is an
independent copy for D outputs. Its methods see targets and functions in its own units: those of
the user, or standardised ones where `standardises_targets`.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor, nn

from deeplfm.data import Scaling
from deeplfm.errors import InputError
from deeplfm.evaluation import REAL_LINE, Components, Support
from deeplfm.likelihoods.components import LikelihoodComponents
from deeplfm.variational.parameters import Quantity

Values = NDArray[np.float64]
Kind = TypeVar("Kind", bound="Likelihood")


class Likelihood(nn.Module, ABC):
    """The distribution of targets given function values.

    A subclass writes `log_density`, `cdf`, `sample`, `mean` and `variance`, elementwise in torch,
    and sets `support` where not every real number is a target. Parameters that are learnt are
    `Quantity` attributes: `tiled` gives every output its own.

    Example:
        >>> import numpy as np, torch
        >>> from deeplfm.evaluation import Support
        >>> from deeplfm.likelihoods import Likelihood
        >>> class Poisson(Likelihood):
        ...     support = Support(low=0, whole=True)
        ...     def log_density(self, y, f):
        ...         return y * f - f.exp() - torch.lgamma(y + 1)
        ...     def cdf(self, y, f):
        ...         return torch.special.gammaincc(y + 1, f.exp())
        ...     def sample(self, f, generator=None):
        ...         return torch.poisson(f.exp(), generator)
        ...     def mean(self, f):
        ...         return f.exp()
        ...     def variance(self, f):
        ...         return f.exp()
        >>> Poisson().start_targets(np.array([[0.0], [9.5]])).round(2).tolist()
        [[-0.69], [2.3]]
    """

    support: Support = REAL_LINE
    function_mean: Tensor | None
    function_std: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        # Not saved: a scaling has them too, and says them again.
        self.register_buffer("function_mean", None, persistent=False)
        self.register_buffer("function_std", None, persistent=False)

    @abstractmethod
    def log_density(
        self, y: Float[Tensor, "*N D"], f: Float[Tensor, "S *N D"]
    ) -> Float[Tensor, "S *N D"]:
        """log p(y | f) of every entry, differentiable in f; `y` is in the support."""

    @abstractmethod
    def cdf(self, y: Float[Tensor, "*N D"], f: Float[Tensor, "S *N D"]) -> Float[Tensor, "S *N D"]:
        """P(Y ≤ y | f) of every entry; `y` is in the support."""

    @abstractmethod
    def sample(
        self, f: Float[Tensor, "S *N D"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "S *N D"]:
        """One target for every function value."""

    @abstractmethod
    def mean(self, f: Float[Tensor, "S *N D"]) -> Float[Tensor, "S *N D"]:
        """E[y | f]."""

    @abstractmethod
    def variance(self, f: Float[Tensor, "S *N D"]) -> Float[Tensor, "S *N D"]:
        """The variance of y given f."""

    @property
    def standardises_targets(self) -> bool:
        """Whether targets are standardised, and functions with them; else functions alone are.

        By default where every real number can be a target: others would lose their support.
        """
        return self.support == REAL_LINE

    @property
    def gaussian_variance(self) -> Float[Tensor, "*D"] | None:
        """σ² where y is the model's function plus Gaussian noise of that variance, else None.

        For that case training has a quicker sum than `log_density`.
        """
        return None

    def start_targets(self, y: Values) -> Values:
        """What functions should be near for targets `y` [N, D], NaN for gaps: where fits start.

        By default `y` on the real line: as it is, its logarithm where the support has one end
        (log(y + ½) for counts), its logit where it has two. Override it for another link.
        """
        return self.support.to_line(y)

    def start_noise(self, variance: Float[Tensor, " D"]) -> None:
        """Start the noise, if there is one, at what the closed-form start leaves.

        variance: of `start_targets` about the functions, in the model's units: standardised.
        """

    def check_targets(self, y: Values, names: Sequence[str]) -> None:
        """An error where `y` [N, D] holds what cannot be a target; NaN can: it was not observed."""
        wrong = ~self.support.contains(y) & ~np.isnan(y)
        if self.support == REAL_LINE or not wrong.any():  # `data` refuses infinite ones itself
            return
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"targets of a {type(self).__name__} likelihood must be {self.support.in_words()}; got "
            f"{y[row, column]:g} in {names[column]!r}, and {int(wrong.sum()) - 1} more like it. "
            "Correct them, write NaN for what was not observed, or choose another likelihood."
        )

    def learnt(self, scaling: Scaling) -> Mapping[str, Values]:
        """What was learnt of the noise, [D] by name, in the user's units; reports show it."""
        return {}

    def arguments(self) -> dict[str, Any]:
        """The arguments that make it again, as it is now."""
        return {}

    def tiled(self: Kind, num_outputs: int) -> Kind:
        """An independent copy with parameters of its own for every output."""
        twin = copy.deepcopy(self)
        for name, part in self.named_children():
            if isinstance(part, Quantity):
                setattr(twin, name, part.tiled(num_outputs))
        return twin

    def built_for(self: Kind, scaling: Scaling) -> Kind:
        """The copy that is part of a model, for the outputs and in the units of `scaling`."""
        twin: Kind = self.tiled(len(scaling.function_std))
        twin.function_mean = torch.tensor(scaling.function_mean)
        twin.function_std = torch.tensor(scaling.function_std)
        return twin

    def log_prob(
        self,
        y: Float[Tensor, "N D"],
        f: Float[Tensor, "S N D"],
        observed: Bool[Tensor, "N D"],
    ) -> Float[Tensor, "S N D"]:
        """log p(y | f) for functions of the model; 0 where nothing was observed.

        What `y` holds there is not read.
        """
        if not self.standardises_targets:
            f = self._in_own_units(f)
        density = self.log_density(torch.where(observed, y, self.support.inside), f)
        return torch.where(observed, density, torch.zeros_like(density))

    def _in_own_units(self, f: Float[Tensor, "S N D"]) -> Float[Tensor, "S N D"]:
        """Functions of the model are standardised; where targets are not, they are unscaled."""
        if self.function_mean is None or self.function_std is None:
            raise InputError(
                f"a {type(self).__name__} likelihood must know the units of its functions; got one "
                "that was not built for a data set. Write likelihood.built_for(scaling) in the "
                "recipe."
            )
        return torch.addcmul(self.function_mean, f, self.function_std)

    def components(self, functions: Values, scaling: Scaling) -> Components:
        """p(y | f) as components of a mixture, for functions [S, N, D], all in the user's units.

        Override it where there is a closed form, such as `NormalComponents`.
        """
        seen = scaling.targets(functions) if self.standardises_targets else functions
        exact = copy.deepcopy(self).to(device="cpu", dtype=torch.float64)
        units = scaling.target_mean, scaling.target_std
        return LikelihoodComponents(exact, seen, *units, np.arange(len(units[0])))
