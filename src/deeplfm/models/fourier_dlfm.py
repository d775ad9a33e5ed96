"""The recipe of DLFM-RFF: layers of random Fourier response features."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, final

import torch
from torch import Tensor

from deeplfm.data import Dataset, Scaling
from deeplfm.errors import InputError
from deeplfm.forces import SMOOTH, ForceKernel
from deeplfm.greens_functions import FirstOrder, GreensFunction
from deeplfm.layers import FourierLayer
from deeplfm.layers.fourier import Combine, Weights
from deeplfm.layers.frequencies import Treatment
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
from deeplfm.models.starts.fourier import rhythm_of, start_at_spectrum, start_fitted
from deeplfm.registry import register
from deeplfm.shapes import Memory, check_above_zero, check_count

FrequencyInit: TypeAlias = Literal["periodogram", "prior", "evidence"]
WeightInit: TypeAlias = Literal["fitted", "prior"]
SkipName: TypeAlias = Literal["concatenate", "none"]

_OF_SERIES, _OF_TABLES = 0.12, 1.0  # lengthscales over hidden functions
_HIDDEN = 6  # functions of a hidden layer that has no phase to follow
_SKIPS: dict[SkipName, type[Skip]] = {"concatenate": Concatenate, "none": NoSkip}


@register
@final
@dataclass(frozen=True)
class FourierDLFM(Recipe):
    """The recipe of DLFM-RFF, a deep model whose layers are random Fourier response features.

        f = [Re φ, Im φ] W,   φ_{qr}(x) = Σ_m |S_{qm}|/√R · wave(x_m; s_m, ω_{qmr})

    Args:
        num_layers: L, at least 1.
        hidden_dim: functions of a hidden layer; None is 1 for a series of ten periods or more,
            which is its phase, and 6 for others. Those beside a phase begin at their prior.
        num_forces: Q, the latent forces that drive every layer.
        num_features: R, the random frequencies of each force.
        greens_function: a template, or one per layer; None is first order with a time constant of
            0.4 of the range of the inputs. A phase forgets nothing, and what depends on it does
            after ten radians.
        lengthscale: that of the forces over the inputs; None takes it from the data.
        hidden_lengthscale: that of the forces over hidden functions, whose spread is about 1; None
            is 0.12 for a series, 1 for a table. Over a phase, in radians, it is how long a shape
            stays the same, and comes from the data.
        memory: "zero" starts the ODE at rest at the origin, "infinite" long before.
        inputs: whether responses along the inputs enter as their "sum" or as their "product".
        frequencies: "prior_draws" learns their scale alone, and is what does not overfit;
            "fixed_noise" (the paper) every one of them, "resampled" q(Ω) in full.
        frequency_init: "periodogram": where the observed targets have power; "prior": a draw;
            "evidence": a draw whose lengthscales, with the ODE, amplitudes and noise, make the
            targets most probable (for inputs="product" with memory="infinite": tables).
        weights: the covariance of q(W), "full" or "diagonal".
        weight_init: "fitted": every layer a closed-form fit; "prior": zero mean, small spread.
        weight_scale: the prior standard deviation of W; None is 1/√R.
        random_sensitivities: True starts the sensitivities at draws from N(0, 1), not at 1.
        shared_forces: one W per force with sensitivities [D, Q]: the classical latent force model.
        input_weights: True learns a weight for every input of a sum.
        random_phases: True gives every wave a random phase, which removes the cross terms of a sum
            from its covariance.
        skip: "concatenate" hands the inputs to every layer beside the hidden functions, or "none".
        force: the kind of covariance that the forces have, e.g. `SquaredExponential()`.
        likelihood: the noise, a template such as `Gaussian()` or `StudentT()`.
        units: those of decay and lengthscale: the user's, or those of the "scaled" inputs.

    Example:
        >>> recipe = dlfm.FourierDLFM(hidden_dim=2, num_features=8)
        >>> model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=1), progress=False)
        >>> x = np.linspace(0, 1, 12)
        >>> model.fit(x, np.sin(6 * x)).predict(x).shape
        (12,)
    """

    num_layers: int = 2
    hidden_dim: int | None = None
    num_forces: int = 1
    num_features: int = 100
    greens_function: GreensFunction | Sequence[GreensFunction] | None = None
    lengthscale: float | None = None
    hidden_lengthscale: float | None = None
    memory: Memory = "zero"
    inputs: Combine = "sum"
    frequencies: Treatment = "prior_draws"
    frequency_init: FrequencyInit = "periodogram"
    weights: Weights = "full"
    weight_init: WeightInit = "fitted"
    weight_scale: float | None = None
    random_sensitivities: bool = False
    shared_forces: bool = False
    input_weights: bool = False
    random_phases: bool = False
    skip: SkipName = "concatenate"
    force: ForceKernel = SMOOTH
    likelihood: Likelihood = field(default_factory=Gaussian)
    units: Units = "user"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("num_layers", "num_forces", "num_features"):
            check_count(name, getattr(self, name))
        if self.hidden_dim is not None:
            check_count("hidden_dim", self.hidden_dim)
        for name in ("lengthscale", "hidden_lengthscale", "weight_scale"):
            if getattr(self, name) is not None:
                check_above_zero(name, getattr(self, name))
        check_templates(self.greens_function, self.num_layers)
        check_likelihood(self.likelihood)
        check_force(self.force)
        self._check_evidence()

    @classmethod
    def paper(cls) -> "FourierDLFM":
        """The settings of the paper; it trains them with `Training.paper()`.

        The paper's lengthscale 0.01 is 0.01/√2 in the convention of this library.
        """
        return cls(
            hidden_dim=3,
            greens_function=FirstOrder(0.01),
            lengthscale=0.01 / math.sqrt(2),
            hidden_lengthscale=0.01 / math.sqrt(2),
            frequencies="fixed_noise",
            frequency_init="prior",
            weights="diagonal",
            weight_init="prior",
            weight_scale=1.0,
            random_sensitivities=True,
            likelihood=Gaussian(0.01),
            units="scaled",
        )

    def resolved(self, data: Dataset, scaling: Scaling) -> "FourierDLFM":
        if self.hidden_dim is not None:
            return self
        start = self._start(data, scaling, torch.Generator())
        fitted = self.weight_init == "fitted" and self.num_layers > 1
        return replace(self, hidden_dim=1 if fitted and rhythm_of(start) else _HIDDEN)

    def build(self, data: Dataset, scaling: Scaling, generator: torch.Generator) -> DeepLFM:
        recipe = self.resolved(data, scaling)
        if recipe != self:
            return recipe.build(data, scaling, generator)
        layers = self._layers(scaling, generator)
        model = self._composed(layers, scaling)
        start = self._start(data, scaling, generator)
        if self.weight_init == "fitted":
            start_fitted(layers, model.skip, model.likelihood, start)
        elif self.frequency_init == "periodogram":
            start_at_spectrum(layers, start)
        return model

    def skeleton(self, scaling: Scaling, generator: torch.Generator | None = None) -> DeepLFM:
        return self._composed(self._layers(scaling, generator), scaling)

    def _check_evidence(self) -> None:
        plane = self.inputs == "product" and self.memory == "infinite" and not self.shared_forces
        if self.frequency_init == "evidence" and not (plane and self.weight_init == "fitted"):
            raise InputError(
                "frequency_init='evidence' must come with inputs='product', memory='infinite', "
                "weight_init='fitted' and without shared_forces; got others. Change those, or "
                "pass frequency_init='prior'."
            )

    def _start(self, data: Dataset, scaling: Scaling, generator: torch.Generator) -> Start:
        by_evidence = self.frequency_init == "evidence"
        return Start(
            *start_tables(data, scaling, self.likelihood, all_rows=by_evidence),
            generator,
            from_spectrum=self.frequency_init == "periodogram",
            by_evidence=by_evidence,
            keep_lengthscale=self.lengthscale is not None,
            keep_hidden=self.hidden_lengthscale is not None,
            own_physics=self.greens_function is None,
        )

    def _composed(self, layers: Sequence[FourierLayer], scaling: Scaling) -> DeepLFM:
        return DeepLFM(layers, _SKIPS[self.skip](), self.likelihood.built_for(scaling))

    def _layers(self, scaling: Scaling, generator: torch.Generator | None) -> list[FourierLayer]:
        skip = _SKIPS[self.skip]()
        sizes = layer_sizes(self.num_layers, self.hidden_dim or _HIDDEN, skip, scaling)
        return [self._layer(number, *size, scaling, generator) for number, size in enumerate(sizes)]

    def _layer(
        self,
        number: int,
        width: int,
        outputs: int,
        scaling: Scaling,
        generator: torch.Generator | None,
    ) -> FourierLayer:
        last = number == self.num_layers - 1
        hidden = 0 if number == 0 else self.hidden_dim or _HIDDEN
        unit = time_units(self.units, hidden, width, scaling)
        template = template_of(self.greens_function, number) or FirstOrder(2.5)
        groups = outputs if last else 1
        physics = template.tiled(groups, width)
        if self.greens_function is not None:
            physics = physics.rescaled(unit)
        layer = FourierLayer(
            width,
            outputs,
            greens_function=physics,
            num_forces=self.num_forces,
            num_features=self.num_features,
            lengthscale=self._lengthscales(number, unit, series=len(scaling.input_scale) == 1),
            memory=self.memory,
            inputs=self.inputs,
            frequencies=self.frequencies,
            weights=self.weights,
            weight_scale=self.weight_scale or 1 / math.sqrt(self.num_features),
            per_output=last,
            shared_forces=self.shared_forces,
            input_weights=self.input_weights,
            random_phases=self.random_phases,
            force=self.force,
            generator=generator,
        )
        if self.random_sensitivities:
            _randomise(layer.sensitivities, generator)
        if layer.output_sensitivities is not None:  # equal ones would make equal outputs
            _randomise(layer.output_sensitivities, generator)
        return layer

    def _lengthscales(self, number: int, unit: Tensor, *, series: bool) -> Tensor:
        """[P], in the units of the layer's inputs."""
        hidden = 0 if number == 0 else self.hidden_dim or _HIDDEN
        of_inputs = torch.full_like(unit, self.lengthscale or 1.0) / unit
        if self.lengthscale is None:
            of_inputs = torch.ones_like(unit)  # that of the data follows with the start
        of_inputs[:hidden] = self.hidden_lengthscale or (_OF_SERIES if series else _OF_TABLES)
        return of_inputs


def _randomise(values: Tensor, generator: torch.Generator | None) -> None:
    """Replace the values by draws from N(0, 1)."""
    with torch.no_grad():
        values.copy_(torch.randn(values.shape, generator=generator, dtype=torch.float64))
