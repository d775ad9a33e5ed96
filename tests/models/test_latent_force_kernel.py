"""The exact covariance of a shallow model: double quadrature, symmetry, limits, draws."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call

import deeplfm as dlfm
from deeplfm.forces import ForcePrior
from deeplfm.greens_functions import GreensFunction
from deeplfm.responses import path_response
from deeplfm.shapes import Memory
from reference.covariance import lfm_covariance, lfm_cross_covariance

SYSTEMS: list[GreensFunction] = [
    dlfm.FirstOrder(2.0),
    dlfm.SecondOrder(1.0, 6.0),
    dlfm.SecondOrder(1.5, 1.5),
    dlfm.SecondOrder(1.5 + 1e-9, 1.5),
    dlfm.SecondOrder(3.0, 2.4, normalised=True),
    dlfm.LinearODE([8.16, 9.04, 3.9]),  # poles 1.5 and 1.2 ± 2j
    dlfm.NoDynamics(),
]
ELL = 0.7
HORIZON = 30.0  # e^{-30} of the slowest pole is below what is compared
X = torch.tensor([[0.3], [1.1], [2.7]], dtype=torch.float64)


def callable_of(g: GreensFunction) -> Callable[[Any], Any]:
    def call(t: Any) -> Any:
        with torch.no_grad():
            return g(torch.as_tensor(t)).numpy()

    return call


def by_quadrature(
    g: GreensFunction, g2: GreensFunction, x: float, x2: float, memory: Memory
) -> float:
    if g.order == 0 and g2.order == 0:
        return float(np.exp(-((x - x2) ** 2) / (2 * ELL**2)))
    if g2.order == 0:
        return float(lfm_cross_covariance(x, x2, callable_of(g), ELL, memory, horizon=HORIZON))
    if g.order == 0:
        return by_quadrature(g2, g, x2, x, memory)
    both = callable_of(g), callable_of(g2)
    return float(lfm_covariance(x, x2, *both, ELL, memory, horizon=HORIZON))


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize("first", range(len(SYSTEMS)))
def test_double_quadrature(first: int, memory: Memory) -> None:
    kernel = dlfm.LatentForceKernel(SYSTEMS, lengthscale=ELL, memory=memory)
    got = kernel(X).detach()
    spread = torch.einsum("ddnn->dn", got).sqrt()
    for second in range(first, len(SYSTEMS)):
        for n, m in ((0, 0), (0, 2), (2, 1)):
            exact = by_quadrature(SYSTEMS[first], SYSTEMS[second], X[n].item(), X[m].item(), memory)
            error = abs(got[first, second, n, m].item() - exact)
            assert error <= 1e-10 * spread[first, n] * spread[second, m]


@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_covariance_with_the_force(memory: Memory) -> None:
    kernel = dlfm.LatentForceKernel(
        SYSTEMS, lengthscale=ELL, sensitivities=[[2.0]] * len(SYSTEMS), memory=memory
    )
    z = torch.tensor([[-0.4], [0.9]], dtype=torch.float64)
    got = kernel.force_covariance(X, z).detach()
    assert got.shape == (len(SYSTEMS), 1, 3, 2)
    for d, g in enumerate(SYSTEMS):
        for n in range(3):
            for m in range(2):
                exact = 2 * by_quadrature(g, dlfm.NoDynamics(), X[n].item(), z[m].item(), memory)
                assert got[d, 0, n, m].item() == pytest.approx(exact, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_symmetric_and_positive_semidefinite(memory: Memory) -> None:
    sensitivities = torch.randn(7, 2, dtype=torch.float64, generator=torch.manual_seed(0))
    kernel = dlfm.LatentForceKernel(
        SYSTEMS,
        lengthscale=torch.tensor([[0.7], [0.3]], dtype=torch.float64),
        sensitivities=sensitivities,
        memory=memory,
    )
    x = torch.linspace(0.05 if memory == "zero" else -2, 4, 6, dtype=torch.float64)[:, None]
    matrix = kernel.matrix(x).detach()
    assert (matrix - matrix.mT).abs().max() <= 1e-14 * matrix.abs().max()
    # Rounding moves an eigenvalue by at most the size of the matrix times that of an entry's error.
    assert torch.linalg.eigvalsh(matrix).min() >= -1e-12 * len(matrix) * matrix.abs().max()
    other = kernel(x, x[:4]).detach()
    torch.testing.assert_close(other, kernel(x).detach()[..., :4])


@pytest.mark.parametrize("inputs", [1, 3])
def test_fast_normalised_filter_tends_to_the_eq_kernel(inputs: int) -> None:
    ell = torch.tensor([[0.5, 0.8, 1.3]], dtype=torch.float64)[:, :inputs]
    x = torch.randn(6, inputs, dtype=torch.float64, generator=torch.manual_seed(1))
    exact = torch.exp(-(((x[:, None] - x) / ell) ** 2).sum(-1) / 2)
    errors = []
    for decay in (1e2, 1e3, 1e5):
        kernel = dlfm.LatentForceKernel(dlfm.FirstOrder(decay, normalised=True), lengthscale=ell)
        errors.append((kernel(x)[0, 0] - exact).abs().max().item())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] <= 1e-8  # the bias of a symmetric covariance is of order 1/(γℓ)²


def test_two_inputs_multiply() -> None:
    decay = torch.tensor([[2.0, 0.5], [1.0, 3.0]], dtype=torch.float64)
    ell = torch.tensor([[0.7, 1.2]], dtype=torch.float64)
    x = torch.rand(4, 2, dtype=torch.float64)
    both = dlfm.LatentForceKernel(dlfm.FirstOrder(decay), lengthscale=ell)(x)
    single = [
        dlfm.LatentForceKernel(dlfm.FirstOrder(decay[:, p : p + 1]), lengthscale=ell[:, p : p + 1])(
            x[:, p : p + 1]
        )
        for p in range(2)
    ]
    torch.testing.assert_close(both, single[0] * single[1])


@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_draws_through_the_ode_have_this_covariance(memory: Memory) -> None:
    g = dlfm.SecondOrder(0.8, 3.0)
    x = torch.tensor([[0.4], [1.0], [2.5]], dtype=torch.float64)
    with torch.no_grad():
        path = ForcePrior(ELL).draw(20_000, 8, torch.Generator().manual_seed(3))
        values = path_response(g, path, x, memory)[:, :, 0, 0]
        exact = dlfm.LatentForceKernel(g, lengthscale=ELL, memory=memory)(x)[0, 0]
    products = values[:, :, None] * values[:, None, :]
    allowed = 5 * (products.var(0) / len(values)).sqrt()
    assert ((products.mean(0) - exact).abs() <= allowed).all()


@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_outputs_forces_and_inputs_against_a_naive_loop(memory: Memory) -> None:
    generator = torch.Generator().manual_seed(5)
    decay = 0.5 + torch.rand(3, 2, dtype=torch.float64, generator=generator)
    ell = 0.5 + torch.rand(2, 2, dtype=torch.float64, generator=generator)
    a = torch.randn(3, 2, dtype=torch.float64, generator=generator)
    x = 2 * torch.rand(3, 2, dtype=torch.float64, generator=generator)
    x2 = 2 * torch.rand(4, 2, dtype=torch.float64, generator=generator)
    kernel = dlfm.LatentForceKernel(
        dlfm.FirstOrder(decay), lengthscale=ell, sensitivities=a, memory=memory
    )
    got, with_forces = kernel(x, x2).detach(), kernel.force_covariance(x, x2).detach()
    for d in range(3):
        for e in range(3):
            exact = torch.zeros(3, 4, dtype=torch.float64)
            for q in range(2):
                product = a[d, q] * a[e, q] * torch.ones(3, 4, dtype=torch.float64)
                force = a[d, q] * torch.ones(3, 4, dtype=torch.float64)
                for p in range(2):
                    both = dlfm.LatentForceKernel(
                        [dlfm.FirstOrder(decay[i, p].item()) for i in (d, e)],
                        lengthscale=ell[q, p].item(),
                        memory=memory,
                    )
                    pair = x[:, p : p + 1], x2[:, p : p + 1]
                    product = product * both(*pair)[0, 1].detach()
                    force = force * both.force_covariance(*pair)[0, 0].detach()
                exact += product
                torch.testing.assert_close(with_forces[d, q], force)
            torch.testing.assert_close(got[d, e], exact)


SLOW: list[GreensFunction] = [
    dlfm.FirstOrder(1e-9),
    dlfm.FirstOrder(1e-3),
    dlfm.SecondOrder(1e-3, 1e-3),
    dlfm.SecondOrder(1e-2, 1e-2),
    dlfm.SecondOrder(0.05, 1.0),
    dlfm.SecondOrder(2.0, 2.0),
    dlfm.SecondOrder(5.0, 0.01),
    dlfm.LinearODE([1e-6, 3e-4, 3e-2]),
    dlfm.LinearODE([8.16, 9.04, 3.9]),
    dlfm.LinearODE([8.0, 12.0, 6.0]),
]


@pytest.mark.parametrize("x", [1e-4, 1e-2, 0.3, 3.0])
@pytest.mark.parametrize("g", SLOW, ids=range(len(SLOW)))
def test_zero_memory_where_little_is_left(g: GreensFunction, x: float) -> None:
    """Short times and slow poles: the variance keeps its digits, and float32 its own."""
    points = torch.tensor([[x], [0.7 * x]], dtype=torch.float64)
    kernel = dlfm.LatentForceKernel(g, lengthscale=ELL, memory="zero")
    got = kernel(points)[0, 0].detach()
    for n, m in ((0, 0), (0, 1), (1, 0)):
        times = points[n].item(), points[m].item()
        exact = by_quadrature(g, g, *times, "zero")
        assert got[n, m].item() == pytest.approx(exact, rel=1e-9)
    single = kernel.float()(points.float())[0, 0].double()
    torch.testing.assert_close(single, got, rtol=1e-4, atol=0)


def test_long_times_of_an_unstable_ode() -> None:
    """A double integrator of a short force: Var y(x) = ∫∫ (x-τ)(x-τ') k, nearly √(2π) ℓ x³/3."""
    kernel = dlfm.LatentForceKernel(dlfm.LinearODE([0.0, 0.0]), lengthscale=0.01, memory="zero")
    x = torch.tensor([[30.0], [21.0]], dtype=torch.float64)
    got = kernel(x)[0, 0].detach()
    reference = lfm_covariance(30.0, 30.0, lambda t: t, lambda t: t, 0.01, "zero")
    assert got[0, 0].item() == pytest.approx(float(reference), rel=1e-8)
    assert got[0, 1].item() == pytest.approx(got[1, 0].item(), rel=1e-10)


def test_learn_false_fixes_everything() -> None:
    kernel = dlfm.LatentForceKernel(dlfm.FirstOrder(), learn=False)
    assert not [p for p in kernel.parameters() if p.requires_grad]


def test_float32_parameters_and_numbers_mix() -> None:
    kernel = dlfm.LatentForceKernel(dlfm.FirstOrder(torch.tensor([[2.0]])), lengthscale=0.7)
    assert kernel(X.float()).dtype == torch.float32
    exact = dlfm.LatentForceKernel(dlfm.FirstOrder(2.0), lengthscale=0.7)(X)
    torch.testing.assert_close(kernel(X.float()).double(), exact, rtol=1e-6, atol=0)


def test_an_unstable_ode_with_zero_memory() -> None:
    for coefficients in ([4.0, 0.0], [0.0, 0.0], [-0.5]):
        g = dlfm.LinearODE(coefficients)
        got = dlfm.LatentForceKernel([g, dlfm.FirstOrder(1.0)], lengthscale=ELL, memory="zero")(X)
        for d, g2 in enumerate((g, dlfm.FirstOrder(1.0))):
            exact = by_quadrature(g, g2, 1.1, 2.7, "zero")
            assert got[0, d, 1, 2].item() == pytest.approx(exact, rel=1e-9)
            assert got[d, 0, 2, 1].item() == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize("second", [dlfm.SecondOrder(0.7, 2.0), dlfm.SecondOrder(2.0, 2.0)])
def test_gradcheck(second: GreensFunction, memory: Memory) -> None:
    kernel = dlfm.LatentForceKernel([dlfm.FirstOrder(1.5), second], lengthscale=ELL, memory=memory)
    names = [name for name, _ in kernel.named_parameters()]
    x = torch.tensor([[0.3], [1.2]], dtype=torch.float64, requires_grad=True)

    def call(x: Any, *values: Any) -> Any:
        return functional_call(kernel, dict(zip(names, values, strict=True)), (x, X[:1]))

    assert gradcheck(call, (x, *kernel.parameters()), atol=1e-6, fast_mode=True)


@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_gradcheck_of_several_inputs_and_forces(memory: Memory) -> None:
    decay = torch.tensor([[1.5, 0.7]], dtype=torch.float64)
    ell = torch.tensor([[0.7, 1.1], [0.5, 0.9]], dtype=torch.float64)
    kernel = dlfm.LatentForceKernel(
        dlfm.FirstOrder(decay), lengthscale=ell, sensitivities=[[1.0, -0.5]], memory=memory
    )
    names = [name for name, _ in kernel.named_parameters()]
    x = torch.tensor([[0.3, 0.8], [1.2, 0.4]], dtype=torch.float64, requires_grad=True)

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = kernel

        def forward(self, x: Any) -> Any:
            return self.kernel(x, x.detach()[:1] * 0 + 0.6), self.kernel.force_covariance(
                x, x.detach()[:1] * 0 + 0.5
            )

    def call(x: Any, *values: Any) -> Any:
        named = {f"kernel.{name}": value for name, value in zip(names, values, strict=True)}
        return functional_call(Both(), named, (x,))

    assert gradcheck(call, (x, *kernel.parameters()), atol=1e-6)


@pytest.mark.usefixtures("without_shape_checks")
def test_shapes_are_checked() -> None:
    with pytest.raises(dlfm.InputError, match=r"sensitivities must be \[2, Q\]"):
        dlfm.LatentForceKernel([dlfm.FirstOrder()] * 2, sensitivities=[[1.0]])
    with pytest.raises(dlfm.InputError, match=r"lengthscale must be a number or \[1, 1\]"):
        dlfm.LatentForceKernel(dlfm.FirstOrder(), lengthscale=torch.ones(2, 1).double())
    with pytest.raises(dlfm.InputError, match=r"x must be \[N, 1\]; got \(3,\)"):
        dlfm.LatentForceKernel(dlfm.FirstOrder())(X[:, 0])
    several: list[Any] = [[], [1.0, 2.0]]
    for systems in several:
        with pytest.raises(dlfm.InputError, match="must be one Green's function or a list"):
            dlfm.LatentForceKernel(systems)
    with pytest.raises(dlfm.InputError, match="x must be a tensor or a number; got ndarray"):
        dlfm.LatentForceKernel(dlfm.FirstOrder())(X.numpy())
    assert dlfm.LatentForceKernel(dlfm.FirstOrder())(X[:0]).shape == (1, 1, 0, 0)
