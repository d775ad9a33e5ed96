"""Deep Gaussian processes of Salimbeni & Deisenroth (2017), with GPyTorch's layers.

    h = A h_below + f(h_below),   f_k ~ GP(0, s_k² EQ);   the last layer: f alone

A carries inputs through inner layers. It is the identity; with more inputs than functions it keeps
their principal directions, with fewer it adds zeros. The q of inner layers start nearly without
variance, so that inputs pass unharmed.
"""

from typing import Any

import gpytorch
import torch
from gpytorch.models.deep_gps import DeepGP as GPyTorchDeepGP
from gpytorch.models.deep_gps import DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from torch import Tensor, nn

from deeplfm.paper.gpytorch_models.sparse import keep_flags_on_cpu

_INNER_SCALE = 1e-5  # start of the standard deviations of the q of inner layers


class LinearMean(gpytorch.means.Mean):  # type: ignore[misc]
    """The fixed mean A h [D, N]: process k of the batch has column k of A."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("matrix", matrix)

    def forward(self, x: Tensor) -> Tensor:
        mean: Tensor = (x * self.matrix.mT[:, None]).sum(-1)
        return mean


class Layer(DeepGPLayer):  # type: ignore[misc]
    """One process per column of `matrix`, all with the same inducing points at the start.

    points: [M, P].      matrix: A [P, D].      scale: start of the standard deviations of q.
    """

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
    """The layers, and the logarithms of the noise variances [D].

    points:      the start of the inducing points [M, P] of the first layer.
    widths:      how many functions each inner layer has.
    outputs:     D, the functions of the last layer.
    lengthscale: the start of every lengthscale.
    """

    def __init__(self, points: Tensor, widths: list[int], outputs: int, lengthscale: float) -> None:
        super().__init__()
        layers = []
        for width in widths:
            matrix = carrying_matrix(points, width)
            layers.append(Layer(points, matrix, lengthscale, _INNER_SCALE))
            points = points @ matrix
        none = points.new_zeros(points.shape[1], outputs)
        layers.append(Layer(points, none, lengthscale, 1.0))
        self.layers = nn.ModuleList(layers)
        self.log_noise = nn.Parameter(torch.full((outputs,), -2.3))
        self.to(points)
        for layer in layers:
            keep_flags_on_cpu(layer.variational_strategy)

    def marginals(self, x: Tensor, num_samples: int) -> tuple[Tensor, Tensor]:
        """Mean and variance [S, N, D] of the last layer, given S samples of those below."""
        with gpytorch.settings.num_likelihood_samples(num_samples):
            hidden: Any = x
            for layer in self.layers:
                hidden = layer(hidden)
        return hidden.mean, hidden.variance

    def kl(self) -> Tensor:
        """KL(q ‖ p) of all layers; to be called after `marginals`, whose q it shares."""
        divergence: Tensor = self.variational_strategy.kl_divergence()
        return divergence


def carrying_matrix(points: Tensor, width: int) -> Tensor:
    """The matrix A [P, width] that carries inputs like `points` [M, P] through a layer."""
    inputs = points.shape[1]
    if inputs > width:
        centred = points - points.mean(0)
        directions: Tensor = torch.linalg.svd(centred, full_matrices=False)[2]
        return directions[:width].mT.contiguous()
    return torch.eye(inputs, width, dtype=points.dtype, device=points.device)
