"""The compiled kernels of the CPU: their build, and values and all gradients as written."""

import math
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import torch
from torch import Tensor

from deeplfm.responses.bumps import bump_response
from deeplfm.sums import fastest
from deeplfm.sums.c import build, library
from deeplfm.sums.c.bumps import first_order_bump_sums
from deeplfm.sums.c.force_response import first_order_response
from deeplfm.sums.c.planes import plane_sum
from kernels_as_written import EPS, compare, uniform
from written_sums import bumps_as_written, wave_weights_as_written

FLOAT = torch.float32
needs_kernels = pytest.mark.skipif(not library.is_built(), reason="no compiled kernels here")


def test_kernels_are_built_where_there_is_a_compiler() -> None:
    """Or every other test here would be skipped for no reason."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    try:
        distribution("deeplfm")
    except PackageNotFoundError:
        pytest.skip("the package was not installed here")
    assert library.is_built()


def test_a_build_writes_whole_libraries_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build.build(tmp_path) == []
    monkeypatch.setenv("CC", "false")
    assert build.build(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    assert "were not built" in capsys.readouterr().err
    monkeypatch.delenv("CC")
    if shutil.which("cc") is not None:
        made = build.build(tmp_path)
        assert made
        assert sorted(made) == sorted(tmp_path.iterdir())


def test_the_fastest_family_of_a_device() -> None:
    cpu = torch.device("cpu")
    assert fastest("auto", cpu) == fastest("c", cpu) == ("c" if library.is_built() else "torch")
    assert fastest("torch", cpu) == fastest("triton", cpu) == "torch"
    assert fastest("plain", cpu) == "plain"


def bump_arguments(
    shared: bool, samples: int, points: int, outputs: int, inputs: int, forces: int, centers: int
) -> list[Tensor]:
    return [
        uniform(1 if shared else samples, points, inputs, low=-2, high=2),
        uniform(forces, centers, inputs, low=-2, high=2),
        uniform(forces, inputs, low=0.3, high=1.5),
        uniform(outputs, inputs, low=0.2, high=4),
        uniform(samples, outputs, forces, centers),
    ]


BUMPS = [
    (False, 2, 33, 2, 2, 2, 1),
    (False, 9, 3, 2, 5, 1, 2),  # more samples than tasks that points are divided into
    (False, 2, 1, 1, 1, 1, 1),
    (False, 1, 600, 1, 1, 1, 3),  # more points than a block has
    (True, 3, 300, 2, 2, 2, 4),
]


# A product of P responses, each good to some ten roundings, summed over centers; gradients of
# parameters are sums over points too, whose roundings are those of the largest term.
@needs_kernels
@pytest.mark.parametrize("sizes", BUMPS)
def test_bump_sums(sizes: tuple[bool, int, int, int, int, int, int]) -> None:
    _, _, _, _, inputs, forces, centers = sizes
    roundings = 32 * inputs * forces * centers + 64
    compare(
        first_order_bump_sums,
        bumps_as_written,
        bump_arguments(*sizes),
        FLOAT,
        roundings,
        device="cpu",
    )


@needs_kernels
@pytest.mark.parametrize("scale", [0.1, 30.0])
@pytest.mark.parametrize("decay", [1e-3, 1.0, 1e3])
def test_extreme_bumps(scale: float, decay: float) -> None:
    """Decays, lags far before and after a bump, and points far away: finite, and right."""
    x = torch.tensor([-1e3, -31.0, -0.2, 0.0, 0.13, 0.5, 29.0, 1e3], dtype=torch.float64)
    arguments = [
        torch.stack((x, -x))[..., None],
        torch.tensor([[[0.0], [-1e3], [1e3]]], dtype=torch.float64),
        torch.full((1, 1), scale, dtype=torch.float64),
        torch.full((1, 1), decay, dtype=torch.float64),
        torch.ones(2, 1, 1, 3, dtype=torch.float64),
    ]
    # An exponent that still counts is at most about 60, and off by as many roundings.
    compare(first_order_bump_sums, bumps_as_written, arguments, FLOAT, 600, device="cpu")


@needs_kernels
def test_each_response_keeps_its_digits() -> None:
    """Single responses, relative to themselves: each exponent loses as many digits as it is."""
    lag = torch.linspace(-6, 12, 96)
    ell, zero = torch.full((1, 1), 0.9), torch.zeros(1, 1, 1)
    for rate in (torch.full((1, 1), 0.8), torch.full((1, 1), 80.0)):
        wanted = bump_response(lag.double(), 0.0, ell.double(), rate.double()).flatten()
        found = first_order_bump_sums(lag[None, :, None], zero, ell, rate, torch.ones(1, 1, 1, 1))
        t, kappa = lag.double() / 0.9, float(rate) * 0.9
        after = torch.where(t > kappa, (kappa * (kappa / 2 - t)).abs(), 0.0)
        # Below the smallest normal number, e^{-87}, an exponential is that number.
        allowed = EPS[FLOAT] * (32 + 6 * (t**2 / 2 + after)) * wanted + 3 * math.exp(-87)
        assert bool(((found[0, :, 0].double() - wanted).abs() <= allowed).all())


def planes_as_written(x: Tensor, omega: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    phase = x @ omega.mT
    return torch.cos(phase) @ cosine + torch.sin(phase) @ sine


@needs_kernels
@pytest.mark.parametrize(
    ("shared", "samples", "points", "columns", "inputs", "waves"),
    [
        (False, 2, 41, 2, 2, 5),
        (False, 9, 5, 1, 5, 3),
        (True, 3, 300, 30, 1, 20),
        (True, 1, 1, 1, 1, 1),
    ],
)
def test_plane_sums(
    shared: bool, samples: int, points: int, columns: int, inputs: int, waves: int
) -> None:
    arguments = [
        uniform(1 if shared else samples, points, inputs, low=-2, high=2),
        uniform(waves, inputs, low=-4, high=4),
        uniform(samples, waves, columns, seed=1),
        uniform(samples, waves, columns, seed=2),
    ]
    # A sum of products of weights up to 1 and waves whose phases are up to 8 an input.
    roundings = 16 * (waves + samples * columns + inputs)
    compare(plane_sum, planes_as_written, arguments, FLOAT, roundings, device="cpu")


@needs_kernels
def test_long_phases_keep_their_rounding() -> None:
    x, omega = uniform(1, 128, 1, low=-100, high=100).float(), torch.full((1, 1), 97.3)
    one = torch.ones(1, 1, 1)
    phase = x.double() * omega.double()
    for cosine, sine, wanted in ((0 * one, one, phase.sin()), (one, 0 * one, phase.cos())):
        error = (plane_sum(x, omega, cosine, sine).double() - wanted).abs()
        assert bool((error <= EPS[FLOAT] * (3 * phase.abs() + 16)).all())


def answer(x: Tensor, theta: Tensor, *others: Tensor) -> Tensor:
    return first_order_response(x, theta[None], phases(theta)[None], *others)


def answer_as_written(
    x: Tensor, theta: Tensor, amplitude: Tensor, centers: Tensor, scale: Tensor,
    coefficients: Tensor, decay: Tensor, sensitivities: Tensor,
) -> Tensor:  # fmt: skip
    turned = wave_weights_as_written(theta, phases(theta).double(), decay, sensitivities, amplitude)
    waves = planes_as_written(x, theta.flatten(0, 1), turned.real, -turned.imag)
    weights = sensitivities[..., None] * coefficients[:, None]  # S D Q M
    return waves + bumps_as_written(x, centers, scale, decay, weights)


def phases(theta: Tensor) -> Tensor:
    """The same in any type."""
    return uniform(*theta.shape[:2], low=0, high=6, seed=4).float()


# As for bumps, and each weight of a wave is a product of P quotients.
@needs_kernels
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("forces", "sets", "inputs", "outputs", "samples"),
    [(2, 2, 2, 3, 4), (3, 1, 1, 2, 9), (1, 1, 3, 1, 2)],
)
def test_answers_of_drawn_forces(
    forces: int, sets: int, inputs: int, outputs: int, samples: int, shared: bool
) -> None:
    arguments = [
        uniform(1 if shared else samples, 70, inputs, low=-2, high=2),
        uniform(forces, 5, inputs, low=-3, high=3),
        uniform(samples, forces, 5, seed=2),
        uniform(sets, 4, inputs, low=-2, high=2),
        uniform(sets, inputs, low=0.3, high=1.5),
        uniform(samples, forces, 4, seed=3),
        uniform(outputs, inputs, low=0.3, high=3),
        uniform(outputs, forces, seed=1),
    ]
    roundings = 32 * inputs * forces * 9 + 64
    compare(answer, answer_as_written, arguments, FLOAT, roundings, terms=1.0, device="cpu")


@needs_kernels
def test_the_same_bits_with_any_number_of_threads() -> None:
    arguments = [part.float().requires_grad_() for part in bump_arguments(True, 3, 999, 2, 2, 1, 9)]
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            total = first_order_bump_sums(*arguments)
            found.append([total, *torch.autograd.grad(total.square().sum(), arguments)])
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@needs_kernels
def test_nan_stays_nan() -> None:
    """Training finds a point that is no number by the loss."""
    x, *others = (part.float() for part in bump_arguments(False, 2, 20, 1, 1, 1, 3))
    x[0, 3] = torch.nan
    assert first_order_bump_sums(x, *others).isnan().nonzero().tolist() == [[0, 3, 0]]
    weights = [torch.ones(2, 1, 1)] * 2
    assert plane_sum(x, torch.ones(1, 1), *weights).isnan().nonzero().tolist() == [[0, 3, 0]]
