"""From outside the package: a layer kind is one class and one recipe, which do all that ours do.

`docs/add_a_layer.md` explains what is done here.
"""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

import deeplfm as dlfm
from deeplfm.data import Scaling
from deeplfm.layers import Layer, join
from deeplfm.likelihoods import Likelihood
from deeplfm.models import Concatenate, DeepLFM, Recipe, layer_sizes
from deeplfm.plotting import plot_greens_functions, plot_time_constants
from deeplfm.regressor import learnt
from deeplfm.report import write_report
from deeplfm.sums import Backend
from deeplfm.variational.gaussians import DiagonalGaussian
from small_models import noise_variance


@final
@dataclass(frozen=True, eq=False)
class Polynomials:
    """Drawn polynomials: their coefficients are these numbers."""

    coefficients: Float[Tensor, "S D F"]
    degree: int

    def __call__(
        self, x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None = None
    ) -> Float[Tensor, "S N D"]:
        x = join(x, shared)
        powers = torch.cat([x**k for k in range(1, self.degree + 1)], dim=-1)
        powers = torch.cat([torch.ones_like(x[..., :1]), powers], dim=-1)
        return powers @ self.coefficients.mT


@final
class PolynomialLayer(Layer):
    """f_d(x) = w_{d0} + Σ_p Σ_k w_{dpk} x_p^k with w ~ N(0, 1), q(w) a diagonal Gaussian."""

    def __init__(self, num_inputs: int, num_outputs: int, degree: int) -> None:
        super().__init__(num_inputs, num_outputs, dlfm.NoDynamics())
        self.degree = degree
        like = torch.zeros((), dtype=torch.float64)
        shape = (num_outputs, 1 + degree * num_inputs)
        self.weights = DiagonalGaussian(shape, like=like, scale=0.1)

    def draw(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
    ) -> Polynomials:
        return Polynomials(self.weights.draw(num_samples, generator), self.degree)

    def kl(self, backend: Backend = "auto") -> Float[Tensor, ""]:
        return self.weights.kl().sum()

    def lengthscales(self) -> Float[Tensor, " P"]:
        return torch.full((self.num_inputs,), math.inf)  # there is no force


@dlfm.register
@final
@dataclass(frozen=True)
class DeepPolynomial(Recipe):
    """Polynomials of polynomials and of the inputs."""

    num_layers: int = 2
    hidden_dim: int = 2
    degree: int = 3
    likelihood: Likelihood = field(default_factory=dlfm.Gaussian)

    def skeleton(self, scaling: Scaling, generator: torch.Generator | None = None) -> DeepLFM:
        skip = Concatenate()
        sizes = layer_sizes(self.num_layers, self.hidden_dim, skip, scaling)
        layers = [PolynomialLayer(*size, self.degree) for size in sizes]
        return DeepLFM(layers, skip, self.likelihood.built_for(scaling))


X = np.linspace(-1, 3, 60)
CUBIC = np.stack([X**3 - 2 * X**2, 3 - X**2], axis=1)
CUBIC[20:25, 0] = np.nan
TRAINING = dlfm.Training(steps=300, num_samples=4, learning_rate=0.03)


@pytest.fixture(scope="module")
def model() -> dlfm.DeepLFMRegressor:
    return regressor(DeepPolynomial(), TRAINING).fit(X, CUBIC)


def regressor(recipe: Recipe, training: dlfm.Training) -> dlfm.DeepLFMRegressor:
    return dlfm.DeepLFMRegressor(recipe, training, device="cpu", progress=False)


def test_it_trains_and_predicts(model: dlfm.DeepLFMRegressor) -> None:
    assert model.score(X, CUBIC) > 0.9
    gap = model.predictive(X[20:25])
    truth = X[20:25] ** 3 - 2 * X[20:25] ** 2
    assert np.abs(gap.mean[:, 0] - truth).max() < 3 * gap.std[:, 0].max()
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == CUBIC.shape


def test_a_draw_is_a_function(model: dlfm.DeepLFMRegressor) -> None:
    f = model.draw(3, seed=1)
    whole = f(X)
    parts = np.concatenate([f(X[:7]), f(X[7:])], axis=1)
    # Float32, whose rounding is that of the largest values, about 3.
    np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=3e-6)


def test_it_has_no_forces_and_says_so(model: dlfm.DeepLFMRegressor) -> None:
    sentence = r"must be driven by latent forces; a PolynomialLayer has none. Ask for its hidden_f"
    for layer in (0, 1):
        with pytest.raises(dlfm.InputError, match=sentence):
            model.latent_forces(X, layer=layer)
    assert model.hidden_functions(X, layer=0).samples.shape[1:] == (len(X), 2)


def test_it_appears_in_what_was_learnt(model: dlfm.DeepLFMRegressor) -> None:
    found = learnt.responses(model)
    assert [(one.layer, one.function, one.input) for one in found] == [
        (0, "hidden 0", "x0"), (0, "hidden 1", "x0"),
        (1, "y0", "hidden 0"), (1, "y0", "hidden 1"), (1, "y0", "x0"),
        (1, "y1", "hidden 0"), (1, "y1", "hidden 1"), (1, "y1", "x0"),
    ]  # fmt: skip
    assert found[0].in_words() == "hidden 0 depends on x0 directly, without an ODE or a force."
    assert all(not one.poles and math.isinf(one.lengthscale) for one in found)
    plot_greens_functions(model)
    plot_time_constants(model)


def test_saved_and_loaded_it_predicts_the_same(
    model: dlfm.DeepLFMRegressor, tmp_path: Path
) -> None:
    model.save(tmp_path / "run")
    again = dlfm.load(tmp_path / "run", device="cpu")
    assert type(again.fitted_.recipe) is DeepPolynomial
    assert np.array_equal(again.predictive(X).samples, model.predictive(X).samples)


def test_its_settings_are_nested_parameters() -> None:
    small = regressor(DeepPolynomial(), replace(TRAINING, steps=2))
    small.set_params(model__degree=1, model__num_layers=1)
    assert small.fit(X, CUBIC).fitted_.members[0].stack[0].elements > 0
    assert small.get_params()["model__degree"] == 1


@pytest.mark.parametrize("training", [
    {"batch_size": 16},
    {"restarts": 2, "combine": "mixture"},
    {"held_out": 0.2},
    {"objective": "multi_sample"},
    {"local_reparameterisation": True},
], ids=str)  # fmt: skip
def test_every_way_to_train_works(training: dict[str, Any]) -> None:
    found = regressor(DeepPolynomial(), replace(TRAINING, steps=4, **training)).fit(X, CUBIC)
    assert np.isfinite(found.predict(X)).all()


def test_its_weights_are_a_role_that_stages_can_freeze() -> None:
    """Gaussians are found inside the layer; nothing else is learnt here."""
    layer = PolynomialLayer(2, 3, degree=2)
    groups = layer.parameter_groups()
    assert [id(one) for one in groups["weights"]] == [id(one) for one in layer.parameters()]
    assert groups["hyperparameters"] == []
    frozen = dlfm.Stage(1.0, 2, frozenset({"weights"}))
    training = replace(TRAINING, steps=5, stages=(frozen,))
    found = regressor(DeepPolynomial(), training).fit(X, CUBIC).fitted_.members[0]
    start = DeepPolynomial().skeleton(regressor_scaling()).float()
    for layer_found, layer_start in zip(found.stack, start.stack, strict=True):
        for one, other in zip(layer_found.parameters(), layer_start.parameters(), strict=True):
            assert torch.equal(one, other)
    assert noise_variance(found).tolist() != noise_variance(start).tolist()


def regressor_scaling() -> Scaling:
    model = regressor(DeepPolynomial(), replace(TRAINING, steps=1)).fit(X, CUBIC)
    scaling: Scaling = model.fitted_.scaling
    return scaling


def test_a_report_is_written(model: dlfm.DeepLFMRegressor, tmp_path: Path) -> None:
    write_report(model, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "DeepPolynomial" in text
    assert "No latent force drives this layer." in text
    assert "y0 depends on x0 directly, without an ODE or a force." in text


@pytest.mark.usefixtures("without_shape_checks")
def test_sizes_are_checked() -> None:
    with pytest.raises(dlfm.InputError, match="num_outputs must be an integer of at least 1"):
        PolynomialLayer(1, 0, degree=2)
