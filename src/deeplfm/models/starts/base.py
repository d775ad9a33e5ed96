"""What every start of a model shares: the data it looks at, and linear regression.

For fixed features the best Gaussian q of a layer's weights is a Bayesian linear regression; weights
of Fourier features and whitened inducing values are alike in that.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

Values = NDArray[np.float64]

FIRST_NOISE, _ROUNDS = 0.1, 5  # noise variance and its re-estimation, in standardised units
ROWS = 5000  # regressions need no more; evenly spread over the data
_OFFSET = 10.0  # prior standard deviation of the offsets


@final
@dataclass(frozen=True, eq=False)
class Start:
    """What a start needs to know: data in the model's units, and where random numbers come from."""

    x: Values
    y: Values
    generator: torch.Generator
    from_spectrum: bool = True
    keep_lengthscale: bool = False  # that over the inputs was given
    keep_hidden: bool = False  # and that over hidden functions
    own_physics: bool = False  # no ODE was given
    by_evidence: bool = False  # all that it learns starts where the evidence is greatest

    @property
    def series(self) -> bool:
        """One input, that has a spectrum."""
        return self.x.shape[1] == 1 and float(np.ptp(self.x)) > 0


def evenly(x: Values, y: Values) -> tuple[Values, Values]:
    """At most `ROWS` rows, spread over the data; those of one input in order."""
    order = np.argsort(x[:, 0], kind="stable") if x.shape[1] == 1 else np.arange(len(x))
    chosen = order[np.linspace(0, len(x) - 1, min(len(x), ROWS)).astype(int)]
    return x[chosen], y[chosen]


def principal_components(x: Values, count: int) -> Values:
    """The first of them, at most `count` and as many as there are, with variance 1: [N, K]."""
    left, sizes, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    kept = left[:, sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)][:, :count]
    return np.asarray(kept * math.sqrt(len(x)))


class Posterior(NamedTuple):
    """The posterior of the weights, with the offset of each output at its best."""

    mean: Float[Tensor, " F"]
    precision: Float[Tensor, "F F"]
    offset: Float[Tensor, " D"]
    evidence: float  # log N(y; 0, ΦΦᵀ + σ²I), without its constant


def posterior_of_weights(
    phi: Float[Tensor, "N D F"],
    y: Float[Tensor, "N D"],
    noise: Float[Tensor, " D"],
    *,
    estimate: bool,
    with_offset: bool = True,
    alike: int = 1,
    repeated: int = 1,
    prior_std: Float[Tensor, " F"] | None = None,
) -> Posterior:
    """The posterior of W ~ N(0, s²) given y_d = Φ_d W + c_d + noise.

    An estimated `noise` is updated in place. NaN in y are gaps. `alike` neighbouring errors are
    taken for one: for the spread of W, not for its mean, so many targets count as one. Rows that
    come `repeated`, each time with another draw of Φ, count once. s is 1 unless it is given.
    """
    seen = ~y.isnan()
    size = phi.shape[-1]
    std = phi.new_ones(size) if prior_std is None else prior_std
    phi = phi * std
    scale = _OFFSET if with_offset else 0.0
    offsets = scale * torch.eye(y.shape[1], dtype=phi.dtype).expand(len(y), -1, -1)
    once = seen / math.sqrt(repeated)
    phi, y = torch.cat([phi, offsets], -1) * once[..., None], torch.where(seen, y, 0.0) * once
    count = seen.sum(0) / repeated
    gram = torch.einsum("ndf,ndg->dfg", phi, phi)
    moment = torch.einsum("ndf,nd->df", phi, y)
    for left in reversed(range(_ROUNDS if estimate else 1)):
        precision = (gram / noise[:, None, None]).sum(0)
        precision.diagonal().add_(1)
        lower = torch.linalg.cholesky(precision)
        mean = torch.cholesky_solve((moment / noise[:, None]).sum(0)[:, None], lower)[:, 0]
        if left:
            spread = torch.einsum("dfg,fg->d", gram, torch.cholesky_inverse(lower))
            error = (y - phi @ mean).square().sum(0)
            noise.copy_(((error + spread) / count).clamp(min=1e-4))
    fitted = (moment / noise[:, None]).sum(0) @ mean
    unexplained = ((y.square().sum(0) / noise) + count * noise.log()).sum()
    determinant = 2 * lower.diagonal().log().sum()
    evidence = float(fitted - unexplained - determinant) / 2
    if alike > 1:
        precision = (gram / noise[:, None, None]).sum(0) / alike
        precision.diagonal().add_(1)
    precision = precision[:size, :size] / (std[:, None] * std)
    return Posterior(std * mean[:size], precision, scale * mean[size:], evidence)
