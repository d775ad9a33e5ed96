"""A training step of GPyTorch's deep GP of the same shape, as a yardstick: 100 inducing points."""

from collections.abc import Callable
from typing import Any

import torch

from step_cases import Case


def deep_gp_step(case: Case, device: str) -> Callable[[], None] | None:
    """Two layers, 10 samples, its own defaults otherwise; none where GPyTorch is not installed."""
    try:
        import gpytorch
    except ImportError:
        return None
    from gpytorch.models.deep_gps import DeepGP, DeepGPLayer

    class Layer(DeepGPLayer):  # type: ignore[misc]
        def __init__(self, inputs: int, outputs: int) -> None:
            points = torch.randn(outputs, 100, inputs)
            shape = torch.Size([outputs])
            q = gpytorch.variational.CholeskyVariationalDistribution(100, batch_shape=shape)
            strategy = gpytorch.variational.VariationalStrategy(self, points, q)
            super().__init__(strategy, inputs, outputs)
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
            kernel = gpytorch.kernels.RBFKernel(batch_shape=shape, ard_num_dims=inputs)
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=shape)

        def forward(self, x: torch.Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    class Model(DeepGP):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = Layer(case.inputs, 3), Layer(3, case.outputs)
            self.likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(case.outputs)

        def forward(self, x: torch.Tensor) -> Any:
            return self.last(self.first(x))

    x = torch.rand(case.points, case.inputs, device=device)
    y = torch.sin(6 * x[:, :1]).expand(-1, case.outputs).contiguous()
    model = Model().to(device)
    bound = gpytorch.mlls.VariationalELBO(model.likelihood, model, len(x))
    objective = gpytorch.mlls.DeepApproximateMLL(bound)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)

    def step() -> None:
        with gpytorch.settings.num_likelihood_samples(10):
            optimiser.zero_grad()
            (-objective(model(x), y)).backward()
            optimiser.step()

    return step
