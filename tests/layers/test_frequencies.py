"""The divergence of q(Ω) and its gradients, against torch's own."""

import math

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


@pytest.mark.parametrize("treatment", ["fixed_noise", "resampled", "prior_draws"])
def test_frequencies_start_as_draws_of_the_prior(treatment: Treatment) -> None:
    """ω ~ N(0, 1/ℓ²): fixed ones are one draw, resampled ones a draw of its own per sample."""
    ell = Quantity("lengthscale", torch.tensor([[[0.02, 5.0]]], dtype=torch.float64))
    made = Frequencies(ell, 3000, treatment, torch.Generator().manual_seed(0))
    drawn = made.draw(2, torch.Generator().manual_seed(1)).detach()
    assert len(drawn) == (2 if treatment == "resampled" else 1)
    for p, scale in enumerate((0.02, 5.0)):
        values = (drawn[..., p] * scale).flatten()
        assert abs(float(values.mean())) < 5 / math.sqrt(len(values))
        assert abs(float(values.square().mean()) - 1) < 5 * math.sqrt(2 / len(values))
    if treatment == "resampled":
        both = (drawn[0] * drawn[1]).flatten(0, 2) * torch.tensor([0.02, 5.0]).square()
        assert (both.mean(0).abs() < 5 / math.sqrt(3000)).all()
        assert (made.center() == 0).all()  # the mean of q
    else:
        torch.testing.assert_close(made.center(), drawn[0])
        again = made.draw(1, torch.Generator().manual_seed(2)).detach()
        assert torch.equal(again, drawn)
    assert abs(float(made.kl().detach())) < 1e-9


def test_fixed_frequencies_follow_the_lengthscale_only_where_they_are_its_draws() -> None:
    for treatment, follows in (("prior_draws", True), ("fixed_noise", False)):
        ell = Quantity("lengthscale", torch.ones(1, 1, 1, dtype=torch.float64))
        made = Frequencies(ell, 5, treatment, torch.Generator().manual_seed(0))  # type: ignore[arg-type]
        before = made.draw(1).detach()
        ell.set(torch.full((1, 1, 1), 4.0, dtype=torch.float64))
        torch.testing.assert_close(made.draw(1).detach(), before / 4 if follows else before)
