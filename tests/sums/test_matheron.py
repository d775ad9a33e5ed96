"""The draw in training against the plain formulas, differentiated by autograd."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import deeplfm as dlfm
from deeplfm.forces import SMOOTH, ForcePrior, InducingPosterior
from deeplfm.forces.numbers import Numbers, random_numbers
from deeplfm.layers import InducingLayer
from deeplfm.sums import Backend, matheron_draw
from deeplfm.sums.c import library

f64 = torch.float64


@pytest.fixture(params=["torch", "c"])
def rule(request: pytest.FixtureRequest) -> Backend:
    """Both fast ways to draw; the compiled one knows float32 alone."""
    if request.param == "c" and not library.is_built():
        pytest.skip("no compiled kernels here")
    backend: Backend = request.param
    return backend


GRAM = 1e-3  # the jitter of most tests: condition numbers are at most M/ε


def posterior_of(
    forces: int,
    inputs: int,
    points: int,
    *,
    own_z: bool = False,
    own_ell: bool = False,
    seed: int = 0,
    jitter: float = GRAM,
    spread: float = 1.0,
) -> InducingPosterior:
    """Somewhere, all of it: a posterior that was set and has moved since, variances beside 1."""
    generator = torch.Generator().manual_seed(seed)

    def rand(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=f64)

    ell = 0.5 + rand(forces if own_ell else 1, inputs)
    prior = ForcePrior(
        ell,
        0.3 + rand(forces),
        num_forces=forces,
        num_inputs=inputs,
        shared_lengthscale=not own_ell,
    )
    z = spread * (rand(forces, points, inputs) if own_z else rand(points, inputs))
    posterior = InducingPosterior(prior, z, jitter=jitter)
    q = posterior.whitened
    q.set(rand(forces, points), (0.3 * rand(forces, points, points) + torch.eye(points)).tril())
    with torch.no_grad():
        for learnt in q.parameters():
            learnt.copy_(rand(*learnt.shape) - 0.5)
    return posterior


def plain(posterior: InducingPosterior, numbers: Numbers) -> tuple[Tensor, Tensor]:
    """θ and c by the textbook, in float64: solves with the factor of the whole covariance."""
    phase, xi, weights, noise, eta = (part.double() for part in numbers)
    prior, whitened = posterior.prior, posterior.whitened
    z, ell, variance = posterior.centers(), prior.lengthscale, prior.variance
    z, ell, variance = z.double(), ell.double(), variance.double()
    theta = xi / ell[:, None]
    cosines = torch.cos(torch.einsum("qmp,qbp->qmb", z, theta[0]) + phase[0][:, None])
    amplitude = (2 * variance / xi.shape[2]).sqrt()[:, None] * weights
    epsilon = posterior.relative_jitter.double() * variance
    known = torch.einsum("qmb,sqb->qms", cosines, amplitude)
    known = known + epsilon.sqrt()[:, None, None] * eta
    values = whitened.mean[..., None].double() + whitened.factor.double() @ noise
    identity = torch.eye(z.shape[1], dtype=f64)
    gram = posterior.prior.covariance_of(z, z, ell, variance) + epsilon[:, None, None] * identity
    factor = torch.linalg.cholesky(gram)
    rest = values - torch.linalg.solve_triangular(factor, known, upper=False)
    solved = torch.linalg.solve_triangular(factor.mT, rest, upper=True)
    return theta, (variance[:, None, None] * solved).permute(2, 0, 1)


def drawn(
    posterior: InducingPosterior, numbers: Numbers, rule: Backend = "torch"
) -> tuple[Tensor, Tensor]:
    prior, z = posterior.prior, posterior.inducing_inputs
    rows = z if z.ndim == 3 else z[None]
    others: Any = (*posterior.whitened.parts(), posterior.relative_jitter, *numbers)
    given = (prior.kernel, rows, prior.lengthscale_rows, prior.variance)
    return matheron_draw.by(rule, *given, *others)


def numbers_of(posterior: InducingPosterior, samples: int, basis: int) -> Numbers:
    generator = torch.Generator().manual_seed(5)
    inputs = posterior.inducing_inputs.shape[-1]
    return random_numbers(samples, basis, posterior.whitened.shift, inputs, SMOOTH, generator)


def gradients(posterior: InducingPosterior, parts: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    """In every parameter, of a mixture of all that was drawn."""
    generator = torch.Generator().manual_seed(6)
    mixture = torch.zeros((), dtype=f64)
    for part in parts:
        mixture = mixture + (part * torch.randn(part.shape, generator=generator)).sum()
    named = dict(posterior.named_parameters())
    found = torch.autograd.grad(mixture, list(named.values()))
    return dict(zip(named, found, strict=True))


@given(
    forces=st.integers(1, 3),
    inputs=st.integers(1, 3),
    points=st.integers(1, 8),
    samples=st.integers(1, 4),
    basis=st.integers(1, 4),
    own_z=st.booleans(),
    own_ell=st.booleans(),
    seed=st.integers(0, 100),
)
def test_values_and_gradients(
    forces: int,
    inputs: int,
    points: int,
    samples: int,
    basis: int,
    own_z: bool,
    own_ell: bool,
    seed: int,
) -> None:
    posterior = posterior_of(forces, inputs, points, own_z=own_z, own_ell=own_ell, seed=seed)
    numbers = numbers_of(posterior, samples, basis)
    found, wanted = drawn(posterior, numbers), plain(posterior, numbers)
    # Rounding of 1e-16, times M/ε at most through a Gram matrix and again through its gradient;
    # against the largest entry, of which sums of M or of S B terms may lose a few.
    tolerance = 100 * torch.finfo(f64).eps * (points / GRAM)
    for one, other in zip(found, wanted, strict=True):
        assert (one - other).abs().max() <= tolerance * other.abs().max()
    both = [gradients(posterior, parts) for parts in (found, wanted)]
    for name, other in both[1].items():
        assert other.abs().max() > 0 or name.endswith("below_diagonal"), name
        assert (both[0][name] - other).abs().max() <= tolerance * (1 + other.abs().max()), name


@pytest.mark.parametrize("own_z", [True, False])
@pytest.mark.parametrize("own_ell", [True, False])
@pytest.mark.parametrize(("forces", "inputs", "samples"), [(2, 1, 3), (1, 3, 1), (3, 2, 10)])
def test_float32_parameters_have_float64_factors(
    rule: Backend, own_z: bool, own_ell: bool, forces: int, inputs: int, samples: int
) -> None:
    """Points so near to each other that a Gram matrix of float32 would spoil c, 60 times more."""
    jitter, points = 1e-5, 12
    posterior = posterior_of(
        forces, inputs, points, own_z=own_z, own_ell=own_ell, jitter=jitter, spread=0.1
    ).float()
    numbers = numbers_of(posterior, samples, 4)
    found, wanted = drawn(posterior, numbers, rule), plain(posterior, numbers)
    assert found[0].dtype == found[1].dtype == torch.float32
    # The M entries of what is known at Z are a few ulp off, which grow by 1/ε at most.
    error = 4 * torch.finfo(torch.float32).eps * math.sqrt(points) / jitter
    size = wanted[1].abs().max()
    assert (found[1] - wanted[1]).abs().max() <= error
    assert size >= 1000 * error
    both = [gradients(posterior, parts) for parts in (found, wanted)]
    for name, other in both[1].items():  # products of two such parts, whose sums cancel somewhat
        assert (both[0][name] - other).abs().max() <= 20 * error / size * other.abs().max(), name


@pytest.mark.parametrize("learnt", ["inducing_inputs", "lengthscale", "variance", "whitened"])
def test_what_is_frozen_changes_no_other_gradient(rule: Backend, learnt: str) -> None:
    posterior = posterior_of(2, 2, 4).float()
    numbers = numbers_of(posterior, 3, 4)
    whole = gradients(posterior, drawn(posterior, numbers, rule))
    for name, parameter in posterior.named_parameters():
        parameter.requires_grad_(learnt in name)
    theta, coefficients = drawn(posterior, numbers, rule)
    generator = torch.Generator().manual_seed(6)
    mixture = sum(
        (part * torch.randn(part.shape, generator=generator)).sum()
        for part in (theta, coefficients)
    )
    torch.as_tensor(mixture).backward()
    for name, parameter in posterior.named_parameters():
        if learnt in name:
            assert torch.equal(torch.as_tensor(parameter.grad), whole[name])
        else:
            assert parameter.grad is None


def test_a_force_whose_gram_matrix_fails_is_nan_and_no_other(rule: Backend) -> None:
    posterior = posterior_of(2, 1, 3, own_z=True, jitter=1e-19).float()  # lost in rounding
    with torch.no_grad():
        posterior.inducing_inputs[0] = torch.tensor([[0.0], [1.0], [1.0]])
        posterior.inducing_inputs[1] = torch.tensor([[0.0], [9.0], [18.0]])
    _, coefficients = drawn(posterior, numbers_of(posterior, 2, 4), rule)
    assert coefficients[:, 0].isnan().all()
    assert coefficients[:, 1].isfinite().all()


def test_gradients_are_not_differentiated_again(rule: Backend) -> None:
    posterior = posterior_of(1, 1, 3).float()
    _, coefficients = drawn(posterior, numbers_of(posterior, 2, 4), rule)
    z = posterior.inducing_inputs
    (once,) = torch.autograd.grad(coefficients.square().sum(), z, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        once.sum().backward()


@pytest.mark.parametrize("shared", [True, False])
def test_a_path_in_training_is_that_of_the_formulas(shared: bool) -> None:
    """All that is in a path, with variances beside 1, and its value at a point."""
    posterior = posterior_of(2, 1, 6, own_z=not shared, own_ell=not shared)
    layer = InducingLayer(
        1,
        1,
        greens_function=dlfm.FirstOrder(),
        inducing_inputs=posterior.inducing_inputs,
        num_forces=2,
        num_basis=4,
    )
    layer.posterior = posterior
    path = layer.draw_for_training(3, torch.Generator().manual_seed(5)).force
    numbers = numbers_of(posterior, 3, 4)
    theta, coefficients = plain(posterior, numbers)
    variance = posterior.prior.variance
    expected = {
        "theta": theta,
        "phase": numbers.phase,
        "amplitude": (variance / 2).sqrt()[:, None] * numbers.weights,
        "centers": posterior.centers(),
        "lengthscale": posterior.prior.lengthscale,
        "coefficients": coefficients,
    }
    for name, value in expected.items():
        error = (getattr(path, name) - value).abs().max()
        assert error <= 1e-9 * value.abs().max(), name
    assert ((numbers.phase >= 0) & (numbers.phase < 2 * math.pi)).all()
    assert path(torch.zeros(1, 1, dtype=f64)).shape == (3, 1, 2)


def test_numbers_are_of_their_distributions() -> None:
    """Means and variances within 5 standard errors, and no two parts are the same numbers."""
    numbers = random_numbers(
        50, 100, torch.zeros(2, 80), 3, SMOOTH, torch.Generator().manual_seed(0)
    )
    phase, *normals = numbers
    uniform = (phase / (2 * math.pi) - 0.5) * math.sqrt(12)
    for part, fourth in ((uniform, 1.8), *((normal, 3.0) for normal in normals)):
        count = part.numel()
        assert part.mean().abs() <= 5 / math.sqrt(count)
        assert (part.square().mean() - 1).abs() <= 5 * math.sqrt((fourth - 1) / count)
    assert len({part.data_ptr() for part in numbers}) == len(numbers)
    together = torch.cat([normal.flatten() for normal in normals])
    assert len(together.unique()) > 0.99 * len(together)
