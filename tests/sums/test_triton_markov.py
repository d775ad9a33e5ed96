"""The Triton forms of the Markov sums against the plain ones; on a CPU they are interpreted."""

import pytest
import torch
from torch import Tensor

from deeplfm.sums import markov_evidence, markov_smooth
from kernels_as_written import DEVICE, missing_for_kernels
from markov_series import LEARNT, learning, random_series, some_readout
from reference.markov import Series

if missing_for_kernels():
    pytest.skip(missing_for_kernels(), allow_module_level=True)

from deeplfm.sums.triton import markov as kernels

# Conditions of these covariances are below 1e4; rounding is 1e-16 of each of some hundred steps.
CLOSE = 1e-9


def there(of: Series) -> list[Tensor]:
    return [part.detach().to(DEVICE) for part in of]


def assert_close(found: Tensor, wanted: Tensor, what: str, tolerance: float = CLOSE) -> None:
    assert found.shape == wanted.shape, what
    if not wanted.numel():
        return
    size = max(float(wanted.detach().abs().max()), 1e-6)
    assert float((found.cpu() - wanted).detach().abs().max()) <= tolerance * size, what


# Series, rows, outputs, columns, oscillators, states of the dense block; and distinct steps.
SHAPES = [
    ((2, 9, 3, 2, 5, 3), 4),
    ((1, 20, 1, 1, 9, 0), 20),
    ((3, 5, 2, 3, 0, 2), 1),
    ((1, 1, 2, 2, 1, 1), 1),
]
Shape = tuple[tuple[int, ...], int]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_values_and_gradients(shape: Shape, missing: float) -> None:
    sizes, steps = shape
    of = random_series(*sizes, steps=steps, missing=missing, seed=1)
    leaves = learning(of)
    wanted = markov_evidence.by("plain", *leaves)
    ours = [part.requires_grad_(k < 8) for k, part in enumerate(there(of))]
    found = kernels.markov_evidence(*ours)
    weight = torch.randn(wanted[1].shape, generator=torch.Generator().manual_seed(1)).double()

    def slopes(pair: tuple[Tensor, Tensor], by: list[Tensor]) -> tuple[Tensor, ...]:
        total = 0.7 * pair[0].sum() + (pair[1] * weight.to(pair[1].device)).sum()
        if not total.requires_grad:  # nothing was observed
            return tuple(map(torch.zeros_like, by))
        return torch.autograd.grad(total, by, allow_unused=True, materialize_grads=True)

    assert_close(found[0], wanted[0], "log det")
    assert_close(found[1], wanted[1], "gram")
    pairs = zip(slopes(found, ours[:8]), slopes(wanted, list(leaves[:8])), strict=True)
    for name, (ours_by, plain_by) in zip(LEARNT, pairs, strict=True):
        assert_close(ours_by, plain_by, f"gradient by {name}")


@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("windows", [1, 3])
def test_smoother_whole_and_by_windows(shape: Shape, windows: int) -> None:
    """Windows agree with one pass: they are repeated until what they begin with is right."""
    sizes, steps = shape
    of = random_series(*sizes, steps=steps, missing=0.3, seed=2)
    readout = some_readout(of)
    wanted = markov_smooth.by("plain", *of, readout)
    found = kernels.markov_smooth(*there(of), readout.to(DEVICE), windows=windows)
    for name, part, truth in zip(
        ("mean", "variance", "weights", "gram"), found, wanted, strict=True
    ):
        assert_close(part, truth, name)
    sums = kernels.markov_evidence(*there(of), windows=windows)
    for name, part, truth in zip(("log det", "gram"), sums, markov_evidence(*of), strict=True):
        assert_close(part, truth, name)


def test_more_columns_than_registers_hold() -> None:
    of = random_series(series=1, rows=4, outputs=2, columns=40, oscillators=2, dense=1, steps=2)
    for part, truth in zip(kernels.markov_evidence(*there(of)), markov_evidence(*of), strict=True):
        assert_close(part, truth, "sums")
    readout = some_readout(of)
    found = kernels.markov_smooth(*there(of), readout.to(DEVICE))
    for part, truth in zip(found, markov_smooth.by("plain", *of, readout), strict=True):
        assert_close(part, truth, "smoothed")


def test_windows_that_memory_cannot_hold_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of windows are passed back over one after the other, the last one first."""
    of = random_series(series=2, rows=12, outputs=2, columns=2, oscillators=2, dense=1, steps=3)
    readout = some_readout(of)
    wanted = markov_smooth.by("plain", *of, readout)
    monkeypatch.setattr("deeplfm.sums.triton.markov_job._NUMBERS", 1)
    found = kernels.markov_smooth(*there(of), readout.to(DEVICE), windows=3)
    for part, truth in zip(found, wanted, strict=True):
        assert_close(part, truth, "smoothed")


def test_sums_of_steps_without_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    of = random_series(series=2, rows=7, outputs=1, columns=1, oscillators=1, dense=1, steps=5)
    slopes = []
    for most in (0, 2**20):
        monkeypatch.setattr(kernels, "_TABLE", most)
        ours = [part.requires_grad_(k < 8) for k, part in enumerate(there(of))]
        log_det, gram = kernels.markov_evidence(*ours)
        slopes.append(torch.autograd.grad(log_det.sum() + gram.sum(), ours[:4]))
    for one, other in zip(*slopes, strict=True):
        assert_close(one, other.cpu(), "gradient", 1e-12)
