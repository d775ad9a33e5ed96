"""Linear systems driven by noise and by inputs, simulated exactly step by step; numpy alone.

    dz = (F z + B c) dt + L dβ,   c held from one sample to the next

Written apart from the library's own state-space code on purpose: a model is judged by these data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class LinearSystem:
    """F [s, s], the strength L Lᵀ [s, s] of its noise, and B [s] of one input."""

    feedback: Values
    strength: Values
    into: Values

    def stationary(self) -> Values:
        """The covariance [s, s] of the state long after its start, without an input."""
        from scipy.linalg import solve_continuous_lyapunov

        return np.asarray(solve_continuous_lyapunov(self.feedback, -self.strength))

    def simulate(self, times: Values, inputs: Values, random: np.random.Generator | None) -> Values:
        """The state [N, s] at evenly spaced times, held `inputs` [N] being those at the times.

        It starts in the steady state of the first input, with the noise of a long past; without
        `random` there is no noise.
        """
        step = float(times[1] - times[0])
        move, push, covariance = self._step(step)
        state = -np.linalg.solve(self.feedback, self.into * inputs[0])
        if random is not None:
            state = state + _factor(self.stationary()) @ random.standard_normal(len(state))
        noise = np.zeros((len(times), len(state)))
        if random is not None:
            noise = random.standard_normal(noise.shape) @ _factor(covariance).T
        found = [state]
        for n in range(len(times) - 1):
            found.append(move @ found[-1] + push * inputs[n] + noise[n])
        return np.stack(found)

    def _step(self, step: float) -> tuple[Values, Values, Values]:
        """Transition, what a held unit input adds, and the noise of a step (Van Loan)."""
        from scipy.linalg import expm

        size = len(self.feedback)
        joint = np.zeros((size + 1, size + 1))
        joint[:size, :size], joint[:size, size] = self.feedback, self.into
        moved = expm(step * joint)
        zero = np.zeros_like(self.feedback)
        loan = expm(step * np.block([[-self.feedback, self.strength], [zero, self.feedback.T]]))
        move = moved[:size, :size]
        return move, moved[:size, size], move @ loan[:size, size:]


def driven_by_matern(
    odes: Sequence[tuple[float, ...]], lengthscale: float, std: float
) -> LinearSystem:
    """A Matérn-5/2 force, states 0 to 2, that drives ODEs; an input joins the force everywhere.

    An ODE is the coefficients a of y^(n) + … + a_1 y' + a_0 y, the lowest first: its states are y,
    y', …, and follow one another in the order of the ODEs.
    """
    rate = np.sqrt(5.0) / lengthscale
    size = 3 + sum(map(len, odes))
    feedback, strength, into = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    feedback[0, 1] = feedback[1, 2] = 1.0
    feedback[2, :3] = -(rate**3), -3 * rate**2, -3 * rate
    strength[2, 2] = 16 / 3 * std**2 * rate**5
    first = 3
    for coefficients in odes:
        last = first + len(coefficients) - 1
        for k in range(first, last):
            feedback[k, k + 1] = 1.0
        feedback[last, first : last + 1] = -np.array(coefficients)
        feedback[last, 0] = into[last] = 1.0
        first = last + 1
    return LinearSystem(feedback, strength, into)


def _factor(covariance: Values) -> Values:
    """A square root of a covariance, which rounding may have made slightly indefinite."""
    sizes, ways = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(ways * np.sqrt(np.maximum(sizes, 0)))
