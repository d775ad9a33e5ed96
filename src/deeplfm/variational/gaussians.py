"""Variational Gaussians, measured against a prior N(0, diag(s²)), s = 1 unless it is set.

    w = s (μ + Cε);   KL(q ‖ prior) = ½ (|μ|² + |C|² - F - 2 log det C)
    μ = μ0 + u C0 a,  C = C0 B      (μ0, C0) as last `set`, a and B what is learnt

Both posteriors of the library are this: inducing values, weights of features. Steps of an optimiser
are in units of the spread of q as it was set, and so small (u; less beside the diagonal of B) that
many noisy ones at once do not undo a fit; or as large as the prior's (`widen_steps`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.randomness import normal
from deeplfm.shapes import check_finite, check_positive, check_shape
from deeplfm.variational.gaussian_formulas import (
    DiagonalDraw,
    DiagonalKL,
    FullDraw,
    FullKL,
    lower_factor,
    mean_of_full,
)

_UNIT = 0.3  # of a standard deviation, once q was set; 1 before
_BESIDE = 0.1  # the same for what is below the diagonal of B


class VariationalGaussian(nn.Module, ABC):
    """A batch of F-dimensional Gaussians, `shape` = [..., F], started at N(0, scale² I)."""

    center: Tensor
    frame: Tensor
    unit: Tensor
    prior_std: Tensor  # s [..., F]

    def __init__(self, shape: Sequence[int], *, scale: float, like: Tensor) -> None:
        super().__init__()
        zeros = like.detach().new_zeros(*shape)
        self.register_buffer("center", zeros.clone())
        self.register_buffer("unit", zeros.new_ones(()))
        self.register_buffer("prior_std", torch.ones_like(zeros))
        self.shift = nn.Parameter(zeros)
        self.log_diagonal = nn.Parameter(torch.full_like(zeros, scale).log().detach())

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """The mean of w: sμ [..., F]."""

    @property
    @abstractmethod
    def factor(self) -> Tensor:
        """The factor of the covariance of w: sC [..., F, F], lower triangular, diagonal > 0."""

    @abstractmethod
    def draw(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws of w, [S, ..., F]."""

    @abstractmethod
    def kl(self) -> Tensor:
        """KL(q ‖ prior) [...]; exactly 0 where q is the prior."""

    @abstractmethod
    def set(self, mean: Tensor, factor: Tensor, prior_std: Tensor | None = None) -> None:
        """Replace q by N(mean, factor factorᵀ), and measure steps from there.

        The prior stays as it is, unless standard deviations are given: one for each entry, or [F]
        for the whole batch.
        """

    @abstractmethod
    def closest_factor(self, precision: Tensor) -> Tensor:
        """The factor for `set` of the q of this family that is closest to that precision.

        `precision` is [..., F, F], or one matrix [1, BF, BF] for all entries of the batch at once;
        of that the blocks count.
        """

    def widen_steps(self) -> None:
        """Just after `set`: steps of μ as large as those from the prior, on average.

        For a q that is only a beginning: in units of its spread it would never get far.
        """
        with torch.no_grad():
            self.unit.copy_((self.shift.numel() / self.frame.square().sum()).sqrt())

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *others: Any) -> None:
        """Files from before a prior could be set have that of 1; others one for the whole batch."""
        name = f"{prefix}prior_std"
        known = state.get(name, torch.ones_like(self.prior_std))
        state[name] = known.expand_as(self.prior_std) if known.ndim == 1 else known
        super()._load_from_state_dict(state, prefix, *others)

    def _whitened(
        self, mean: Tensor, factor: Tensor, prior_std: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and factor, checked, in units of the prior; and its s."""
        _check(self.shift.shape, mean, factor)
        std = self.prior_std if prior_std is None else prior_std
        if std.shape == self.prior_std.shape[-1:]:
            std = std.expand_as(self.prior_std)
        check_shape("prior_std", std, tuple(self.prior_std.shape), "Give one per entry.")
        check_finite("prior_std", std, "Replace them.")
        check_positive("prior_std", std, "")
        std = std.to(mean)
        return mean / std, factor / std[..., None], std

    def _noise(self, num_samples: int, generator: torch.Generator | None) -> Tensor:
        return normal((num_samples, *self.shift.shape), generator, self.shift)


@final
class DiagonalGaussian(VariationalGaussian):
    """Independent entries: C is diagonal."""

    def __init__(self, shape: Sequence[int], *, like: Tensor, scale: float = 1.0) -> None:
        super().__init__(shape, scale=scale, like=like)
        self.register_buffer("frame", torch.ones_like(self.center))

    @property
    def mean(self) -> Tensor:
        return self.prior_std * (self.center + self.unit * self.frame * self.shift)

    @property
    def std(self) -> Tensor:
        """The diagonal of sC."""
        return self.prior_std * self.frame * torch.exp(self.log_diagonal)

    @property
    def factor(self) -> Tensor:
        return torch.diag_embed(self.std)

    def draw(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        noise = self._noise(num_samples, generator)
        fixed = (self.center, self.frame, self.unit, self.prior_std)
        draws: Tensor = DiagonalDraw.apply(self.shift, self.log_diagonal, *fixed, noise)
        return draws

    def kl(self) -> Tensor:
        fixed = (self.center, self.frame, self.unit)
        divergence: Tensor = DiagonalKL.apply(self.shift, self.log_diagonal, *fixed)
        return divergence

    def closest_factor(self, precision: Tensor) -> Tensor:
        diagonal = precision.diagonal(dim1=-2, dim2=-1).reshape(self.shift.shape)
        return torch.diag_embed(diagonal.rsqrt())

    def set(self, mean: Tensor, factor: Tensor, prior_std: Tensor | None = None) -> None:
        """`factor` diagonal."""
        mean, factor, std = self._whitened(mean, factor, prior_std)
        diagonal = factor.diagonal(dim1=-2, dim2=-1)
        if bool((factor - torch.diag_embed(diagonal)).any()):
            raise InputError(
                "factor must be diagonal; got entries beside its diagonal. Use full weights."
            )
        with torch.no_grad():
            self.prior_std.copy_(std)
            self.center.copy_(mean)
            self.frame.copy_(diagonal)
            self.unit.fill_(_UNIT)
            self.shift.zero_()
            self.log_diagonal.zero_()


@final
class FullGaussian(VariationalGaussian):
    """Full covariance."""

    beside: Tensor

    def __init__(self, shape: Sequence[int], *, like: Tensor, scale: float = 1.0) -> None:
        super().__init__(shape, scale=scale, like=like)
        identity = torch.eye(shape[-1], dtype=self.shift.dtype, device=self.shift.device)
        self.register_buffer("frame", identity.expand(*shape, shape[-1]).clone())
        self.below_diagonal = nn.Parameter(torch.zeros_like(self.frame))
        self.register_buffer("beside", self.frame.new_ones(()))

    def widen_steps(self) -> None:
        super().widen_steps()
        self.beside.fill_(1.0)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *others: Any) -> None:
        """Files from before steps beside the diagonal had a size of their own have that of 1."""
        state.setdefault(f"{prefix}beside", torch.ones_like(self.beside))
        super()._load_from_state_dict(state, prefix, *others)

    @property
    def mean(self) -> Tensor:
        return self.prior_std * mean_of_full(self.shift, self.center, self.frame, self.unit)

    @property
    def factor(self) -> Tensor:
        lower, _ = lower_factor(self.beside * self.below_diagonal, self.log_diagonal)
        return self.prior_std[..., None] * (self.frame @ lower)

    def draw(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        noise = self._noise(num_samples, generator)
        draws: Tensor = FullDraw.apply(*self.parts(), self.prior_std, noise)
        return draws

    def kl(self) -> Tensor:
        divergence: Tensor = FullKL.apply(*self.parts())
        return divergence

    def closest_factor(self, precision: Tensor) -> Tensor:
        batch, size = self.shift.shape
        if len(precision) != batch:  # one matrix for the whole batch
            index = torch.arange(batch * size).reshape(batch, size)
            precision = precision[0][index[:, :, None], index[:, None, :]]
        covariance = torch.cholesky_inverse(torch.linalg.cholesky(precision))
        factor: Tensor = torch.linalg.cholesky(covariance)
        return factor

    def set(self, mean: Tensor, factor: Tensor, prior_std: Tensor | None = None) -> None:
        """`factor` lower triangular."""
        mean, factor, std = self._whitened(mean, factor, prior_std)
        if bool(factor.triu(1).any()):
            raise InputError(
                "factor must be lower triangular; got entries above its diagonal. "
                "Pass a Cholesky factor."
            )
        with torch.no_grad():
            self.prior_std.copy_(std)
            self.center.copy_(mean)
            self.frame.copy_(factor)
            self.unit.fill_(_UNIT)
            self.beside.fill_(_BESIDE)
            for learnt in (self.shift, self.log_diagonal, self.below_diagonal):
                learnt.zero_()

    def parts(self) -> tuple[Tensor, ...]:
        """What `gaussian_formulas` makes μ and C of: a, B as it is learnt; μ0, C0 and u."""
        learnt = self.shift, self.log_diagonal, self.beside * self.below_diagonal
        return *learnt, self.center, self.frame, self.unit


def _check(sizes: Sequence[int], mean: Tensor, factor: Tensor) -> None:
    check_shape("mean", mean, tuple(sizes), "Give one mean per entry.")
    check_shape("factor", factor, (*sizes, sizes[-1]), "Give one square factor per Gaussian.")
    check_finite("mean", mean, "Replace them.")
    check_finite("factor", factor, "Replace them.")
    diagonal = factor.diagonal(dim1=-2, dim2=-1)
    if not bool((diagonal > 0).all()):
        raise InputError(
            f"factor must have a positive diagonal; got {diagonal.min().item():g}. "
            "Pass a Cholesky factor."
        )
