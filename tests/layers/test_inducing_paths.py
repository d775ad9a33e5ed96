"""Drawn functions of the inducing layer: one function, plain against fast, gradients, extremes."""

import copy
import logging
from dataclasses import replace
from importlib import import_module

import pytest
import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm.forces import ForcePath
from deeplfm.layers import InducingLayer
from deeplfm.responses.paths import path_response
from deeplfm.shapes import Memory
from deeplfm.sums.torch.bump_lookup import bumps_by_lookup
from inducing_layers import any_q, f64, layer_of, matrix, points


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize("name", ["first", "second", "none"])
@pytest.mark.parametrize(("separate", "shared"), [(False, False), (True, False), (False, True)])
def test_a_path_is_the_response_to_its_force(
    name: str, memory: Memory, separate: bool, shared: bool
) -> None:
    """Folded waves and chunked bumps against the plain form, one set of inputs or one per draw."""
    layer = layer_of(name, 2, memory=memory, separate=separate, shared_lengthscale=shared)
    any_q(layer)
    with torch.no_grad():
        path = layer.draw(3, torch.Generator().manual_seed(6))
        for x in (points(2, 5).abs()[None], points(2, 15).abs().reshape(3, 5, 2)):
            plain = path_response(layer.greens_function, path.force, x, memory)
            plain = torch.einsum("sndq,dq->snd", plain, layer.sensitivities)
            torch.testing.assert_close(path(x), plain, rtol=1e-9, atol=1e-9)
        together = layer.draw_for_training(3, torch.Generator().manual_seed(6))
        plain = path_response(layer.greens_function, together.force, points(2, 5).abs(), memory)
        plain = torch.einsum("sndq,dq->snd", plain, layer.sensitivities)
        torch.testing.assert_close(together(points(2, 5).abs()[None]), plain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("dtype", "tolerance"), [(f64, 1e-9), (torch.float32, 1e-3)])
def test_a_draw_is_one_function(dtype: torch.dtype, tolerance: float) -> None:
    layer = layer_of("first", 3, num_inducing=60).to(dtype)
    x = points(3, 50).to(dtype)
    with torch.no_grad():
        path = layer.draw(4, torch.Generator().manual_seed(0))
        whole = path(x[None])
        parts = torch.cat([path(part[None]) for part in x.split(7)], dim=1)
        repeated = path(x.expand(4, -1, -1))
    for other in (parts, repeated):
        torch.testing.assert_close(other, whole, rtol=0, atol=tolerance)
    assert whole.isfinite().all()


def test_chunks_of_bumps_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = layer_of("second", 2), points(2, 9).expand(2, -1, -1)

    def result() -> list[Tensor]:
        layer.zero_grad()
        path = layer.draw(2, torch.Generator().manual_seed(0))
        value = path(x)
        value.square().sum().backward()
        gradients = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
        return [value.detach(), *gradients]

    whole = result()
    monkeypatch.setattr(import_module("deeplfm.sums.bump_sum"), "_BUMPS", 200)
    for one, other in zip(result(), whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["first", "second"])
def test_gradients_are_those_of_differences(name: str) -> None:
    layer = layer_of(name, 2, num_inducing=3, num_basis=3, jitter=1e-2)
    any_q(layer)
    x = points(2, 3)
    names = [n for n, p in layer.named_parameters() if p.requires_grad]

    def values(*parameters: Tensor) -> Tensor:
        replaced = {f"layer.{n}": p for n, p in zip(names, parameters, strict=True)}
        drawn: Tensor = torch.func.functional_call(_Draw(layer), replaced, (x,))
        return drawn

    starts = [dict(layer.named_parameters())[n].detach().clone().requires_grad_() for n in names]
    assert torch.autograd.gradcheck(values, starts, atol=1e-6)


class _Draw(torch.nn.Module):
    """A draw as a function of the layer's parameters."""

    def __init__(self, layer: InducingLayer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        path = self.layer.draw_for_training(2, torch.Generator().manual_seed(0))
        result: Tensor = path(x[None])
        return result


def test_every_parameter_receives_a_gradient() -> None:
    layer = layer_of("second", 2)
    any_q(layer)
    path = layer.draw_for_training(3, torch.Generator().manual_seed(0))
    (path(points(2, 6).expand(3, -1, -1)).square().sum() + layer.kl()).backward()
    for name, parameter in layer.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name
    groups = layer.parameter_groups()
    grouped = [id(p) for group in groups.values() for p in group]
    assert sorted(grouped) == sorted(id(p) for p in layer.parameters())


def test_the_mean_function_is_added() -> None:
    layer = layer_of("first", 2)
    weights = matrix([1.0, 0.0], [0.5, 2.0])
    with_mean = InducingLayer(
        2,
        2,
        greens_function=layer.greens_function,
        inducing_inputs=layer.posterior.inducing_inputs,
        num_forces=2,
        num_basis=24,
        lengthscale=layer.posterior.prior.lengthscale,
        shared_lengthscale=False,
        mean_weights=weights,
    )
    with_mean.load_state_dict(layer.state_dict() | {"mean_weights": weights})
    x = points(2, 5)
    with torch.no_grad():
        plain, other = (
            one.draw(2, torch.Generator().manual_seed(1))(x[None]) for one in (layer, with_mean)
        )
        torch.testing.assert_close(other - plain, (x @ weights).expand(2, -1, -1))
        torch.testing.assert_close(with_mean.moments(x).mean - layer.moments(x).mean, x @ weights)


@pytest.mark.parametrize("kind", ["duplicates", "close"])
def test_ill_conditioned_inducing_points_in_float32(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A jitter too small for a Gram matrix is raised, and that is logged."""
    z = torch.linspace(0, 1, 50, dtype=f64)[:, None]
    if kind == "duplicates":
        z = z[:10].repeat(5, 1)
    layer = InducingLayer(
        1,
        1,
        greens_function=dlfm.FirstOrder(2.0),
        inducing_inputs=z,
        lengthscale=2.0,  # spacing ℓ/100
        jitter=1e-19,
    ).float()
    x = torch.linspace(-1, 2, 20)[None, :, None]
    with torch.no_grad(), caplog.at_level(logging.WARNING, logger="deeplfm"):
        drawn = layer.draw(3, torch.Generator().manual_seed(0))(x)
    assert drawn.isfinite().all()
    assert "jitter raised" in caplog.text
    assert not layer.draw_for_training(3)(x).isfinite().all()  # the loop finds it, and says so
    while layer.recover():
        pass
    assert layer.draw_for_training(3)(x).isfinite().all()


def test_far_inputs_and_fast_decays_are_finite_in_float32() -> None:
    x = torch.tensor([-1e3, -1.0, 0.0, 1.0, 1e3])[None, :, None]
    for memory in ("infinite", "zero"):
        for decay in (1e-2, 1e3):
            layer = InducingLayer(
                1,
                1,
                greens_function=dlfm.FirstOrder(decay),
                inducing_inputs=torch.linspace(0, 1, 5)[:, None],
                lengthscale=0.1,
                memory=memory,
            ).float()
            values = layer.draw_for_training(2)(x)
            values.sum().backward()
            assert values.isfinite().all()
            for parameter in layer.parameters():
                assert parameter.grad is None or parameter.grad.isfinite().all()


@pytest.mark.parametrize("name", ["first", "second", "none"])
@pytest.mark.parametrize("per_draw", [False, True])
def test_tables_are_as_good_as_float32(name: str, per_draw: bool) -> None:
    """Values and gradients by interpolation, against those of each bump in float64.

    Four nodes h = l/10 apart are off by 3/128 h^4 of the fourth derivative (3/l^4, up to 6 with
    poles), their slope by h^3/12 of it. Coefficients of 1, lest they multiply the rounding.
    """
    num_inputs = 3 if per_draw else 1
    layer = layer_of(name, num_inputs, num_inducing=30)
    x = points(num_inputs, 900).reshape(3, 300, num_inputs) if per_draw else points(1, 300)[None]
    any_q(layer)

    def result(dtype: torch.dtype) -> list[Tensor]:
        one = copy.deepcopy(layer).to(dtype)
        force = {name: value.to(dtype) for name, value in drawn.items()}
        force |= {
            "centers": one.posterior.centers(),
            "lengthscale": one.posterior.prior.lengthscale,
        }
        at = x.clone().to(dtype).detach().requires_grad_()
        path = one.draw(3)
        path = replace(path, force=ForcePath(**force), approximate=dtype == torch.float32)
        value = path(at)
        (value * torch.arange(value.numel()).reshape(value.shape).to(dtype).cos()).sum().backward()
        gradients = [p.grad for _, p in sorted(one.named_parameters()) if p.grad is not None]
        (by_x,) = [at.grad] if at.grad is not None else []
        return [value.detach(), by_x, *gradients]

    reference = layer.draw(3, torch.Generator().manual_seed(0)).force
    drawn = {
        name: getattr(reference, name) for name in ("theta", "phase", "amplitude", "coefficients")
    }
    drawn = {name: value.detach() for name, value in drawn.items()}
    drawn["coefficients"] = torch.randn(
        3, 2, 30, generator=torch.Generator().manual_seed(1), dtype=f64
    )
    value, by_x, *others = zip(result(f64), result(torch.float32), strict=True)
    for (exact, table), tolerance in [
        (value, 5e-5),
        (by_x, 2e-3),
        *((one, 5e-5) for one in others),
    ]:
        size = float(exact.abs().max())
        torch.testing.assert_close(table.double(), exact, rtol=0, atol=tolerance * size)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
@pytest.mark.parametrize(("dtype", "tolerance"), [(f64, 1e-9), (torch.float32, 1e-3)])
def test_a_draw_is_the_same_on_another_device(dtype: torch.dtype, tolerance: float) -> None:
    layer = layer_of("second", 2).to(dtype)
    any_q(layer)
    x = points(2, 300).to(dtype)[None]
    with torch.no_grad():
        path = layer.draw(3, torch.Generator().manual_seed(0))
        moved: dict[str, Any] = {
            name: value.cuda() if isinstance(value, Tensor) else value
            for name, value in vars(path.force).items()
        }
        twin = copy.deepcopy(layer).to(path.force.theta.dtype).cuda().draw(3)
        there = replace(twin, force=ForcePath(**moved), approximate=path.approximate)
        torch.testing.assert_close(there(x.cuda()).cpu(), path(x), rtol=0, atol=tolerance)


def test_far_centers_and_fast_poles_make_no_giant_lookups() -> None:
    """One point and twenty centers are twenty bumps: fewer than the lags of any such lookup."""
    x = torch.zeros(1, 1)
    near, far = torch.linspace(0, 1, 20)[None, :, None], torch.zeros(1, 20, 1)
    far[0, 0] = -1e4
    slow = dlfm.FirstOrder(5.0).tiled(1, 1).to(torch.float32).fixed()
    fast = dlfm.SecondOrder(1.0, 1e5).tiled(1, 1).to(torch.float32).fixed()
    ell = torch.full((1, 1), 0.05)
    assert bumps_by_lookup(slow, x, far, ell) is None
    assert bumps_by_lookup(fast, x, near, ell) is None
    assert bumps_by_lookup(slow, near[0].repeat(50, 1), near, ell) is not None
    nowhere = torch.full_like(x, torch.nan).expand(500, -1)
    assert bumps_by_lookup(slow, nowhere, near, ell) is None
