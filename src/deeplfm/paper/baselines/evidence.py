"""Exact Gaussian processes by Cholesky: the evidence, its gradient, and the posterior.

    -log p(y) = ½ yᵀK⁻¹y + ½ log det K + n/2 log 2π,   gradient by K: ½ (K⁻¹ - K⁻¹y yᵀK⁻¹)

K includes the noise. Hyperparameters are logarithms inside bounds; L-BFGS finds the best.
"""

import math
from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.errors import NumericalError

Values = NDArray[np.float64]
Loss = Callable[[Tensor], Tensor]

_SAME = 12  # lags of inputs in [0, 1] that agree to so many decimals are one lag


class _NegativeLogEvidence(torch.autograd.Function):
    """One Cholesky forward, one inverse backward; autograd would take three times as long."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        covariance, y = arguments
        factor, failed = torch.linalg.cholesky_ex(covariance)
        if bool(failed):
            raise NumericalError(
                "the covariance must be positive definite; it is not. Use dtype='float64'."
            )
        solved = torch.cholesky_solve(y[:, None], factor)[:, 0]
        ctx.save_for_backward(factor, solved)
        logdet = factor.diagonal().log().sum()
        fit: Tensor = y @ solved / 2 + logdet
        return fit + len(y) / 2 * math.log(2 * math.pi)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        factor, solved = ctx.saved_tensors
        inverse = torch.cholesky_inverse(factor)
        return gradients[0] / 2 * inverse.addr_(solved, solved, alpha=-1), None


def negative_log_evidence(covariance: Tensor, y: Tensor) -> Tensor:
    """-log N(y; 0, K) of targets y [n] and their covariance K [n, n]."""
    loss: Tensor = _NegativeLogEvidence.apply(covariance, y)
    return loss


@final
class Posterior:
    """p(f | y) for a covariance of y with its noise, which is factorised once.

    covariance: [n, n].      y: [n].
    """

    def __init__(self, covariance: Tensor, y: Tensor) -> None:
        self.factor = torch.linalg.cholesky(covariance)
        self.solved = torch.cholesky_solve(y[:, None], self.factor)[:, 0]

    def marginals(self, cross: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance [n*] at new points.

        cross: their covariances [n*, n] with y.      prior: their variances [n*] before the data.
        """
        reduced = torch.linalg.solve_triangular(self.factor, cross.mT, upper=False)
        variance = prior - reduced.square().sum(0)
        return cross @ self.solved, variance.clamp(min=0)  # rounding may leave less than nothing


def distinct_lags(x: Tensor) -> tuple[Tensor, Tensor]:
    """The different lags x_i - x_j [U], and the index of the lag of each pair [n, n].

    A regular grid of n points has only 2n - 1 of them, so that kernels of lags are cheap there.
    """
    times = x.double().cpu().numpy()
    lags = times[:, None] - times[None]
    _, index = np.unique(np.round(lags, _SAME), return_inverse=True)
    index = index.reshape(-1)
    # Their means, not what they were rounded to: a covariance of wrong lags may be indefinite.
    means = np.bincount(index, weights=lags.reshape(-1)) / np.bincount(index)
    return torch.tensor(means).to(x), torch.tensor(index.reshape(lags.shape), device=x.device)


def minimise(
    loss: Loss, start: Tensor, bounds: Tensor, steps: int, record: Callable[[float], None]
) -> tuple[Tensor, float]:
    """Minimise by L-BFGS within bounds [K, 2] from `start` [K]; the best point and its loss."""
    from scipy.optimize import minimize

    def value_and_gradient(point: Values) -> tuple[float, Values]:
        raw = torch.tensor(point, dtype=start.dtype, device=start.device, requires_grad=True)
        loss_here = loss(raw)
        (gradient,) = torch.autograd.grad(loss_here, raw)
        value = float(loss_here.detach())
        record(value)
        return value, gradient.double().cpu().numpy()

    box = bounds.double().cpu().numpy()
    inside = np.clip(start.double().cpu().numpy(), box[:, 0], box[:, 1])
    settings: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "bounds": [*map(tuple, box)]}
    settings["options"] = {"maxiter": steps, "maxfun": 2 * steps}
    done: Any = minimize(value_and_gradient, inside, **settings)
    return torch.tensor(done.x).to(start), float(done.fun)
