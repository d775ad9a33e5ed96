"""Likelihoods against SciPy; masks; sampling."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

import deeplfm as dlfm
from deeplfm.likelihoods import Gaussian, Likelihood, StudentT
from deeplfm.sums.torch.gaussian_density import gaussian_log_density

VARIANCE = torch.tensor([0.04, 2.0], dtype=torch.float64)
CASES = [
    (Gaussian(VARIANCE), scipy.stats.norm()),
    (StudentT(VARIANCE, degrees=3.5), scipy.stats.t(3.5)),
]


@pytest.mark.parametrize(("likelihood", "noise"), CASES, ids=["gaussian", "student"])
def test_density(likelihood: Likelihood, noise: Any) -> None:
    f, y = torch.randn(3, 5, 2, dtype=torch.float64), torch.randn(5, 2, dtype=torch.float64)
    observed = torch.ones(5, 2, dtype=torch.bool)
    observed[2, 1] = False
    y[2, 1] = torch.nan
    std = VARIANCE.sqrt().numpy()
    exact = noise.logpdf((y.numpy() - f.numpy()) / std) - np.log(std)
    exact[:, 2, 1] = 0
    np.testing.assert_allclose(likelihood.log_prob(y, f, observed).detach(), exact, rtol=1e-12)


@pytest.mark.parametrize(("likelihood", "noise"), CASES, ids=["gaussian", "student"])
def test_samples(likelihood: Likelihood, noise: Any) -> None:
    f = torch.zeros(20_000, 1, 2, dtype=torch.float64)
    y = likelihood.sample(f, torch.Generator().manual_seed(0)).detach().numpy()[:, 0]
    for d in range(2):
        result = scipy.stats.kstest(y[:, d] / VARIANCE[d].sqrt().item(), noise.cdf)
        assert result.pvalue > 1e-4


def test_templates_are_copied() -> None:
    for template in (Gaussian(0.1), StudentT(0.1, degrees=5.0)):
        copy = template.tiled(3)
        assert copy.noise_variance.tolist() == [0.1] * 3
        with torch.no_grad():
            for parameter in copy.parameters():
                parameter.add_(1.0)
        assert template.noise_variance.item() == 0.1
    with pytest.raises(dlfm.InputError, match="degrees must be above 2"):
        StudentT(degrees=1.0)


@pytest.mark.parametrize("size", [(3, 5, 2), (1, 1, 1)])
@pytest.mark.parametrize("missing", [0.0, 0.4, 1.0])
def test_expected_density_in_one_node(size: tuple[int, int, int], missing: float) -> None:
    """The sum of densities and its gradients; what was not observed is not read."""
    generator = torch.Generator().manual_seed(0)
    f, y, chance = (torch.randn(n, generator=generator).double() for n in (size, size[1:], size))
    observed = chance[0].abs() > 0.5 if 0 < missing < 1 else torch.full(size[1:], missing == 0)
    y[~observed] = torch.nan
    f[:, ~observed] = torch.inf
    f.requires_grad_()
    noise = VARIANCE[: size[2]].clone().requires_grad_()

    def found(f: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        return gaussian_log_density(f, y, observed, noise, 1.7)

    densities = torch.distributions.Normal(f.detach(), VARIANCE[: size[2]].sqrt()).log_prob
    exact = 1.7 * densities(y.nan_to_num())[:, observed].sum() / size[0]
    torch.testing.assert_close(found(f, noise), exact, check_dtype=True)
    by_f, by_noise = torch.autograd.grad(found(f, noise), (f, noise))
    assert not by_f[:, ~observed].any()
    if missing == 1:
        assert not by_noise.any()
    with torch.no_grad():
        f[:, ~observed] = 0.0  # a difference of infinite numbers is none
    assert torch.autograd.gradcheck(found, (f, noise))
