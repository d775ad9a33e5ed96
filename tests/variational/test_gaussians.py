"""Variational Gaussians: their gradients, of both orders, and what they cost at the prior."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from deeplfm.errors import InputError
from deeplfm.variational.gaussians import DiagonalGaussian, FullGaussian, VariationalGaussian

Kind = type[DiagonalGaussian] | type[FullGaussian]
KINDS = pytest.mark.parametrize(
    ("kind", "shape"),
    [(DiagonalGaussian, (2, 3)), (DiagonalGaussian, (1,)), (FullGaussian, (2, 3)),
     (FullGaussian, (4,)), (FullGaussian, (1, 1))],
)  # fmt: skip


class Asked(torch.nn.Module):
    def __init__(
        self, q: VariationalGaussian, what: Callable[[VariationalGaussian], Tensor]
    ) -> None:
        super().__init__()
        self.q, self.what = q, what

    def forward(self) -> Tensor:
        return self.what(self.q)


def moved(kind: Kind, shape: tuple[int, ...]) -> VariationalGaussian:
    """Set somewhere, and learnt from there."""
    generator = torch.Generator().manual_seed(1)
    q = kind(shape, like=torch.zeros(1, dtype=torch.float64))
    factor = torch.rand(*shape, shape[-1], generator=generator, dtype=torch.float64).tril() + (
        0.5 * torch.eye(shape[-1], dtype=torch.float64)
    )
    if kind is DiagonalGaussian:
        factor = torch.diag_embed(factor.diagonal(dim1=-2, dim2=-1))
    prior = 0.1 + torch.rand(shape[-1], generator=generator, dtype=torch.float64)
    q.set(torch.randn(shape, generator=generator, dtype=torch.float64), factor, prior)
    with torch.no_grad():
        for parameter in q.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).double())
    return q


@KINDS
def test_gradients_of_draws_and_divergence(kind: Kind, shape: tuple[int, ...]) -> None:
    q = moved(kind, shape)
    names = [name for name, _ in q.named_parameters()]
    values = tuple(value.detach().clone().requires_grad_() for value in q.parameters())
    questions: list[Callable[[VariationalGaussian], Tensor]] = [
        lambda q: q.draw(2, torch.Generator().manual_seed(2)),
        lambda q: q.kl(),
    ]
    for question in questions:
        module = Asked(q, question)

        def asked(*values: Tensor, module: Asked = module) -> Tensor:
            named = {f"q.{name}": value for name, value in zip(names, values, strict=True)}
            answer: Tensor = functional_call(module, named, ())
            return answer

        assert torch.autograd.gradcheck(asked, values)
        assert torch.autograd.gradgradcheck(asked, values)


@KINDS
def test_draws_and_divergence_are_those_of_the_mean_and_factor(
    kind: Kind, shape: tuple[int, ...]
) -> None:
    q = moved(kind, shape)
    noise = torch.randn(3, *shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    expected = q.mean + (q.factor @ noise[..., None])[..., 0]
    torch.testing.assert_close(q.draw(3, torch.Generator().manual_seed(2)), expected)
    exact = torch.distributions.MultivariateNormal(q.mean, scale_tril=q.factor)
    zeros = torch.zeros_like(q.mean)
    spread = torch.diag_embed(zeros + q.prior_std)
    prior = torch.distributions.MultivariateNormal(zeros, scale_tril=spread)
    torch.testing.assert_close(q.kl(), torch.distributions.kl_divergence(exact, prior))


@KINDS
def test_set_is_what_was_set_whatever_the_prior(kind: Kind, shape: tuple[int, ...]) -> None:
    q = kind(shape, like=torch.zeros(1, dtype=torch.float64))
    mean = torch.full(shape, 2.0, dtype=torch.float64)
    factor = torch.diag_embed(torch.full(shape, 0.5, dtype=torch.float64))
    prior = torch.linspace(0.01, 2, shape[-1], dtype=torch.float64)
    for given in (None, prior, None):  # what is not given again stays
        q.set(mean, factor, given)
        torch.testing.assert_close(q.mean, mean)
        torch.testing.assert_close(q.factor, factor)
    torch.testing.assert_close(q.prior_std, prior.expand(shape))
    with pytest.raises(InputError, match="above 0"):
        q.set(mean, factor, -prior)
    if shape[-1] > 1:  # neither Gaussian takes this factor, and what was refused changes nothing
        with pytest.raises(InputError, match="factor must be"):
            q.set(mean, factor + factor.sum(-1, keepdim=True), 2 * prior)
    torch.testing.assert_close((q.prior_std, q.mean), (prior.expand(shape), mean))
    own = prior * torch.linspace(1, 2, math.prod(shape[:-1])).reshape(*shape[:-1], 1)
    q.set(mean, factor, own)
    torch.testing.assert_close((q.prior_std, q.mean, q.factor), (own, mean, factor))


@KINDS
def test_the_prior_costs_nothing(kind: Kind, shape: tuple[int, ...]) -> None:
    q = kind(shape, like=torch.zeros(1))
    assert q.kl().tolist() == torch.zeros(shape[:-1]).tolist()
    (q.kl().sum()).backward()
    assert all(bool((parameter.grad == 0).all()) for parameter in q.parameters())  # type: ignore[union-attr]


@KINDS
def test_widened_steps_move_the_mean_as_far_as_from_the_prior(
    kind: Kind, shape: tuple[int, ...]
) -> None:
    """The mean square over all signs of a step of 1 in every entry is 1; the start stays."""
    q = moved(kind, shape)
    q.set(q.mean.detach(), q.factor.detach())
    center, factor = q.mean.detach().clone(), q.factor.detach().clone()
    q.widen_steps()
    torch.testing.assert_close((q.mean, q.factor), (center, factor))
    squares = []
    for signs in itertools.product((-1.0, 1.0), repeat=q.shift.numel()):
        with torch.no_grad():
            q.shift.copy_(torch.tensor(signs).reshape(shape))
        squares.append(((q.mean.detach() - center) / q.prior_std).square().mean())
    torch.testing.assert_close(torch.stack(squares).mean(), torch.ones_like(squares[0]))


def test_the_closest_q_to_a_precision() -> None:
    """KL(q ‖ p) is least for the inverse of the precision, or of its diagonal or blocks."""
    generator = torch.Generator().manual_seed(3)
    root = torch.randn(2, 3, 3, generator=generator, dtype=torch.float64)
    precision = root @ root.mT + torch.eye(3, dtype=torch.float64)
    like = precision[0, 0, 0]
    full = FullGaussian((2, 3), like=like).closest_factor(precision)
    torch.testing.assert_close(full @ full.mT, torch.linalg.inv(precision))
    assert not full.triu(1).any()
    diagonal = DiagonalGaussian((2, 3), like=like).closest_factor(precision)
    expected = 1 / precision.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(diagonal @ diagonal.mT, torch.diag_embed(expected))
    whole = torch.randn(6, 6, generator=generator, dtype=torch.float64)
    whole = (whole @ whole.T + torch.eye(6, dtype=torch.float64))[None]
    blocks = FullGaussian((2, 3), like=like).closest_factor(whole)
    expected = torch.stack([torch.linalg.inv(whole[0, :3, :3]), torch.linalg.inv(whole[0, 3:, 3:])])
    torch.testing.assert_close(blocks @ blocks.mT, expected)
