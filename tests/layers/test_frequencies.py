"""The divergence of q(Ω) and its gradients, against torch's own."""

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from deeplfm.layers.frequencies import Frequencies, Treatment
from deeplfm.variational.parameters import Quantity


@pytest.mark.parametrize("treatment", ["fixed_noise", "resampled"])
def test_divergence_and_gradients(treatment: Treatment) -> None:
    generator = torch.Generator().manual_seed(0)
    start = 0.5 + torch.rand(2, 2, 3, generator=generator, dtype=torch.float64)
    frequencies = Frequencies(Quantity("lengthscale", start), 4, treatment, generator)
    learnt = [*frequencies.own_parameters(), *frequencies.lengthscale.parameters()]
    with torch.no_grad():
        for parameter in learnt:
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator).double())
    assert frequencies.log_std is not None
    ell = frequencies.lengthscale()[:, :, None, :]
    q = Normal(frequencies.mean, frequencies.log_std.exp())
    exact = kl_divergence(q, Normal(torch.zeros_like(q.mean), (1 / ell).expand_as(q.mean))).sum()
    found = frequencies.kl()
    torch.testing.assert_close(found, exact)
    of_found, of_exact = (torch.autograd.grad(3 * one, learnt) for one in (found, exact))
    torch.testing.assert_close(of_found, of_exact)
