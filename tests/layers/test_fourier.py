"""The Fourier layer against the exact kernel, Monte Carlo, and its promises."""

import math

import pytest
import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction
from deeplfm.layers import FourierLayer
from deeplfm.responses import bump_response
from deeplfm.shapes import Memory
from small_models import deep, deep_batch, shallow

SAMPLES = 20_000
ELL = 0.6


def assert_covariance(values: Tensor, exact: Tensor) -> None:
    """Second moments of [S, K] within 5 standard errors.

    Every draw has its own frequencies, so the expectation is the exact kernel at any R; the error
    is that of S independent products, whose own variance gives the standard error.
    """
    products = values[:, :, None] * values[:, None, :]
    allowed = 5 * (products.var(0) / len(values)).sqrt()
    assert ((products.mean(0) - exact).abs() <= allowed).all()


def draw(layer: FourierLayer, x: Tensor, seed: int = 0) -> Tensor:
    with torch.no_grad():
        path = layer.draw(SAMPLES, torch.Generator().manual_seed(seed))
        return path(x.expand(SAMPLES, -1, -1))


@pytest.mark.parametrize("memory", ["zero", "infinite"])
@pytest.mark.parametrize("g", [dlfm.FirstOrder(1.5), dlfm.SecondOrder(0.7, 3.0), dlfm.NoDynamics()])
def test_one_input_has_the_exact_kernel(g: GreensFunction, memory: Memory) -> None:
    layer = FourierLayer(
        1,
        1,
        greens_function=g,
        num_features=4,
        lengthscale=ELL,
        memory=memory,
        frequencies="resampled",
    )
    x = torch.tensor([[0.2], [0.9], [2.0]], dtype=torch.float64)
    exact = dlfm.LatentForceKernel(g, lengthscale=ELL, memory=memory)(x)[0, 0].detach()
    assert_covariance(draw(layer, x)[:, :, 0], exact)


@pytest.mark.parametrize("random_phases", [False, True])
def test_sum_over_three_inputs_has_its_cross_terms(random_phases: bool) -> None:
    decay = torch.tensor([[1.5, 0.5, 3.0]], dtype=torch.float64)
    layer = FourierLayer(
        3,
        1,
        greens_function=dlfm.FirstOrder(decay),
        num_features=4,
        lengthscale=ELL,
        frequencies="resampled",
        random_phases=random_phases,
    )
    scale = torch.tensor([1.0, -0.6, 1.4], dtype=torch.float64)
    with torch.no_grad():
        layer.sensitivities.copy_(scale.expand(1, 1, 3))
    x = torch.tensor([[0.2, 1.0, 0.4], [0.9, 0.3, 1.5]], dtype=torch.float64)
    means = scale.abs() * bump_response(x, 0.0, ELL, decay[0], "zero")  # E of each wave
    exact = torch.zeros(2, 2, dtype=torch.float64)
    for m in range(3):
        kernel = dlfm.LatentForceKernel(
            dlfm.FirstOrder(decay[:, m : m + 1]), lengthscale=ELL, memory="zero"
        )
        exact += scale[m] ** 2 * kernel(x[:, m : m + 1])[0, 0].detach()
        if not random_phases:
            others = [other for other in range(3) if other != m]
            exact += means[:, m : m + 1] * means[:, others].sum(1)
    values = draw(layer, x)[:, :, 0]
    if random_phases:
        # The phases are fixed with the layer: average over layers, not only over draws.
        values = torch.cat([values[: SAMPLES // 20], *_other_phases(layer, x)])
    assert_covariance(values, exact)


def _other_phases(layer: FourierLayer, x: Tensor) -> list[Tensor]:
    found = []
    for seed in range(1, 400):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            assert layer.phases is not None
            layer.phases.copy_(
                2 * math.pi * torch.rand(layer.phases.shape, generator=generator).double()
            )
            path = layer.draw(50, generator)
            found.append(path(x.expand(50, -1, -1))[:, :, 0])
    return found


def test_product_over_inputs_has_the_product_kernel() -> None:
    decay = torch.tensor([[1.5, 0.5]], dtype=torch.float64)
    g = dlfm.FirstOrder(decay)
    layer = FourierLayer(
        2, 1, greens_function=g, num_features=4, lengthscale=ELL, inputs="product",
        frequencies="resampled",
    )  # fmt: skip
    x = torch.tensor([[0.2, 1.0], [0.9, 0.3]], dtype=torch.float64)
    ell = torch.full((1, 2), ELL, dtype=torch.float64)
    exact = dlfm.LatentForceKernel(g, lengthscale=ell, memory="zero")(x)[0, 0].detach()
    assert_covariance(draw(layer, x)[:, :, 0], exact)


def test_shared_forces_are_the_classical_model() -> None:
    g = dlfm.FirstOrder(torch.tensor([[1.5], [0.4]], dtype=torch.float64))
    layer = FourierLayer(
        1, 2, greens_function=g, num_forces=2, num_features=3, lengthscale=ELL,
        frequencies="resampled", shared_forces=True, per_output=True,
    )  # fmt: skip
    mixing = torch.tensor([[1.0, -0.5], [0.7, 2.0]], dtype=torch.float64)
    with torch.no_grad():
        assert layer.output_sensitivities is not None
        layer.output_sensitivities.copy_(mixing)
    ell = torch.full((2, 1), ELL, dtype=torch.float64)
    x = torch.tensor([[0.3], [1.7]], dtype=torch.float64)
    kernel = dlfm.LatentForceKernel(g, lengthscale=ell, sensitivities=mixing, memory="zero")
    assert_covariance(draw(layer, x).mT.flatten(1), kernel.matrix(x).detach())


@pytest.mark.parametrize("weights", ["full", "diagonal"])
def test_kl_against_monte_carlo(weights: str) -> None:
    _, layer, _ = shallow(weights, frequencies="resampled", num_forces=2)
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in (*layer.weights.parameters(), *layer.frequencies.own_parameters()):
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator).double())
        ell, frequencies = layer.frequencies.lengthscale()[:, :, None], layer.frequencies
        assert frequencies.mean is not None
        assert frequencies.log_std is not None
        q = torch.distributions.Normal(frequencies.mean, frequencies.log_std.exp())
        p = torch.distributions.Normal(torch.zeros_like(q.mean), (1 / ell).expand_as(q.mean))
        omega = q.mean + q.stddev * torch.randn(4000, *q.mean.shape, generator=generator).double()
        logs = (q.log_prob(omega) - p.log_prob(omega)).flatten(1).sum(1)
        w = layer.weights.draw(4000, generator)
        full = torch.distributions.MultivariateNormal(
            layer.weights.mean, scale_tril=layer.weights.factor
        )
        normal = torch.distributions.Normal(torch.zeros_like(w), torch.ones_like(w))
        logs = logs + (full.log_prob(w) - normal.log_prob(w).sum(-1)).sum(-1)
        assert abs(logs.mean() - layer.kl()) <= 5 * logs.std() / math.sqrt(len(logs))


@pytest.mark.parametrize("frequencies", ["fixed_noise", "resampled"])
def test_a_deep_draw_is_one_function(frequencies: str) -> None:
    model, x = deep(frequencies=frequencies), deep_batch().x
    path = model.draw(3, torch.Generator().manual_seed(3))
    whole = path(x)
    assert whole.shape == (3, 12, 2)
    assert torch.equal(whole, path(x))
    torch.testing.assert_close(torch.cat([path(part) for part in x.split(5)], 1), whole)
    again = model.draw(3, torch.Generator().manual_seed(3))
    assert torch.equal(again(x), whole)


def test_forces_drive_the_layer() -> None:
    """The forces of `forces`, put through the ODE by quadrature, give back the layer."""
    _, layer, _ = shallow("full", num_forces=2)
    path = layer.draw(2, torch.Generator().manual_seed(4))
    x = torch.tensor([0.3, 0.8], dtype=torch.float64)
    with torch.no_grad():
        f = path(x[:, None].expand(2, -1, -1))[:, :, 0] - layer.offset
        for s in range(2):
            total = dlfm.responses.quadrature(
                layer.greens_function,
                lambda tau, s=s: layer.forces(tau[None, :, None], path)[s].sum(-1),  # type: ignore[misc]
                x,
                "zero",
            )
            torch.testing.assert_close(total[:, 0, 0], f[s])


@pytest.mark.parametrize(
    "g", [dlfm.FirstOrder(1e3), dlfm.SecondOrder(1e3, 1e3), dlfm.FirstOrder(1e-3)]
)
def test_far_inputs_stay_finite_in_float32(g: GreensFunction) -> None:
    layer = FourierLayer(1, 1, greens_function=g, num_features=8, lengthscale=0.01).float()
    x = torch.tensor([[-1e3], [-1.0], [-1e-6], [0.0], [1e-6], [1e3]], requires_grad=True)
    path = layer.draw(2, torch.Generator().manual_seed(6))
    value = path(x.expand(2, -1, -1))
    assert value.isfinite().all()
    (value.sum() + layer.kl()).backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize(
    ("g", "smooth"), [(dlfm.FirstOrder(2.0), 1), (dlfm.SecondOrder(0.5, 3.0), 2)]
)
def test_smooth_through_the_origin(g: GreensFunction, smooth: int) -> None:
    """Before the origin the ODE runs backwards from rest: n derivatives are continuous."""
    layer = FourierLayer(1, 1, greens_function=g, num_features=4, lengthscale=0.5)
    path = layer.draw(1, torch.Generator().manual_seed(7))
    sides = []
    for side in (-1e-5, 1e-5):
        x = torch.full((1, 1, 1), side, dtype=torch.float64, requires_grad=True)
        derivative = path(x).sum()
        values = [derivative.item()]
        for _ in range(smooth):
            (derivative,) = torch.autograd.grad(derivative, x, create_graph=True)
            values.append(derivative.item())
        sides.append(values)
    assert sides[0] == pytest.approx(sides[1], abs=1e-3)
