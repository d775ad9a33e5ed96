"""q(Ω): the random frequencies of the features, and the three ways to treat them.

    ω = m + s ε,  prior ω ~ N(c, 1/ℓ²);   KL = ½ Σ (ℓ²((m - c)² + s²) - 1 - log ℓ²s²)

fixed_noise: ε drawn once, saved with the model (the paper's VAR-FIXED): ω is one number, and what
is learnt, with m = ω - sε. resampled: a fresh ε each draw. prior_draws: ω = c + ε/ℓ with ε drawn
once, nothing inferred but ℓ. s is a standard deviation; c is 0, unless a start sets carriers.
"""

from typing import Any, Literal, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.forces import SMOOTH, ForceKernel
from deeplfm.randomness import normal
from deeplfm.shapes import check_choice
from deeplfm.sums import Backend, frequency_kl
from deeplfm.variational.parameters import Quantity

Treatment: TypeAlias = Literal["fixed_noise", "resampled", "prior_draws"]


@final
class Frequencies(nn.Module):
    """Ω [G, Q, R, P]: G groups (1, or one per output), Q forces, R features, P inputs.

    q(Ω) starts at the prior. The lengthscale is learnt through the KL, which detaches nothing.
    """

    noise: Tensor
    carriers: Tensor  # c [G, Q, R, P]
    scales: Tensor | None

    def __init__(
        self,
        lengthscale: Quantity,
        num_features: int,
        treatment: Treatment,
        generator: torch.Generator | None = None,
        *,
        force: ForceKernel = SMOOTH,
        over_all_inputs: bool = False,
    ) -> None:
        """`over_all_inputs`: a force is one function of all inputs, not one along each."""
        super().__init__()
        check_choice("treatment", treatment, Treatment)
        self.lengthscale = lengthscale
        self.treatment: Treatment = treatment
        start = lengthscale().detach()
        groups, forces, inputs = start.shape
        shape = (groups, forces, num_features, inputs)
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        self.register_buffer("noise", noise.to(start))
        self.register_buffer("carriers", torch.zeros_like(self.noise))
        each = 1 if over_all_inputs else inputs
        scales = force.spectral_scales((*shape[:3], each), generator, start)
        self.register_buffer("scales", None if scales is None else scales.expand(shape).clone())
        self.location: nn.Parameter | None = None  # ω with fixed noise, m when resampled
        self.log_std: nn.Parameter | None = None
        if treatment != "prior_draws":
            scale = (1 / start)[:, :, None, :].expand(shape)
            scale = scale if self.scales is None else scale * self.scales
            fixed = treatment == "fixed_noise"
            self.location = nn.Parameter(scale * self.noise if fixed else torch.zeros_like(scale))
            self.log_std = nn.Parameter(scale.log())

    @property
    def mean(self) -> Float[Tensor, "G Q R P"]:
        """m of q(ω)."""
        location, log_std = self._inferred()
        if self.treatment == "fixed_noise":
            return location - torch.exp(log_std) * self.noise
        return location

    def draw(
        self, num_draws: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "S G Q R P"]:
        """Frequencies: one set for all samples, unless resampled, which gives `num_draws` sets."""
        if self.treatment == "prior_draws":
            ell: Tensor = self.lengthscale()
            omega = self.noise / ell[:, :, None, :]
            omega = omega if self.scales is None else omega * self.scales
            return (self.carriers + omega)[None]
        location, log_std = self._inferred()
        if self.treatment == "fixed_noise":
            return location[None]
        noise = normal((num_draws, *location.shape), generator, location)
        return location + torch.exp(log_std) * noise

    def kl(self, backend: Backend = "auto") -> Float[Tensor, ""]:
        """KL(q(Ω) ‖ N(c, scale²/ℓ²)); 0 for frequencies drawn from the prior."""
        ell: Tensor = self.lengthscale()
        if self.treatment == "prior_draws":
            return torch.zeros((), dtype=ell.dtype, device=ell.device)
        location, log_std = self._inferred()
        beside = location - self.carriers
        fixed = self.noise if self.treatment == "fixed_noise" else None
        if self.scales is None:
            return frequency_kl.by(backend, beside, log_std, fixed, ell)
        # In units of the kernel's random scales the prior is N(0, 1/ℓ²).
        relative = beside / self.scales, log_std - self.scales.log()
        return frequency_kl.by(backend, *relative, fixed, ell)

    def center(self) -> Float[Tensor, "G Q R P"]:
        """One Ω in the middle of q: the mean, or the fixed draw."""
        return self.mean.detach() if self.treatment == "resampled" else self.draw(1)[0].detach()

    def own_parameters(self) -> list[nn.Parameter]:
        """What is inferred about Ω itself, without the lengthscale."""
        return [p for p in (self.location, self.log_std) if p is not None]

    def start(
        self,
        omega: Tensor,
        std: Tensor | float,
        lengthscale: Tensor,
        carriers: Tensor | float = 0.0,
    ) -> None:
        """Start q(Ω) at N(omega, std²) and the prior at `lengthscale` [G, Q, P] about `carriers`.

        With fixed noise, or nothing inferred, Ω is exactly `omega` and `std` says nothing.
        With fixed noise s is the one that costs least: s² (1 + ε²) - (ω - c)εs = 1/ℓ².
        """
        with torch.no_grad():
            self.lengthscale.set(lengthscale.to(self.noise))
            self.carriers.copy_(torch.as_tensor(carriers).expand(self.noise.shape))
            if self.treatment == "prior_draws":
                noise = (omega - carriers) * lengthscale[:, :, None, :]
                self.noise.copy_(noise if self.scales is None else noise / self.scales)
                return
            location, log_std = self._inferred()
            location.copy_(omega)
            if self.treatment == "resampled":
                log_std.copy_(torch.as_tensor(std).expand(omega.shape).log())
                return
            turned, weight = (location - self.carriers) * self.noise, 1 + self.noise.square()
            prior = 1 / self.lengthscale()[:, :, None, :].square()
            prior = prior if self.scales is None else prior * self.scales.square()
            root = torch.sqrt(turned.square() + 4 * weight * prior)
            # The two forms of one root: neither subtracts numbers of the same size.
            least = torch.where(
                turned > 0, (turned + root) / (2 * weight), 2 * prior / (root - turned)
            )
            log_std.copy_(least.log())

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *others: Any) -> None:
        """Files from before there were carriers have those of 0."""
        state.setdefault(f"{prefix}carriers", torch.zeros_like(self.carriers))
        super()._load_from_state_dict(state, prefix, *others)

    def _inferred(self) -> tuple[nn.Parameter, nn.Parameter]:
        if self.location is None or self.log_std is None:
            raise InputError(
                "frequencies must be inferred for this; got prior_draws. "
                "Use fixed_noise or resampled."
            )
        return self.location, self.log_std
