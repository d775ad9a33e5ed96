"""A faster form of a sum, from outside the package: one function and one line."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm.sums import gaussian_density

CALLS: list[int] = []


def by_one_product(f: Tensor, y: Tensor, observed: Tensor, variance: Tensor, rows: int) -> Tensor:
    """The same sum, as a product of residuals with themselves."""
    CALLS.append(len(f))
    residual = torch.where(observed, y - f, 0.0).flatten(0, 1)
    squares = (residual * residual).sum(0) / len(f)
    count = observed.sum(0)
    logs = torch.log(2 * torch.pi * variance)
    return -0.5 * rows / len(y) * (squares / variance + count * logs).sum()


def fits(f: Tensor, *_: Any) -> bool:
    return f.dtype == torch.float64


def test_a_candidate_of_ones_own() -> None:
    t = np.linspace(0, 1, 60)
    y = np.sin(9 * t)
    y[20:25] = np.nan
    training = dlfm.Training(steps=6, num_samples=3)

    def fitted(**options: Any) -> dlfm.DeepLFMRegressor:
        model = dlfm.DeepLFMRegressor(
            dlfm.FourierDLFM(num_features=8),
            training,
            progress=False,
            dtype="float64",
            check=False,  # its shorter fit would take steps too
        )
        return model.set_params(**options).fit(t, y)

    before = fitted().history_["loss"]
    own = gaussian_density.add("torch", by_one_product, fits=fits, first=True)
    try:
        after = fitted().history_["loss"]
        assert CALLS == [3] * 6  # every step of the training took it
        fitted(training__backend="plain")
        fitted(dtype="float32")
        assert len(CALLS) == 6  # it was not allowed, or did not fit
    finally:
        gaussian_density.remove(own)
    assert after == pytest.approx(before, rel=1e-9)


def test_its_values_and_gradients_are_those_of_the_contract() -> None:
    generator = torch.Generator().manual_seed(0)
    f = torch.randn(3, 7, 2, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.randn(7, 2, generator=generator, dtype=torch.float64)
    variance = torch.tensor([0.3, 2.0], dtype=torch.float64, requires_grad=True)
    observed = torch.rand(7, 2, generator=generator) > 0.3
    ours, plain = (
        form(f, y, observed, variance, 20) for form in (by_one_product, gaussian_density.plain)
    )
    torch.testing.assert_close(ours, plain)
    for one, other in zip(
        torch.autograd.grad(ours, (f, variance)),
        torch.autograd.grad(plain, (f, variance)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
