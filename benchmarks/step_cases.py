"""The shapes of `steps.py`: data of their size, models, and how much arithmetic one step has.

R = M = 100, everything trainable, as in the paper; "default" cases are the recipes as they are.
Data are made up: the time of a step depends on their size, and hardly on what they are.
"""

from dataclasses import dataclass, replace

import torch

from deeplfm import FirstOrder, FourierDLFM, InducingDLFM, Training
from deeplfm.data import Dataset, Scaling, dataset, fit_scaling
from deeplfm.models import Recipe
from deeplfm.objectives import Batch
from deeplfm.sums import Backend
from deeplfm.training import Trainer


@dataclass(frozen=True)
class Case:
    """One shape; `bars` are milliseconds and gigabytes to stay below, where there are any."""

    device: str
    recipe: Recipe
    rows: int
    inputs: int
    outputs: int
    samples: int
    batch: int | None = None
    bars: tuple[float | None, float | None] = (None, None)

    @property
    def points(self) -> int:
        """Rows of one step."""
        return self.batch or self.rows

    def waves(self) -> int:
        """Sine and cosine pairs of one step, each of what differs once."""
        recipe, n, s = self.recipe, self.points, self.samples
        if isinstance(recipe, FourierDLFM):
            features = recipe.num_forces * recipe.num_features
            last = (s * n * (recipe.hidden_dim or 1) + n * self.inputs) * self.outputs
            return features * (n * self.inputs + last)
        if isinstance(recipe, InducingDLFM):
            forces = recipe.output_forces or self.outputs
            return recipe.num_basis * (n * recipe.num_forces + s * n * forces)
        return 0

    def bumps(self) -> int:
        """Bumps along one input, of one step."""
        recipe, n, s = self.recipe, self.points, self.samples
        if not isinstance(recipe, InducingDLFM):
            return 0
        hidden = recipe.hidden_dim
        return recipe.num_inducing * (n * self.inputs * hidden + s * n * hidden * self.outputs)

    def data(self) -> Dataset:
        generator = torch.Generator().manual_seed(0)
        if self.inputs == 1:
            x = torch.linspace(0, 1, self.rows)[:, None]
            turns = 6.283 * x * torch.tensor([20.0, 20.0, 3.0])[: self.outputs]
            y = torch.sin(turns) + 0.3 * torch.cos(2 * turns)
        else:
            x = torch.randn(self.rows, self.inputs, generator=generator)
            y = torch.sin(x.sum(1, keepdim=True)).expand(-1, self.outputs)
        y = y + 0.1 * torch.randn(y.shape, generator=generator)
        return dataset(x.numpy(), y.numpy())

    def trainer(self, device: str, backend: Backend) -> Trainer:
        """Ready for its first step."""
        data = self.data()
        scaling: Scaling = fit_scaling(data)
        recipe = self.recipe.resolved(data, scaling)
        model = recipe.build(data, scaling, torch.Generator().manual_seed(0))
        tables = (torch.tensor(scaling.inputs(data.x)), torch.tensor(scaling.targets(data.y)))
        x, y = (table.to(device, torch.float32) for table in tables)
        batch = Batch(x, y, torch.ones_like(y, dtype=torch.bool), len(data))
        training = Training(steps=10**6, num_samples=self.samples, batch_size=self.batch)
        training = replace(training, backend=backend)
        return Trainer(model.to(device, torch.float32), batch, training, 0)


PAPER = FourierDLFM(hidden_dim=3, weights="diagonal", frequencies="fixed_noise")
PAPER_VIP = InducingDLFM(output_forces=1, greens_function=FirstOrder(2.5), units="scaled")
PROTEIN = replace(PAPER, num_forces=5, num_features=20)
SMALL = replace(PAPER, num_features=10)
SMALL_VIP = replace(PAPER_VIP, num_inducing=10, num_basis=10)

CASES = {
    "rff-toy": Case("cpu", PAPER, 500, 1, 1, 10, bars=(10, None)),
    "rff-toy-default": Case("cpu", FourierDLFM(), 500, 1, 1, 10),
    "rff-physio": Case("cpu", PAPER, 1000, 1, 3, 10, bars=(45, 0.3)),
    "rff-physio-full": Case("cpu", FourierDLFM(hidden_dim=3), 1000, 1, 3, 10),
    "rff-physio-default": Case("cpu", FourierDLFM(), 1000, 1, 3, 10),
    "vip-toy": Case("cpu", PAPER_VIP, 500, 1, 1, 10, bars=(12, None)),
    "vip-toy-default": Case("cpu", InducingDLFM(), 500, 1, 1, 10),
    "vip-physio": Case("cpu", PAPER_VIP, 1000, 1, 3, 10, bars=(50, 0.3)),
    "vip-physio-default": Case("cpu", InducingDLFM(), 1000, 1, 3, 10),
    "rff-physio-100": Case("cuda", PAPER, 1000, 1, 3, 100, bars=(1.0, None)),
    "rff-physio-100-full": Case("cuda", FourierDLFM(hidden_dim=3), 1000, 1, 3, 100),
    "rff-physio-100-default": Case("cuda", FourierDLFM(), 1000, 1, 3, 100),
    "vip-physio-50": Case("cuda", PAPER_VIP, 1000, 1, 3, 50, bars=(1.5, None)),
    "vip-physio-50-default": Case("cuda", InducingDLFM(), 1000, 1, 3, 50),
    "rff-protein": Case("cuda", PROTEIN, 41157, 9, 1, 100, batch=200, bars=(0.5, None)),
    "vip-power": Case("cuda", PAPER_VIP, 8611, 4, 1, 50, bars=(4.0, None)),
    "rff-small": Case("smoke", SMALL, 60, 1, 2, 2),
    "vip-small": Case("smoke", SMALL_VIP, 60, 1, 2, 2),
}
