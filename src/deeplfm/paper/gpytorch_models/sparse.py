"""Sparse variational processes with GPyTorch: latent functions, mixed into outputs.

    f_d(x) = Σ_l W_ld g_l(x),   g_l ~ GP(0, exp(-½ Σ_p (Δ_p/ℓ_lp)²)),   q(g_l(Z_l)) Gaussian

With a diagonal W outputs are independent; a full W is the linear model of coregionalisation. Only
marginals are ever needed: their means and variances mix by W and W².
"""

import gpytorch
import torch
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from torch import Tensor, nn


class Latents(gpytorch.models.ApproximateGP):  # type: ignore[misc]
    """L independent processes with their own lengthscales and inducing points [L, M, P]."""

    def __init__(self, points: Tensor, lengthscale: float, learn_points: bool) -> None:
        batch = points.shape[:1]
        q = CholeskyVariationalDistribution(points.shape[1], batch_shape=batch, mean_init_std=0.0)
        super().__init__(VariationalStrategy(self, points, q, learn_points))
        self.covar_module = gpytorch.kernels.RBFKernel(points.shape[2], batch_shape=batch)
        self.covar_module.lengthscale = lengthscale
        self.mean_module = gpytorch.means.ZeroMean(batch_shape=batch)

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class SparseModel(nn.Module):
    """Latent functions with their mixing W, and the logarithms of the noise variances [D].

    points:       the start of the inducing points [M, P].
    mixing:       W [L, D], or its diagonal [D].
    lengthscale:  the start of every lengthscale.
    learn_points: move the inducing points.
    """

    def __init__(self, points: Tensor, mixing: Tensor, lengthscale: float, learn_points: bool):
        super().__init__()
        latents, outputs = mixing.shape[0], mixing.shape[-1]
        self.latents = Latents(points.expand(latents, *points.shape), lengthscale, learn_points)
        self.mixing = nn.Parameter(mixing)
        self.log_noise = nn.Parameter(torch.full((outputs,), -2.3))
        self.to(points)
        keep_flags_on_cpu(self.latents.variational_strategy)

    def marginals(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances [N, D] of the outputs at x [N, P], without noise."""
        latents = self.latents(x)
        mean, variance = latents.mean.mT, latents.variance.mT  # N L
        if self.mixing.ndim == 1:
            return mean * self.mixing, variance * self.mixing.square()
        return mean @ self.mixing, variance @ self.mixing.square()

    def kl(self) -> Tensor:
        """KL(q ‖ p) of all latent functions; to be called after `marginals`, whose q it shares."""
        divergence: Tensor = self.latents.variational_strategy.kl_divergence().sum()
        return divergence


def keep_flags_on_cpu(strategy: VariationalStrategy) -> None:
    """Keep two flags on the CPU: GPyTorch reads them at every call, and would wait for a device."""
    strategy.updated_strategy = strategy.updated_strategy.cpu()
    strategy.variational_params_initialized = strategy.variational_params_initialized.cpu()
