"""The plain form of sums of plane waves against the sums as they are written."""

from importlib import import_module

import pytest
import torch

from deeplfm.sums import plane_wave_sum


@pytest.mark.parametrize("chunk", [7, 60, 10**6])
@pytest.mark.parametrize(("samples", "points", "inputs", "columns"), [(3, 5, 2, 1), (4, 11, 1, 3)])
def test_values_and_gradients(
    monkeypatch: pytest.MonkeyPatch,
    chunk: int,
    samples: int,
    points: int,
    inputs: int,
    columns: int,
) -> None:
    """In chunks of any size; the sums themselves as the oracle."""
    module = import_module("deeplfm.sums.plane_wave_sum")
    monkeypatch.setattr(module, "_WAVES", {"cpu": chunk, "cuda": chunk})
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        numbers = torch.randn(shape, generator=generator, dtype=torch.float64)
        return numbers.requires_grad_()

    x, omega = normal(samples, points, inputs), normal(1, 6, inputs)
    cosine, sine = normal(samples, 6, columns), normal(samples, 6, columns)
    got = plane_wave_sum.by("plain", x, omega, cosine, sine)
    phase = x @ omega.mT
    expected = torch.cos(phase) @ cosine + torch.sin(phase) @ sine
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    along = torch.randn(got.shape, generator=generator, dtype=torch.float64)
    wanted = (x, omega, cosine, sine)
    pairs = zip(
        torch.autograd.grad(got, wanted, along),
        torch.autograd.grad(expected, wanted, along),
        strict=True,
    )
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-11)


def test_second_derivatives() -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 3, 2), (1, 4, 2), (2, 4, 1), (2, 4, 1))
    given = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    arguments = tuple(one.requires_grad_() for one in given)
    torch.autograd.gradcheck(plane_wave_sum.plain, arguments)
    torch.autograd.gradgradcheck(plane_wave_sum.plain, arguments)
