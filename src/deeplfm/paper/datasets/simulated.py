"""Simulated sets whose truth is known: springs, systems with a known input, seven mixed channels.

springs(seed);   driven("second-order", seed);   seven_channels(seed)

A set is its seed. What is in them was fixed before a model was scored on them.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from deeplfm.data.series import Series
from deeplfm.errors import InputError
from deeplfm.paper.datasets.linear_systems import driven_by_matern

Values = NDArray[np.float64]
System: TypeAlias = Literal["first-order", "second-order"]

_HELD = (0.5, 3.0)  # how long an input stays at one value, at least and at most
_UNKNOWN, _NOISE = 0.1, 0.01  # shares: of the variance from the force, of the spread as noise
_SETTLED = 12.0  # from then on the force of the training rows is forgotten


@final
@dataclass(frozen=True, eq=False)
class Springs:
    """Two outputs [N, 2] of one force [N]; `truth` are the parameters by the names of a report."""

    times: Values
    values: Values
    force: Values
    truth: dict[str, float]


def springs(seed: int) -> Springs:
    """A Matérn-5/2 force (lengthscale 1, t in [0, 15]) through two second-order systems.

    150 points; dampings 0.25 and 0.8, frequencies 2 and 1.2, gains 1 and 0.7; noise of 2 % of the
    spread of each output.
    """
    random = np.random.default_rng((1, seed))
    damping, frequency, gain = (0.25, 0.8), (2.0, 1.2), (1.0, 0.7)
    odes = [(w**2, 2 * a) for a, w in zip(damping, frequency, strict=True)]
    system = driven_by_matern(odes, lengthscale=1.0, std=1.0)
    times = np.linspace(0, 15, 150)
    state = system.simulate(times, np.zeros(len(times)), random)
    clean = state[:, [3, 5]] * np.array(gain)
    noise = 0.02 * clean.std(0)
    truth = {"y1: gain of force 0": gain[1] / gain[0], "force 0: lengthscale": 1.0}
    truth["force 0: standard deviation"] = gain[0]
    for d in range(2):
        truth[f"y{d}: damping"], truth[f"y{d}: frequency"] = damping[d], frequency[d]
        truth[f"y{d}: noise, standard deviation"] = float(noise[d])
    values = clean + noise * random.standard_normal(clean.shape)
    return Springs(times, values, state[:, 0], truth)


@final
@dataclass(frozen=True, eq=False)
class Driven:
    """Rows with a known input, and later ones with another, whose answer [N2] has no noise."""

    times: Values
    values: Values
    inputs: Values
    truth: dict[str, float]
    later: Values
    later_inputs: Values
    answer: Values
    settled: NDArray[np.bool_]  # later rows at which the past is forgotten


def driven(system: str, seed: int) -> Driven:
    """An ODE with a known input of gain 2 and an unknown Matérn-5/2 force (lengthscale 1).

    400 points over [0, 120], then 200 more with another input. "first-order" has a decay of 0.8,
    "second-order" a damping of 0.4 and a frequency of 1.5. Inputs are held for 0.5 to 3 at values
    drawn from N(0, 1). The force carries 10 % of the variance, noise is 1 % of the spread. What is
    known of a decay is as little as the time over the memory of the force: over [0, 30] an exact
    posterior is 10 % wide, over [0, 120] half as much.
    """
    if system not in get_args(System):
        raise InputError(f"system must be one of {get_args(System)}; got {system!r}. Choose one.")
    random = np.random.default_rng((2, get_args(System).index(system), seed))
    gain, names = 2.0, {"decay": 0.8}
    coefficients: tuple[float, ...] = (0.8,)
    if system == "second-order":
        names, coefficients = {"damping": 0.4, "frequency": 1.5}, (1.5**2, 2 * 0.4)
    ode = driven_by_matern([coefficients], lengthscale=1.0, std=1.0)
    times = np.asarray(0.3 * np.arange(600), dtype=np.float64)
    now, later = slice(0, 400), slice(400, 600)
    inputs = _held(times, random)
    forced = ode.simulate(times[now], 0 * times[now], random)[:, 3]
    answer = gain * ode.simulate(times, inputs, None)[:, 3]
    size = np.sqrt(_UNKNOWN / (1 - _UNKNOWN)) * answer[now].std() / forced.std()
    clean = answer[now] + size * forced
    noise = _NOISE * float(clean.std())
    values = clean + noise * random.standard_normal(len(clean))
    truth = {f"y: {name}": value for name, value in names.items()} | {"y: gain of u": gain}
    settled = times[later] > times[now][-1] + _SETTLED
    return Driven(
        times[now], values, inputs[now], truth, times[later], inputs[later], answer[later], settled
    )


def seven_channels(seed: int) -> Series:
    """Seven channels, each a fixed mixture of four sources; three end 100 samples early.

    256 samples, t = 0, 1, … The sources are an oscillation of period 12 that keeps its phase for
    about 100 samples, one of period 31 that keeps it for 40, a slow drift (an Ornstein–Uhlenbeck
    process that remembers 80 samples) and a broadband one (that remembers 2). They have unit
    variance, weights are N(0, 1), noise is 5 % of the spread of a channel. The test "ends" hides
    the last 100 samples of the channels 4, 5 and 6.
    """
    random = np.random.default_rng((3, seed))
    count = 256
    sources = [
        _oscillation(12.0, 100.0, count, random),
        _oscillation(31.0, 40.0, count, random),
        _oscillation(np.inf, 80.0, count, random),
        _oscillation(np.inf, 2.0, count, random),
    ]
    clean = np.stack(sources, 1) @ random.standard_normal((4, 7))
    values = clean + 0.05 * clean.std(0) * random.standard_normal(clean.shape)
    hidden = np.zeros((count, 7), dtype=bool)
    hidden[-100:, 4:] = True
    names = tuple(f"channel {d}" for d in range(7))
    return Series(np.arange(float(count)), values, names, {"ends": hidden}, clean)


def _held(times: Values, random: np.random.Generator) -> Values:
    """Values from N(0, 1), each held for a random while."""
    found, n, step = np.empty(len(times)), 0, times[1] - times[0]
    while n < len(times):
        last = n + round(random.uniform(*_HELD) / step)
        found[n:last] = random.standard_normal()
        n = last
    return found


def _oscillation(period: float, memory: float, count: int, random: np.random.Generator) -> Values:
    """A stationary process of unit variance with covariance e^{-τ/memory} cos(2πτ/period)."""
    pole = np.exp(-1 / memory + 2j * np.pi / period)
    size = np.sqrt(1 - abs(pole) ** 2)
    noise = random.standard_normal((count, 2)) @ np.array([1, 1j])
    state = np.empty(count, dtype=complex)
    state[0] = noise[0]
    for n in range(1, count):
        state[n] = pole * state[n - 1] + size * noise[n]
    return state.real.copy()
