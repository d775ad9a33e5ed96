"""Likelihoods against SciPy; masks; sampling."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

import deeplfm as dlfm
from deeplfm.data import dataset, fit_scaling
from deeplfm.likelihoods import AdditiveNoise, Gaussian, Likelihood, StudentT
from deeplfm.sums.torch.gaussian_density import gaussian_log_density
from own_likelihoods import Geometric, LogNormal

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


def test_a_likelihood_must_be_built_for_its_data() -> None:
    """Functions of a model are standardised; counts are not, and read mean + std · f."""
    f, y = torch.randn(3, 5, 2, dtype=torch.float64), torch.arange(10.0).double().reshape(5, 2)
    observed = torch.ones(5, 2, dtype=torch.bool)
    with pytest.raises(dlfm.InputError, match=r"must know the units of its functions.*built_for"):
        Geometric().tiled(2).log_prob(y, f, observed)
    data = dataset(np.arange(5.0), y.numpy())
    template = Geometric()
    scaling = fit_scaling(data, template)
    built = template.built_for(scaling)
    mean, std = (y + 0.5).log().mean(0), (y + 0.5).log().std(0, correction=0)
    exact = template.log_density(y, mean + std * f)
    torch.testing.assert_close(built.log_prob(y, f, observed), exact)
    y[2, 1], observed[2, 1] = torch.nan, False
    exact[:, 2, 1] = 0
    torch.testing.assert_close(built.log_prob(y, f, observed), exact)
    saved = {*built.state_dict(), *Gaussian().built_for(scaling).state_dict()}
    assert not any(name.startswith("function") for name in saved)  # the scaling has them


def test_gaps_do_not_leave_the_support() -> None:
    """At the 0 of the real line the gradient of a log-normal density would not be finite."""
    y, f = torch.tensor([[2.0], [torch.nan]]), torch.zeros(1, 2, 1, requires_grad=True)
    likelihood = LogNormal().tiled(1)
    likelihood.function_mean, likelihood.function_std = torch.zeros(1), torch.ones(1)
    likelihood.log_prob(y, f, torch.tensor([[True], [False]])).sum().backward()
    assert f.grad is not None
    assert f.grad.flatten().tolist() == pytest.approx([4 * np.log(2), 0.0])


def test_targets_are_checked_by_their_support() -> None:
    y = np.array([[0.0, np.nan], [4.0, 1.0]])
    Geometric().check_targets(y, ("a", "b"))
    Gaussian().check_targets(-y, ("a", "b"))
    with pytest.raises(dlfm.InputError, match=r"a Geometric .* whole numbers of 0 or more; got -4"):
        Geometric().check_targets(-y, ("a", "b"))
    with pytest.raises(dlfm.InputError, match=r"numbers of 0 or more; got -4 in 'a', and 1 more"):
        LogNormal().check_targets(-y, ("a", "b"))


def test_what_was_learnt_is_in_the_units_of_users() -> None:
    data = dataset(np.arange(4.0), np.array([[0.0, 1], [20, 5], [0, 1], [20, 5]]))
    scaling = fit_scaling(data)  # standard deviations 10 and 2
    for likelihood, name in (
        (Gaussian(0.04), "standard deviation"),
        (StudentT(0.04, degrees=5.0), "scale (Student-t, 5 degrees)"),
    ):
        (found,) = likelihood.tiled(2).learnt(scaling).items()
        assert found[0] == name
        np.testing.assert_allclose(found[1], [2.0, 0.4])
    assert Geometric().learnt(scaling) == {}


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


@pytest.mark.parametrize("kind", [Gaussian, StudentT])
def test_noise_starts_where_the_data_say_within_its_bounds(kind: type[Gaussian | StudentT]) -> None:
    """A hundredth of the way, in the logarithm, stays free on either side of a bound."""
    wanted = torch.tensor([1e-9, 0.02, 50.0], dtype=torch.float64)
    free = kind(0.1).tiled(3)
    free.start_noise(wanted)
    torch.testing.assert_close(free.noise_variance, wanted)
    bounded = kind(0.1, bounds=(1e-3, 1.0)).tiled(3)
    bounded.start_noise(wanted)
    inside = 1000**0.01
    expected = torch.tensor([1e-3 * inside, 0.02, 1 / inside], dtype=torch.float64)
    torch.testing.assert_close(bounded.noise_variance, expected)
    fixed = kind(0.1, learn=False).tiled(3)
    fixed.start_noise(wanted)
    assert fixed.noise_variance.tolist() == [0.1] * 3
    assert not list(fixed.parameters())


@pytest.mark.parametrize(
    "likelihood",
    [
        Gaussian(0.3, learn=False),
        Gaussian(0.3, bounds=(0.1, 2.0)),
        StudentT(0.3, degrees=7.0, bounds=(0.1, 2.0)),
        Gaussian(VARIANCE),
    ],
)
def test_arguments_make_it_again(likelihood: AdditiveNoise) -> None:
    again = type(likelihood)(**likelihood.arguments())
    torch.testing.assert_close(again.noise_variance, likelihood.noise_variance)
    assert (again.noise.raw is None) == (likelihood.noise.raw is None)
    bounds = [one.noise.bounds for one in (likelihood, again)]
    assert [None if one is None else one.tolist() for one in bounds] == [
        None if bounds[0] is None else [0.1, 2.0]
    ] * 2
    assert getattr(again, "degrees", None) == getattr(likelihood, "degrees", None)
    copy = likelihood.tiled(2)
    assert getattr(copy, "degrees", None) == getattr(likelihood, "degrees", None)
