"""Sums that are brought to a device: only where a form of it fits, and gains."""

import pytest
import torch
from torch import Tensor

from deeplfm.sums import markov_evidence, markov_smooth, sum_of
from deeplfm.sums.markov_filter import enough_rows, fits_triton
from markov_series import random_series


def test_a_device_is_asked_where_it_gains() -> None:
    """Rows follow each other: with gradients many series are needed, without them many rows."""
    few = random_series(1, 20, 1, 1, 2, 0)
    assert not enough_rows(*few)
    long = [*few[:7], few.targets.expand(6000, -1, -1, -1), *few[8:]]
    assert enough_rows(*long)
    learning = [long[0].clone().requires_grad_(), *long[1:]]
    assert enough_rows(*learning)
    some = [learning[0], *few[1:]]
    assert not enough_rows(*some)
    with torch.no_grad():
        assert not enough_rows(*some)


@pytest.mark.parametrize(
    ("oscillators", "dense", "columns", "fits"),
    [(64, 16, 2, True), (65, 0, 1, False), (2, 17, 1, False), (1, 0, 33, False)],
)
def test_what_registers_hold(oscillators: int, dense: int, columns: int, fits: bool) -> None:
    of = random_series(1, 2, 1, columns, oscillators, dense)
    learning = [of.decay.clone().requires_grad_(), *of[1:]]
    assert fits_triton(*learning) == fits
    assert fits_triton(*of) == (fits or columns > 32)  # without gradients: some after the others


def test_what_gains_nothing_stays_where_it_is() -> None:
    of = random_series(1, 5, 1, 1, 2, 0)
    for device in ("cpu", "cuda"):  # too few rows for any device
        for one, other in zip(
            markov_evidence.on(device, "auto", *of), markov_evidence(*of), strict=True
        ):
            assert torch.equal(one, other)
        found = markov_smooth.on(device, "auto", *of, of.loadings)
        assert torch.equal(found[0], markov_smooth(*of, of.loadings)[0])


def test_a_sum_goes_to_a_device_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the meta device, which has no numbers: that the form for it was taken is what is seen."""

    def twice(x: Tensor) -> tuple[Tensor]:
        return (2 * x,)

    seen = list[str]()

    def there(x: Tensor) -> tuple[Tensor]:
        seen.append(x.device.type)
        return (torch.ones(3),)

    doubled = sum_of(twice)
    doubled.add("triton", there, worth=lambda x: len(x) > 2)
    monkeypatch.setattr("deeplfm.sums.candidate.has", lambda family, device: True)
    monkeypatch.setattr(doubled.contract, "check", lambda *_: (torch.float32, torch.device("meta")))
    (found,) = doubled.on("meta", "auto", torch.zeros(3))
    assert seen == ["meta"]
    assert found.device.type == "cpu"
