"""The recipe of DLFM-VIP: layers of latent forces with inducing points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, final

import torch
from torch import Tensor

from deeplfm.data import Dataset, Scaling
from deeplfm.errors import InputError
from deeplfm.forces import SMOOTH, ForceKernel
from deeplfm.greens_functions import FirstOrder, GreensFunction, SecondOrder
from deeplfm.layers import InducingLayer
from deeplfm.likelihoods import Gaussian, Likelihood
from deeplfm.models.deep_lfm import DeepLFM
from deeplfm.models.recipe import (
    Recipe,
    Units,
    check_force,
    check_likelihood,
    check_templates,
    layer_sizes,
    start_tables,
    template_of,
    time_units,
)
from deeplfm.models.skip import Concatenate, NoSkip, Skip
from deeplfm.models.starts.base import Start
from deeplfm.models.starts.grid import grid_size
from deeplfm.models.starts.inducing import InducingStart, match_noise, start_inducing
from deeplfm.registry import register
from deeplfm.shapes import Memory, check_above_zero, check_count

MeanSkip: TypeAlias = Literal["linear", "concatenate", "none"]
MeanLayers: TypeAlias = Literal["hidden", "every"]
WeightInit: TypeAlias = Literal["fitted", "prior"]

_OF_SERIES, _OF_TABLES = 0.25, 1.0  # lengthscales over hidden functions
# A linear mean carries the inputs on inside a layer: nothing re-enters beside it.
_SKIPS: dict[MeanSkip, type[Skip]] = {
    "linear": NoSkip,
    "concatenate": Concatenate,
    "none": NoSkip,
}


@register
@final
@dataclass(frozen=True)
class InducingDLFM(Recipe):
    """The recipe of DLFM-VIP, a deep model whose forces are known through inducing points.

        f_d(x) = Σ_q a_{dq} ∫ G_d(x - τ) u_q(τ) dτ,   q(u(Z)) = N(m, S) at the inducing inputs Z

    Args:
        num_layers: L, at least 1.
        hidden_dim: functions of a hidden layer.
        num_forces: latent forces of each hidden layer, shared by its functions.
        output_forces: latent forces of the last layer; None is one per output.
        num_inducing: M, the inducing inputs of each layer, from k-means of what it sees.
        grid_points: points of the regular grid that the first layer of a series has instead; None
            is `num_inducing`, or as many as its oscillation needs.
        num_basis: waves of a draw of the prior.
        greens_function: a template, or one per layer; None takes it from the data: resonators at
            the dominant oscillation of a series, else ODEs a tenth of a lengthscale long.
        spread: ratio of the speeds of a given ODE in neighbouring hidden functions: alike, they
            would be one function. ODEs that are fixed or bounded stay as given.
        lengthscale: that of the forces over the inputs; None takes it from the data.
        hidden_lengthscale: the least of the forces over hidden functions, whose spread is about 1;
            None is 0.25 for a series, 1 for a table.
        memory: "infinite" runs the ODE since long ago, "zero" starts it at rest at the origin.
        inputs: "product": the responses along the inputs are multiplied.
        skip: "linear": a fixed linear mean in every hidden layer: identity, padded with zeros, or
            principal components; "concatenate": the inputs beside hidden functions; "none".
        mean: which layers have the linear mean, "hidden" ones, or "every" one.
        separate_inducing: True gives every force inducing inputs of its own.
        past: how many of its slowest time constants a grid begins before the data, up to as long
            as the data themselves.
        weight_init: "fitted": the last layer a closed-form fit; "prior": q is the prior.
        force: the kind of covariance that the forces have, e.g. `SquaredExponential()`.
        likelihood: the noise, a template such as `Gaussian()` or `StudentT()`.
        units: those of decay and lengthscale: the user's, or those of the "scaled" inputs.

    Example:
        >>> recipe = dlfm.InducingDLFM(num_inducing=6, num_basis=8, hidden_dim=1)
        >>> model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=1), progress=False)
        >>> x = np.linspace(0, 1, 12)
        >>> model.fit(x, np.sin(6 * x)).predict(x).shape
        (12,)
    """

    num_layers: int = 2
    hidden_dim: int = 3
    num_forces: int = 1
    output_forces: int | None = None
    num_inducing: int = 100
    grid_points: int | None = None
    num_basis: int = 100
    greens_function: GreensFunction | Sequence[GreensFunction] | None = None
    spread: float = 4.0
    lengthscale: float | None = None
    hidden_lengthscale: float | None = None
    memory: Memory = "infinite"
    inputs: Literal["product"] = "product"
    skip: MeanSkip = "linear"
    mean: MeanLayers = "hidden"
    separate_inducing: bool = False
    past: float = 2.0
    weight_init: WeightInit = "fitted"
    force: ForceKernel = SMOOTH
    likelihood: Likelihood = field(default_factory=Gaussian)
    units: Units = "user"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("num_layers", "hidden_dim", "num_forces", "num_inducing", "num_basis"):
            check_count(name, getattr(self, name))
        for name in ("output_forces", "grid_points"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        check_above_zero("spread", self.spread)
        for name in ("lengthscale", "hidden_lengthscale"):
            if getattr(self, name) is not None:
                check_above_zero(name, getattr(self, name))
        if not 0 <= self.past < math.inf:
            raise InputError(f"past must be 0 or more; got {self.past:g}. Use 2.")
        check_templates(self.greens_function, self.num_layers)
        check_likelihood(self.likelihood)
        check_force(self.force)

    @classmethod
    def paper(cls) -> "InducingDLFM":
        """The settings of the paper; train them with 50 samples at a rate of 0.01.

        Its lengthscale 0.1 is 0.1/√2 in the convention of this library.
        """
        return cls(
            output_forces=1,
            greens_function=FirstOrder(2.5),
            spread=1.0,
            lengthscale=0.1 / math.sqrt(2),
            hidden_lengthscale=0.1 / math.sqrt(2),
            mean="every",
            past=0.0,
            weight_init="prior",
            likelihood=Gaussian(0.01),
            units="scaled",
        )

    def resolved(self, data: Dataset, scaling: Scaling) -> "InducingDLFM":
        if self.grid_points is not None or self.greens_function is not None:
            return self
        x, y = start_tables(data, scaling, self.likelihood)
        needed = grid_size(x, y, self.past) if x.shape[1] == 1 else 0
        return replace(self, grid_points=max(self.num_inducing, needed))

    def build(self, data: Dataset, scaling: Scaling, generator: torch.Generator) -> DeepLFM:
        recipe = self.resolved(data, scaling)
        if recipe != self:
            return recipe.build(data, scaling, generator)
        layers = self._layers(scaling, generator)
        model = self._composed(layers, scaling)
        start = Start(*start_tables(data, scaling, self.likelihood), generator)
        settings = InducingStart(
            own_physics=self.greens_function is None,
            keep_lengthscale=self.lengthscale is not None,
            past=self.past,
            fitted=self.weight_init == "fitted",
        )
        start_inducing(layers, model.skip, model.likelihood, start, settings)
        if settings.fitted:
            match_noise(model, start)
        if settings.fitted and not start.series:
            # Inducing inputs and lengthscales of a table have a long way to go, and q with them.
            for layer in layers:
                layer.posterior.whitened.widen_steps()
        return model

    def skeleton(self, scaling: Scaling, generator: torch.Generator | None = None) -> DeepLFM:
        return self._composed(self._layers(scaling, generator), scaling)

    def _composed(self, layers: Sequence[InducingLayer], scaling: Scaling) -> DeepLFM:
        return DeepLFM(layers, _SKIPS[self.skip](), self.likelihood.built_for(scaling))

    def _layers(self, scaling: Scaling, generator: torch.Generator | None) -> list[InducingLayer]:
        skip = _SKIPS[self.skip]()
        sizes = layer_sizes(self.num_layers, self.hidden_dim, skip, scaling)
        return [self._layer(number, *size, scaling, generator) for number, size in enumerate(sizes)]

    def _layer(
        self,
        number: int,
        width: int,
        outputs: int,
        scaling: Scaling,
        generator: torch.Generator | None,
    ) -> InducingLayer:
        last = number == self.num_layers - 1
        hidden = 0 if number == 0 else self.hidden_dim
        unit = time_units(self.units, hidden, width, scaling)
        forces = (self.output_forces or outputs) if last else self.num_forces
        on_grid = number == 0 and width == 1
        count = (self.grid_points or self.num_inducing) if on_grid else self.num_inducing
        shape = (forces,) * self.separate_inducing + (count, width)
        with_mean = self.skip == "linear" and (not last or self.mean == "every")
        series = len(scaling.input_scale) == 1
        of_hidden = self.hidden_lengthscale or (_OF_SERIES if series else _OF_TABLES)
        lengthscale = torch.full((1, width), of_hidden, dtype=torch.float64)
        lengthscale[:, hidden:] = (self.lengthscale or 1.0) / unit[hidden:]
        zeros = torch.zeros(width, outputs, dtype=torch.float64)
        layer = InducingLayer(
            width,
            outputs,
            greens_function=self._physics(number, outputs, unit),
            inducing_inputs=torch.zeros(shape, dtype=torch.float64),
            num_forces=forces,
            num_basis=self.num_basis,
            lengthscale=lengthscale,
            memory=self.memory,
            learn_inputs=not on_grid,
            mean_weights=zeros if with_mean else None,
            force=self.force,
            generator=generator,
        )
        if last and forces == outputs:  # each output begins with a force of its own
            with torch.no_grad():
                layer.sensitivities.copy_(torch.eye(outputs))
        return layer

    def _physics(self, number: int, outputs: int, unit: Tensor) -> GreensFunction:
        """[D, P], in the units of the layer; a first guess where the data will say."""
        template, width = template_of(self.greens_function, number), len(unit)
        if template is None:
            on_grid = number == 0 and width == 1
            return (SecondOrder() if on_grid else FirstOrder()).tiled(outputs, width)
        speeds = torch.ones(outputs, 1, dtype=torch.float64)
        if number < self.num_layers - 1 and template.free:
            steps = torch.arange(outputs, dtype=torch.float64) - (outputs - 1) / 2
            speeds = (self.spread**steps)[:, None]
        return template.tiled(outputs, width).rescaled(unit * speeds)
