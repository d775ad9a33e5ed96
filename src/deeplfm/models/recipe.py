"""Recipes: whole models as frozen settings, built for a data set.

    model = FourierDLFM(hidden_dim=3).build(data, scaling, generator)

Users speak in their own units: `decay` and `lengthscale` of the inputs are converted by the scaling
of the data. Hidden functions have no units and a spread of about 1; to the physics they are like an
input over its whole range.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.data import Dataset, Scaling
from deeplfm.errors import InputError
from deeplfm.forces import ForceKernel
from deeplfm.greens_functions import GreensFunction
from deeplfm.likelihoods import Likelihood
from deeplfm.models.deep_lfm import DeepLFM
from deeplfm.models.skip import Skip
from deeplfm.models.starts.base import Values, evenly
from deeplfm.shapes import check_choices

Units: TypeAlias = Literal["user", "scaled"]
Templates: TypeAlias = GreensFunction | Sequence[GreensFunction] | None


class ModelSettings:
    """What every recipe is: frozen settings, among them the template of a `likelihood`."""

    if TYPE_CHECKING:

        @property
        def likelihood(self) -> Likelihood: ...

    def __post_init__(self) -> None:
        """Fields whose type is a Literal are checked: nobody else looks at them again."""
        check_choices(self)

    def __deepcopy__(self, memo: dict[int, object]) -> "ModelSettings":
        """Itself: settings are frozen, and what they hold is a template that nobody changes."""
        return self


class Recipe(ModelSettings, ABC):
    """Settings that can build a model of layers: the base class of frozen dataclasses.

    A subclass writes `skeleton`, and `build` where a model should start elsewhere than there. With
    `@deeplfm.register` its models can be saved. A subclass that has a `__post_init__` of its own
    calls that of its base first. One of its fields is `likelihood`, a template.
    """

    def resolved(self, data: Dataset, scaling: Scaling) -> "Recipe":
        """The same settings with those filled in that only the data can say: sizes, say."""
        return self

    def build(self, data: Dataset, scaling: Scaling, generator: torch.Generator) -> DeepLFM:
        """The model for `data`, in float64 on the CPU, started as the settings say."""
        return self.skeleton(scaling, generator)

    @abstractmethod
    def skeleton(self, scaling: Scaling, generator: torch.Generator | None = None) -> DeepLFM:
        """The model before it has seen data, of the sizes that `scaling` has, in float64."""


def layer_sizes(
    num_layers: int, hidden_dim: int, skip: Skip, scaling: Scaling
) -> list[tuple[int, int]]:
    """How many inputs and outputs each layer has."""
    inputs, outputs = len(scaling.input_scale), len(scaling.target_std)
    widths = [inputs, *[skip.width(hidden_dim, inputs)] * (num_layers - 1)]
    return list(zip(widths, [*[hidden_dim] * (num_layers - 1), outputs], strict=True))


def start_tables(
    data: Dataset, scaling: Scaling, likelihood: Likelihood, *, all_rows: bool = False
) -> tuple[Values, Values]:
    """Some rows of the inputs, and what functions should be near there, in the model's units."""
    targets = scaling.to_functions(likelihood.start_targets(data.y))
    inputs = scaling.inputs(data.x)
    return (inputs, targets) if all_rows else evenly(inputs, targets)


def time_units(units: Units, hidden: int, width: int, scaling: Scaling) -> Float[Tensor, " P"]:
    """What one unit of each input of a layer is, in the units of the settings.

    The first `hidden` inputs are hidden functions. Such a one counts as an input of typical scale:
    its physics must not depend on whether time is in seconds or hours.
    """
    if units == "scaled":
        return torch.ones(width, dtype=torch.float64)
    scales = torch.tensor(scaling.input_scale)
    typical = scales.log().mean().exp().expand(hidden)
    return torch.cat([typical, scales])[:width]


def template_of(templates: Templates, number: int) -> GreensFunction | None:
    """The Green's function of one layer, if the settings name any."""
    return templates[number] if isinstance(templates, Sequence) else templates


def check_templates(templates: Templates, num_layers: int) -> None:
    """One for all layers, one for each, or none."""
    given = templates if isinstance(templates, Sequence) else [templates]
    wrong = [one for one in given if not isinstance(one, GreensFunction)]
    if templates is not None and wrong:
        raise InputError(
            "greens_function must be a Green's function, a list of them, or None; got "
            f"{wrong[0]!r}. Pass FirstOrder(), say."
        )
    if isinstance(templates, Sequence) and len(templates) != num_layers:
        raise InputError(
            f"greens_function must be one, or one per layer ({num_layers}); got "
            f"{len(templates)}. Add or remove some."
        )


def check_force(force: object) -> None:
    """The forces of a recipe have a kernel."""
    if not isinstance(force, ForceKernel):
        raise InputError(
            f"force must be a kernel such as SquaredExponential(); got {force!r}. Pass an instance."
        )


def check_likelihood(likelihood: Likelihood) -> None:
    """A likelihood, as a template."""
    if not isinstance(likelihood, Likelihood):
        raise InputError(
            f"likelihood must be a likelihood such as Gaussian(); got {likelihood!r}. "
            "Pass an instance."
        )
