"""R² over what was observed, by its definition; weights and several outputs."""

import numpy as np
import pytest

from deeplfm.errors import InputError
from deeplfm.regressor.conventions import r2_of_observed


def by_hand(y: list[float], mean: list[float], weight: list[float]) -> float:
    total = sum(weight)
    center = sum(w * v for w, v in zip(weight, y, strict=True)) / total
    left = sum(w * (v - m) ** 2 for w, v, m in zip(weight, y, mean, strict=True))
    return 1 - left / sum(w * (v - center) ** 2 for w, v in zip(weight, y, strict=True))


def test_r2_is_its_definition_averaged_over_outputs() -> None:
    y = np.array([[1.0, 10.0], [2.0, np.nan], [4.0, 30.0], [np.nan, 25.0]])
    mean = np.array([[1.5, 12.0], [2.0, 99.0], [3.0, 29.0], [77.0, 20.0]])
    weight = np.array([1.0, 2.0, 3.0, 4.0])
    first = by_hand([1, 2, 4], [1.5, 2, 3], [1, 1, 1])
    second = by_hand([10, 30, 25], [12, 29, 20], [1, 1, 1])
    assert first != pytest.approx(second, abs=0.01)
    assert r2_of_observed(y, mean) == pytest.approx((first + second) / 2)
    first = by_hand([1, 2, 4], [1.5, 2, 3], [1, 2, 3])
    second = by_hand([10, 30, 25], [12, 29, 20], [1, 3, 4])
    assert r2_of_observed(y, mean, weight) == pytest.approx((first + second) / 2)
    assert r2_of_observed(y[:3, 0], mean[:3, 0]) == pytest.approx(
        by_hand([1, 2, 4], [1.5, 2, 3], [1] * 3)
    )
    with pytest.raises(InputError, match="got only NaN"):
        r2_of_observed(y * [1.0, np.nan], mean)
