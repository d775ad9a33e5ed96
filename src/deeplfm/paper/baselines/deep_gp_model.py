"""Deep Gaussian processes as of Salimbeni & Deisenroth (2017), with GPyTorch's layers.

    h = A h_below + f(h_below),   f_k ~ GP(0, s_k² EQ);   the last layer: f alone

A carries inputs through inner layers: the identity, principal directions of more inputs than
functions, zeros beside fewer. Inner q start nearly without variance, so that inputs pass unharmed.
"""

from typing import Any

import gpytorch
import torch
from gpytorch.models.deep_gps import DeepGP as GPyTorchDeepGP
from gpytorch.models.deep_gps import DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from torch import Tensor, nn

from deeplfm.paper.baselines.sparse_model import flags_on_cpu

_INNER_SCALE = 1e-5  # of the standard deviation of inner q


class LinearMean(gpytorch.means.Mean):  # type: ignore[misc]
    """A h, fixed: column k for the process k of the batch."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("matrix", matrix)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = (x * self.matrix.mT[:, None]).sum(-1)
        return found


class Layer(DeepGPLayer):  # type: ignore[misc]
    """As many processes as functions, all with the same inducing points at the start."""

    def __init__(self, points: Tensor, matrix: Tensor, lengthscale: float, scale: float) -> None:
        count, inputs = points.shape
        outputs = matrix.shape[1]
        batch = torch.Size([outputs])
        q = CholeskyVariationalDistribution(count, batch_shape=batch, mean_init_std=0.0)
        strategy = VariationalStrategy(self, points.expand(outputs, count, inputs), q)
        super().__init__(strategy, inputs, outputs)
        with torch.no_grad():
            q.chol_variational_covar.mul_(scale)
        strategy.variational_params_initialized.fill_(1)  # keep this start
        self.mean_module = LinearMean(matrix)
        kernel = gpytorch.kernels.RBFKernel(ard_num_dims=inputs, batch_shape=batch)
        kernel.lengthscale = lengthscale
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=batch)

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class DeepModel(GPyTorchDeepGP):  # type: ignore[misc]
    """`marginals(x, S)`: of the last layer given samples of those below, [S, N, D] each.

    points: [M, P] for the first layer; widths: of the inner layers; log_noise: of variances [D].
    """

    def __init__(self, points: Tensor, widths: list[int], outputs: int, lengthscale: float) -> None:
        super().__init__()
        layers = []
        for width in widths:
            matrix = carried(points, width)
            layers.append(Layer(points, matrix, lengthscale, _INNER_SCALE))
            points = points @ matrix
        none = points.new_zeros(points.shape[1], outputs)
        layers.append(Layer(points, none, lengthscale, 1.0))
        self.layers = nn.ModuleList(layers)
        self.log_noise = nn.Parameter(torch.full((outputs,), -2.3))
        self.to(points)
        flags_on_cpu(self)

    def marginals(self, x: Tensor, num_samples: int) -> tuple[Tensor, Tensor]:
        with gpytorch.settings.num_likelihood_samples(num_samples):
            found: Any = x
            for layer in self.layers:
                found = layer(found)
        return found.mean, found.variance

    def kl(self) -> Tensor:
        """Of all layers; after `marginals`, whose q it shares."""
        divergence: Tensor = self.variational_strategy.kl_divergence()
        return divergence


def carried(points: Tensor, width: int) -> Tensor:
    """A [P, width]."""
    inputs = points.shape[1]
    if inputs > width:
        centred = points - points.mean(0)
        directions: Tensor = torch.linalg.svd(centred, full_matrices=False)[2]
        return directions[:width].mT.contiguous()
    return torch.eye(inputs, width, dtype=points.dtype, device=points.device)
