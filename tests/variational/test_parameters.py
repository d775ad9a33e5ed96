"""Quantities: value = start · e^raw, or low · (high/low)^sigmoid(raw); copies in other units."""

import math

import pytest
import torch

from deeplfm.errors import InputError
from deeplfm.variational.parameters import Quantity

f64 = torch.float64


def moved(raw: float, bounds: tuple[float, float] | None = None) -> Quantity:
    quantity = Quantity("decay", 0.3, bounds=bounds)
    assert quantity.raw is not None
    with torch.no_grad():
        quantity.raw.fill_(raw)
    return quantity


@pytest.mark.parametrize("raw", [-2.0, 0.0, 0.7])
def test_the_value_is_its_formula(raw: float) -> None:
    """Relative steps: a raw value of 0.7 is twice the start; bounds are met in the logarithm."""
    assert moved(raw)().item() == pytest.approx(0.3 * math.exp(raw), rel=1e-12)
    share = 1 / (1 + math.exp(-raw))
    expected = math.exp((1 - share) * math.log(0.1) + share * math.log(5.0))
    assert moved(raw, (0.1, 5.0))().item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bounds", [None, (0.1, 5.0)])
def test_the_start_is_kept_and_any_value_can_be_set(bounds: tuple[float, float] | None) -> None:
    quantity = Quantity("decay", 0.3, bounds=bounds)
    assert quantity().item() == pytest.approx(0.3, rel=1e-14)
    quantity.set(torch.tensor(2.0, dtype=f64))
    assert quantity().item() == pytest.approx(2.0, rel=1e-12)
    with pytest.raises(InputError, match="must keep the sign of its quantity"):
        quantity.set(torch.tensor(-1.0 if bounds is None else 6.0, dtype=f64))
    assert quantity().item() == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("bounds", [None, (0.1, 5.0)])
def test_copies_keep_what_was_learnt(bounds: tuple[float, float] | None) -> None:
    quantity = moved(0.7, bounds)
    value = quantity().item()
    tiled = quantity.tiled(2, 3)
    torch.testing.assert_close(tiled(), torch.full((2, 3), value, dtype=f64))
    factor = torch.tensor([1.0, 60.0, 1e-3], dtype=f64)
    scaled = quantity.scaled(factor)
    torch.testing.assert_close(scaled(), value * factor)
    assert quantity().item() == value


def test_bounds_are_in_the_units_of_the_copy() -> None:
    """As far as raw values go, a copy in other units comes to its own bounds."""
    factor = torch.tensor([1.0, 60.0], dtype=f64)
    for raw, bound in ((-60.0, 0.1), (60.0, 5.0)):
        scaled = moved(0.0, (0.1, 5.0)).scaled(factor)
        assert scaled.raw is not None
        with torch.no_grad():
            scaled.raw.fill_(raw)
        torch.testing.assert_close(scaled(), bound * factor)


def test_a_fixed_quantity_has_nothing_to_learn() -> None:
    fixed = Quantity("decay", 0.3, learn=False)
    assert not list(fixed.parameters())
    assert not list(fixed.tiled(2).parameters())
    assert fixed.scaled(torch.tensor([2.0], dtype=f64))().item() == pytest.approx(0.6)
    with pytest.raises(InputError, match="must be learnable to be set"):
        fixed.set(torch.tensor(1.0, dtype=f64))
