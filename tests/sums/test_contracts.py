"""What every sum promises: arguments are checked before a candidate reads memory."""

import ctypes
import inspect
from typing import Any

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

import deeplfm as dlfm
from deeplfm.errors import InputError
from deeplfm.layers import FourierLayer, InducingLayer
from deeplfm.sums import SUMS, Backend, Sum, bump_sum, plane_wave_sum, sum_of
from deeplfm.sums.c import jobs, library

BACKENDS: list[Backend] = ["auto", "plain", "torch", "c"]


@pytest.mark.parametrize("each", SUMS, ids=lambda each: each.__name__)
def test_every_tensor_of_a_sum_has_a_shape_that_is_checked(each: Sum[Any, Any]) -> None:
    tensors = {name for _, name, dims, _ in each.contract.arguments if dims is not None}
    for name, parameter in inspect.signature(each.plain).parameters.items():
        if "Tensor" in str(parameter.annotation):
            assert name in tensors, name
    assert each.candidates
    assert each.__doc__


@sum_of
def dot(
    x: Float[Tensor, "#S N"], y: Float[Tensor, "S N"], more: Float[Tensor, " N"] | None = None
) -> Float[Tensor, " S"]:
    """The product of two rows."""
    return (x * y).sum(-1) if more is None else (x * y * more).sum(-1)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (torch.ones(2, 3), torch.ones(4, 3), "must have 1 or S = 4"),
        (torch.ones(3), torch.ones(4, 3), r"x of dot must be \[#S, N\]; got \[3\]"),
        (torch.ones(1, 2), torch.ones(4, 3), r"y of dot must be \[S = 4, N = 2\]; got \[4, 3\]"),
        (torch.ones(1, 3).double(), torch.ones(4, 3), "one type on one device"),
        (torch.ones(1, 3).bfloat16(), torch.ones(4, 3), "one type on one device"),
    ],
)
def test_wrong_arguments_are_refused_with_a_sentence(x: Tensor, y: Tensor, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        dot(x, y)


@pytest.mark.usefixtures("without_shape_checks")
def test_an_optional_argument_is_checked_where_it_is_given() -> None:
    x, y = torch.ones(1, 3), torch.ones(2, 3)
    assert dot(x, y, more=torch.full((3,), 2.0)).tolist() == [6.0, 6.0]
    with pytest.raises(InputError, match="more of dot"):
        dot(x, y, more=torch.ones(4))


def test_the_first_candidate_that_fits_and_gains_is_taken() -> None:
    taken: list[str] = []

    def candidate(name: str, total: Tensor | None) -> Any:
        def compute(*_: Tensor) -> Tensor | None:
            taken.append(name)
            return total

        return compute

    x, y = torch.ones(1, 3), torch.ones(2, 3)
    added = [
        dot.add("triton", candidate("on another device", y[:, 0])),
        dot.add("torch", candidate("does not fit", y[:, 0]), fits=lambda *_: False),
        dot.add("torch", candidate("gains nothing", None)),
        dot.add("torch", candidate("taken", 7 * y[:, 0])),
    ]
    try:
        assert dot(x, y).tolist() == [7.0, 7.0]
        assert taken == ["gains nothing", "taken"]
        assert dot.by("plain", x, y).tolist() == [3.0, 3.0]
        assert len(taken) == 2
    finally:
        for one in added:
            dot.remove(one)
    assert dot(x, y).tolist() == [3.0, 3.0]


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fourier_draw_asked_with_other_samples_or_inputs(backend: Backend) -> None:
    """With the kernels of C this would have read and written beyond its tensors."""
    layer = FourierLayer(1, 2, greens_function=dlfm.FirstOrder()).float()
    path = layer.draw(3, torch.Generator().manual_seed(0), backend)
    for x in (torch.rand(8, 2000, 1), torch.rand(3, 2000, 2)):
        with pytest.raises(InputError, match="fourier_sum must"):
            path(x)
    with pytest.raises(InputError, match="fourier_sum must"):
        path(torch.rand(3, 2000, 1), torch.rand(2000, 1))  # an input too many
    assert path(torch.rand(3, 20, 1)).shape == (3, 20, 2)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_inducing_draw_asked_with_other_samples_or_inputs(backend: Backend) -> None:
    z = torch.linspace(0, 1, 5)[:, None]
    layer = InducingLayer(1, 2, greens_function=dlfm.FirstOrder(), inducing_inputs=z).float()
    path = layer.draw_for_training(3, torch.Generator().manual_seed(0), backend)
    for x in (torch.rand(8, 50, 1), torch.rand(3, 50, 2)):
        with pytest.raises(InputError, match="force_response_sum must"):
            path(x)
    assert path(torch.rand(3, 20, 1)).shape == (3, 20, 2)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_an_ode_of_another_type_is_refused(kind: torch.dtype) -> None:
    """A decay in float64 beside weights in float32 would be read as float32."""
    x, z, ell, c = (
        torch.rand(2, 9, 1),
        torch.rand(1, 3, 1),
        torch.ones(1, 1),
        torch.ones(2, 1, 1, 3),
    )
    dynamics = dlfm.FirstOrder(0.5).tiled(1, 1).to(kind)
    with pytest.raises(InputError, match="a parameter of the ODE of"):
        bump_sum(dynamics, x, z, ell, c, "infinite")
    right = bump_sum(dynamics.float(), x, z, ell, c, "infinite")
    torch.testing.assert_close(
        right, bump_sum.by("plain", dynamics.float(), x, z, ell, c, "infinite")
    )


@pytest.mark.skipif(not library.is_built(), reason="no compiled kernels here")
def test_a_library_of_other_sources_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A structure that one language has changed and the other has not is noticed at load."""

    class Longer(ctypes.Structure):
        _fields_ = (("more", ctypes.c_void_p),)

    monkeypatch.setitem(jobs.JOBS, "planes", Longer)
    library._library.cache_clear()
    try:
        assert not library.is_built()
        assert "of other sources" in caplog.text
        x, omega, w = torch.rand(2, 5, 1), torch.rand(1, 3, 1), torch.rand(2, 3, 1)
        torch.testing.assert_close(
            plane_wave_sum(x, omega, w, w), plane_wave_sum.by("plain", x, omega, w, w)
        )
    finally:
        monkeypatch.undo()
        library._library.cache_clear()
    assert library.is_built()
