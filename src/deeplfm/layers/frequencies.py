"""q(Ω): the random frequencies of the features, and the three ways to treat them.

    ω = m + s ε,  prior ω ~ N(0, 1/ℓ²);   KL = ½ Σ (ℓ²(m² + s²) - 1 - log ℓ²s²)

fixed_noise: ε drawn once, saved with the model (the paper's VAR-FIXED); resampled: a fresh ε each
draw; prior_draws: ω = ε/ℓ with ε drawn once, nothing inferred. s is a standard deviation.
"""

from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.parameters import Quantity

Treatment: TypeAlias = Literal["fixed_noise", "resampled", "prior_draws"]


@final
class Frequencies(nn.Module):
    """Ω [G, Q, R, P]: G groups (1, or one per output), Q forces, R features, P inputs.

    q(Ω) starts at the prior. The lengthscale is learnt through the KL, which detaches nothing.
    """

    noise: Tensor

    def __init__(
        self,
        lengthscale: Quantity,
        num_features: int,
        treatment: Treatment,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.lengthscale = lengthscale
        self.treatment: Treatment = treatment
        start = lengthscale().detach()
        groups, forces, inputs = start.shape
        shape = (groups, forces, num_features, inputs)
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        self.register_buffer("noise", noise.to(start))
        self.mean: nn.Parameter | None = None
        self.log_std: nn.Parameter | None = None
        if treatment != "prior_draws":
            self.mean = nn.Parameter(torch.zeros_like(self.noise))
            self.log_std = nn.Parameter(-start[:, :, None, :].log().expand(shape).clone())

    def draw(
        self, num_draws: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "S G Q R P"]:
        """Frequencies: one set for all samples, unless resampled, which gives `num_draws` sets."""
        if self.mean is None or self.log_std is None:
            ell: Tensor = self.lengthscale()
            return (self.noise / ell[:, :, None, :])[None]
        noise = self.noise[None]
        if self.treatment == "resampled":
            noise = torch.randn(
                num_draws,
                *self.noise.shape,
                generator=generator,
                dtype=noise.dtype,
                device=noise.device,
            )
        return self.mean + torch.exp(self.log_std) * noise

    def kl(self) -> Float[Tensor, ""]:
        """KL(q(Ω) ‖ N(0, 1/ℓ²)); 0 for frequencies drawn from the prior."""
        ell: Tensor = self.lengthscale()
        if self.mean is None or self.log_std is None:
            return torch.zeros((), dtype=ell.dtype, device=ell.device)
        ell = ell[:, :, None, :]
        twice = 2 * (self.log_std + torch.log(ell))  # log of (s ℓ)²
        terms: Tensor = (ell * self.mean).square() + torch.expm1(twice) - twice
        return terms.sum() / 2

    def own_parameters(self) -> list[nn.Parameter]:
        """What is inferred about Ω itself, without the lengthscale."""
        return [p for p in (self.mean, self.log_std) if p is not None]
