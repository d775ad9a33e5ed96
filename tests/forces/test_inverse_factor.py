"""The inverse factor of a Gram matrix against the triangular solves it stands for."""

import pytest
import torch
from torch import Tensor

from deeplfm.forces import InducingPosterior, SquaredExponential
from deeplfm.forces.inverse_factor import inverse_gram_factor
from deeplfm.forces.prior import squared_exponential

JITTER = torch.tensor(1e-4, dtype=torch.float64)


def by_solves(z: Tensor, ell: Tensor) -> Tensor:
    count = z.shape[-2]
    identity = torch.eye(count, dtype=torch.float64)
    gram = squared_exponential(z, z, ell, torch.ones(len(ell), dtype=torch.float64))
    factor = torch.linalg.cholesky(gram + JITTER * identity)
    inverse: Tensor = torch.linalg.solve_triangular(factor, identity.expand_as(gram), upper=False)
    return inverse


@pytest.mark.parametrize(("sets", "forces", "count"), [(1, 3, 20), (2, 2, 7), (1, 1, 1)])
def test_values_and_gradients(sets: int, forces: int, count: int) -> None:
    generator = torch.Generator().manual_seed(1)
    z = torch.randn(sets, count, 2, generator=generator, dtype=torch.float64).requires_grad_()
    ell = 0.5 + torch.rand(forces, 2, generator=generator, dtype=torch.float64)
    ell.requires_grad_()
    found, wanted = inverse_gram_factor(z, ell, JITTER), by_solves(z, ell)
    along = torch.randn(wanted.shape, generator=generator, dtype=torch.float64)
    pairs = [(found, wanted)]
    gradients = [torch.autograd.grad(part, (z, ell), along) for part in (found, wanted)]
    pairs += list(zip(*gradients, strict=True))
    for one, other in pairs:  # condition numbers are up to 1e5: 1e-16 of rounding is 1e-11
        assert (one - other).abs().max() <= 1e-9 * other.abs().max()


def test_derivatives_of_both_orders() -> None:
    generator = torch.Generator().manual_seed(2)
    z = torch.randn(1, 3, 2, generator=generator, dtype=torch.float64).requires_grad_()
    ell = (1 + torch.rand(2, 2, generator=generator, dtype=torch.float64)).requires_grad_()
    function = lambda z, ell: inverse_gram_factor(z, ell, JITTER)  # noqa: E731
    assert torch.autograd.gradcheck(function, (z, ell))
    assert torch.autograd.gradgradcheck(function, (z, ell))


def test_failure_is_nan() -> None:
    z = torch.zeros(1, 3, 1, dtype=torch.float64)
    z[0, :, 0] = torch.tensor([0.0, 1.0, 1.0])
    assert inverse_gram_factor(z, torch.ones(1, 1, dtype=torch.float64), -JITTER).isnan().all()


@pytest.mark.parametrize("shared", [True, False])
def test_a_draw_in_training_is_that_of_the_solves(shared: bool) -> None:
    """The coefficients, with other variances than 1 and forces that may have one Gram matrix."""
    variance = torch.tensor([0.3, 2.0], dtype=torch.float64)
    prior = SquaredExponential(0.7, variance, num_forces=2, num_inputs=1, shared_lengthscale=shared)
    z = torch.linspace(0, 2, 6, dtype=torch.float64)[:, None]
    posterior = InducingPosterior(prior, z, jitter=1e-4)
    path = posterior.draw(3, 4, torch.Generator().manual_seed(3), in_training=True)
    factor, epsilon = posterior.gram_factor()
    generator = torch.Generator().manual_seed(3)
    waves = prior.draw(3, 4, generator, shared_basis=True)
    whitened = posterior.whitened.draw(3, generator)
    eta = torch.randn(whitened.shape, generator=generator, dtype=torch.float64)
    known = waves.waves_at(posterior.centers()) + epsilon.sqrt()[:, None] * eta
    residual = torch.linalg.solve_triangular(factor, known[..., None], upper=False)
    difference = whitened[..., None] - residual
    expected = torch.linalg.solve_triangular(factor.mT, difference, upper=True)[..., 0]
    expected = variance[:, None] * expected
    assert (path.coefficients - expected).abs().max() <= 1e-9 * expected.abs().max()
