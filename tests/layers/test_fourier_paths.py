"""What is drawn from a Fourier layer: sums of waves are features times weights; values at data."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction
from deeplfm.layers import FourierLayer
from deeplfm.layers.frequencies import Treatment
from deeplfm.sums import plane_wave_sum
from deeplfm.variational.gaussians import DiagonalGaussian
from small_models import shallow

SAMPLES = 20_000


def assert_moments(values: Tensor, mean: Tensor, variance: Tensor) -> None:
    """Mean and variance of [S, ...] Gaussian values, within 5 standard errors."""
    count = len(values)
    assert ((values.mean(0) - mean).abs() <= 5 * (variance / count).sqrt()).all()
    assert ((values.var(0) - variance).abs() <= 5 * variance * math.sqrt(2 / count)).all()


def test_local_reparameterisation_has_the_moments_of_the_weights() -> None:
    """Σ φ_k μ_k + c and Σ φ_k² σ_k², weight by weight; functions have the same moments."""
    _, layer, batch = shallow("diagonal")
    x, generator = batch.x[:3], torch.Generator().manual_seed(5)
    q = layer.weights
    assert isinstance(q, DiagonalGaussian)
    with torch.no_grad():  # deviations of 0.2 to 3: none is its own square
        count = q.log_diagonal.numel()
        spread = torch.linspace(math.log(0.2), math.log(3.0), count)
        q.log_diagonal.copy_(spread[torch.randperm(count, generator=generator)][None])
        q.shift.copy_(torch.randn(q.shift.shape, generator=generator))
        layer.offset.fill_(0.7)
        omega = layer.frequencies.draw(1)
        phi = layer.features(x[None], omega)[0, :, 0].flatten(-2)
        mu, sigma = q.shift[0], q.log_diagonal[0].exp()  # q starts as N(0, 1): no frame yet
        mean, variance = (torch.zeros(3, dtype=torch.float64) for _ in range(2))
        for n in range(3):
            for k in range(count):
                mean[n] += phi[n, k] * mu[k]
                variance[n] += (phi[n, k] * sigma[k]) ** 2
        inputs = x.expand(SAMPLES, -1, -1)
        local = layer.draw_for_training(SAMPLES, generator, local=True)(inputs)[:, :, 0]
        functions = layer.draw(SAMPLES, generator)(inputs)[:, :, 0]
    assert_moments(local, mean + 0.7, variance)
    assert_moments(functions, mean + 0.7, variance)
    # Values at two points are drawn on their own; those of a function are not.
    assert abs(torch.corrcoef(local.T)[0, 1]) < 5 / math.sqrt(SAMPLES)
    assert abs(torch.corrcoef(functions.T)[0, 1]) > 0.1


def test_local_reparameterisation_needs_weights_it_can_sum_over() -> None:
    for weights, options in (("full", {}), ("diagonal", {"shared_forces": True})):
        _, layer, _ = shallow(weights, **options)
        with pytest.raises(dlfm.InputError, match="local reparameterisation needs"):
            layer.draw_for_training(2, local=True)


def test_sums_of_waves_have_derivatives_of_every_order() -> None:
    generator = torch.Generator().manual_seed(8)
    x, omega = (torch.randn(2, 3, 2, generator=generator).double() for _ in range(2))
    weights = [torch.randn(2, 3, 2, generator=generator).double() for _ in range(2)]
    arguments = [value.requires_grad_() for value in (x, omega, *weights)]
    torch.autograd.gradcheck(plane_wave_sum.plain, arguments)
    torch.autograd.gradgradcheck(plane_wave_sum.plain, arguments)


@pytest.mark.parametrize("frequencies", ["fixed_noise", "resampled"])
@pytest.mark.parametrize(
    ("g", "options"),
    [
        (dlfm.FirstOrder(1.5), {}),
        (dlfm.FirstOrder(1e-6, normalised=True), {"random_phases": True, "input_weights": True}),
        (dlfm.FirstOrder(2.0), {"per_output": True, "num_forces": 2}),
        (dlfm.FirstOrder(2.0), {"per_output": True, "num_forces": 2, "shared_forces": True}),
        (dlfm.FirstOrder(2.0), {"memory": "infinite", "shared_forces": True}),
        (dlfm.FirstOrder(2.0), {"memory": "infinite", "inputs": "product", "per_output": True}),
        (dlfm.SecondOrder(0.7, 3.0), {"memory": "infinite", "random_phases": True}),
        (dlfm.SecondOrder(0.7, 3.0), {"per_output": True, "num_forces": 2}),
        (dlfm.SecondOrder(3.0, 3.0, learn=False), {"random_phases": True}),
        (dlfm.SecondOrder(4.0, 1.5, normalised=True), {"shared_forces": True}),
        (dlfm.LinearODE([4.0, -0.2]), {}),
        (dlfm.LinearODE([20.0, 15.0, 4.0]), {"per_output": True}),
        (dlfm.LinearODE([8.0, 12.0, 6.0], learn=False), {"num_forces": 2}),
        (dlfm.LinearODE([5.0, 3.0, 7.0, 1.0], normalised=True), {}),
        (dlfm.NoDynamics(), {"num_forces": 2}),
    ],
)
@pytest.mark.parametrize("shared_inputs", [True, False])
def test_sums_of_waves_are_the_features_times_the_weights(
    g: GreensFunction, options: dict[str, Any], frequencies: Treatment, shared_inputs: bool
) -> None:
    """Values and gradients, on both sides of the origin, also where H is near 1e6 or poles meet."""
    generator = torch.Generator().manual_seed(1)
    layer = FourierLayer(
        2, 3, greens_function=g, num_features=4, frequencies=frequencies, generator=generator,
        **options,
    )  # fmt: skip
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator).to(parameter))
        # The location is ω itself with fixed noise, and the mean of ω where it is resampled.
        location, log_std = layer.frequencies.location, layer.frequencies.log_std
        assert location is not None
        assert log_std is not None
        location[..., 0, 0] = 1e-6  # a wave that hardly turns
        log_std[..., 0, 0] = -30
    x = torch.randn(1 if shared_inputs else 5, 7, 2, generator=generator, dtype=torch.float64)
    assert (x < 0).any()
    assert (x > 0).any()
    x.requires_grad_()
    path = layer.draw(5, generator)
    still = path.waves.omega[..., 0, 0]
    torch.testing.assert_close(still, torch.full_like(still, 1e-6))
    assert len(path.waves.omega) == (5 if frequencies == "resampled" else 1)
    sums, features = path(x), path.by_features(x)
    torch.testing.assert_close(sums, features, rtol=1e-9, atol=1e-9)
    along = torch.randn(sums.shape, generator=generator, dtype=torch.float64)
    learnt = {name: value for name, value in layer.named_parameters() if value.requires_grad}
    got, expected = (
        torch.autograd.grad(f, [x, *learnt.values()], along, allow_unused=True, retain_graph=True)
        for f in (sums, features)
    )
    # q(Ω) is known through ω alone; its prior has a lengthscale that no function depends on.
    unused = {"frequencies.lengthscale.raw"}
    if frequencies == "fixed_noise":
        unused.add("frequencies.log_std")
    for name, one, other in zip(["x", *learnt], got, expected, strict=True):
        assert (one is None) == (other is None) == (name in unused), name
        if one is not None and other is not None:
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)
