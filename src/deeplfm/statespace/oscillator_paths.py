"""Prior paths of oscillators: a rotation times an Ornstein-Uhlenbeck bridge in closed form.

    z(t) = Rot(ω(t - t_0)) u(t),   u = w(e/L) u_b + w(1 - e/L) u_a + Σ_l sqrt(tanh λh_l) w_l(t) n_l
    w(q) = sinh(qx) / sinh(x),   x = λL, or λh_l for the tent over the cell of t at level l

The tents are what halving the bridge again and again adds up to: the midpoint of a bridge over 2h
given its ends has variance tanh λh, and what it moves at t is a bridge's mean.
"""

from typing import final

import numpy as np
from jaxtyping import Float, Int

from deeplfm.statespace.dyadic import (
    FIRST_STATE,
    MOST_LEVELS,
    NEGLIGIBLE,
    Interval,
    cells,
    doublings,
    intervals,
)
from deeplfm.statespace.keyed_normals import hashed, normal_pairs, path_bits

_SMALLEST = 1e-250  # sinh(qx)/sinh(x) is q long before; keeps 0/0 away from modes without decay


def sinh_ratio(
    q: Float[np.ndarray, "*#shape"], x: Float[np.ndarray, "*#shape"]
) -> Float[np.ndarray, "..."]:
    """sinh(qx) / sinh(x) for q in [0, 1] and x ≥ 0, to rounding, however small or large x is."""
    x = np.maximum(x, _SMALLEST)
    grown = np.expm1(-2 * x * q) / np.expm1(-2 * x)
    ratio: np.ndarray = grown * np.exp(-x * (1 - q))
    return ratio


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a·b, rounded, and what rounding took away (Dekker 1971)."""
    product = a * b
    splitter = 2.0**27 + 1
    high_a, high_b = a * splitter, b * splitter
    high_a, high_b = high_a - (high_a - a), high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


@final
class OscillatorPaths:
    """S draws of K oscillators, each a pair of states, as functions of time since the origin."""

    def __init__(
        self,
        decay: Float[np.ndarray, "K"],
        frequency: Float[np.ndarray, "K"],
        num_samples: int,
        seed: int,
        scale: float,
    ) -> None:
        # Quick modes first: those that still need a level are the first ones.
        self.order = np.argsort(-decay, kind="stable")
        self.decay = decay[self.order]
        self.frequency = frequency[self.order]
        self.scale = scale
        samples = np.arange(num_samples)
        self.bits = path_bits(seed, samples, self.order[:, None])  # [K, S]

    def __call__(
        self,
        elapsed: Float[np.ndarray, "n"],
        rounding: Float[np.ndarray, "n"],
        modes: slice,
    ) -> tuple[Int[np.ndarray, "k"], Float[np.ndarray, "2 k S n"]]:
        """Numbers of the modes, and their states at `elapsed` + `rounding`, which ascends.

        `rounding` is what the difference of a time and the origin lost: phases turn by it.
        """
        still = np.empty((2, *self.bits[modes].shape, len(elapsed)))
        for interval in intervals(elapsed / self.scale):
            still[..., interval.rows] = self._bridge(interval, modes)
        frequency = self.frequency[modes, None]
        phase, lost = two_product(frequency, elapsed)
        lost = lost + frequency * rounding
        cosine, sine = np.cos(phase), np.sin(phase)
        cosine, sine = (cosine - lost * sine)[:, None], (sine + lost * cosine)[:, None]
        turned = np.empty_like(still)
        turned[0] = cosine * still[0] - sine * still[1]
        turned[1] = sine * still[0] + cosine * still[1]
        return self.order[modes], turned

    def _normals(
        self, modes: slice, label: int, level: int, index: np.ndarray
    ) -> Float[np.ndarray, "2 k S c"]:
        keyed = hashed(hashed(self.bits[modes], label), level)
        return np.stack(normal_pairs(hashed(keyed[..., None], index)))

    def _ends(self, label: int, modes: slice) -> tuple[np.ndarray, np.ndarray]:
        """u at both ends of an interval, [2, k, S]; the first is the one near the origin."""
        none = np.zeros(1, dtype=np.int64)
        outer = self._normals(modes, FIRST_STATE, 0, none)[..., 0]
        inner = outer
        for between in range(label + 1) if label >= 0 else range(-1, label - 1, -1):
            decay = (self.decay[modes] * self.scale * 2.0 ** doublings(between))[:, None]
            noise = self._normals(modes, between, 0, none)[..., 0]
            inner = outer
            outer = np.exp(-decay) * inner + np.sqrt(-np.expm1(-2 * decay)) * noise
        return inner, outer

    def _bridge(self, interval: Interval, modes: slice) -> Float[np.ndarray, "2 k S n"]:
        """u at the times of one interval: its ends' mean, and a tent per level."""
        label, _, fraction = interval
        length = self.decay[modes] * self.scale * 2.0 ** doublings(label)
        inner, outer = self._ends(label, modes)
        x = length[:, None]
        total: np.ndarray = sinh_ratio(1 - fraction[None], x)[:, None] * inner[..., None]
        total += sinh_ratio(fraction[None], x)[:, None] * outer[..., None]
        with np.errstate(divide="ignore"):
            depth = np.clip(np.ceil(np.log2(length / NEGLIGIBLE)) - 1, 0, MOST_LEVELS)
        for level in range(1, int(depth.max(initial=0)) + 1):
            index, rest, first = cells(fraction, level - 1)
            if not rest.any():  # all times are ends of cells: later tents are 0 there
                break
            needed = int(np.count_nonzero(depth >= level))
            x = np.ldexp(length[:needed, None], -level)
            weight = np.sqrt(np.tanh(x)) * sinh_ratio(2 * np.minimum(rest, 1 - rest)[None], x)
            some = slice(modes.start, modes.start + needed)
            noise = self._normals(some, label, level, index[first])
            if noise.shape[-1] < len(index):
                noise = noise[..., np.cumsum(first) - 1]
            noise *= weight[:, None]
            total[:, :needed] += noise
        return total
