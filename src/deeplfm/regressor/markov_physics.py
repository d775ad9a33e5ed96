"""The physics of a fitted state-space model in words and numbers, in the user's units.

mode:   period 2π/ω, time constant 1/λ, what it adds to every output
ODE:    the quantities of its Green's function;  force: its lengthscale, gains over the first
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import Scaling
from deeplfm.errors import InputError
from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace import DrivenODE

if TYPE_CHECKING:
    import pandas as pd

Values = NDArray[np.float64]

_SHARE = 1e-3  # of the variance of some output: a mode that carries less is switched off


@final
@dataclass(frozen=True, eq=False)
class Physics:
    """One draw of the physics.

    decay, frequency: of every oscillator, [K]; amplitude: its standard deviation in every output,
    [D, K], in the user's units; active: the modes that carry something, strongest first.
    """

    model: MarkovModel
    scaling: Scaling
    input_name: str
    output_names: tuple[str, ...]
    decay: Values
    frequency: Values
    amplitude: Values
    active: tuple[int, ...]

    def mode_name(self, mode: int) -> str:
        """The name of an oscillator, by its period."""
        return f"mode of period {2 * math.pi / abs(self.frequency[mode]):.4g}"

    def force_names(self) -> tuple[str, ...]:
        """Forces of ODEs, or what each mode, or all smooth processes, add to each output."""
        driven = self.model.driven
        if driven is not None:
            return tuple(f"force {q}" for q in range(driven.gain.shape[1]))
        if self.model.smooth is not None:
            return tuple(f"smooth part of {name}" for name in self.output_names)
        return tuple(
            f"{self.mode_name(mode)} in {name}"
            for mode in self.active
            for name in self.output_names
        )

    def forces(self) -> Tensor:
        """The readouts [E, s] of those functions, in the user's units."""
        system = self.model.system()
        std = torch.tensor(self.scaling.target_std)
        if self.model.driven is not None:
            block: DrivenODE = self.model.driven()
            rows = system.loadings.new_zeros(len(block.forces), system.loadings.shape[1])
            # The gain of the first output is 1: only gain times force is known.
            unit = self.model.driven.sensitivities()[0] * std[0]
            rows[:, -block.size :] = unit[:, None] * block.forces
            return rows.detach()
        if self.model.smooth is not None:
            _, own = self.model.smooth.parts(self.model.smooth.natural())
            rows = torch.zeros_like(system.loadings)
            rows[:, : own.shape[1]] = std[:, None] * own
            return rows.detach()
        count = len(self.decay)
        found = []
        for mode in self.active:
            for d in range(len(self.output_names)):
                row = torch.zeros(system.loadings.shape[1], dtype=torch.float64)
                for place in (mode, count + mode):
                    row[place] = std[d] * system.loadings[d, place].detach()
                found.append(row)
        return torch.stack(found) if found else system.loadings.detach()[:0]

    def numbers(self) -> dict[str, float]:
        """Every physical parameter by name."""
        found: dict[str, float] = {}
        for mode in self.active:
            name = f"mode {self.active.index(mode)}"
            found[f"{name}: period"] = 2 * math.pi / abs(float(self.frequency[mode]))
            found[f"{name}: time constant"] = 1 / float(self.decay[mode])
        driven = self.model.driven
        if driven is not None:
            found |= self._driven(found)
        if self.model.response is not None:
            answer = self.model.response
            for name in answer.quantities:
                rates = answer.value(name).detach().reshape(-1).tolist()
                for output, value in zip(self.output_names, rates, strict=True):
                    found[f"{output}: {name} of the answer to known inputs"] = value
        for name, values in self.model.likelihood.learnt(self.scaling).items():
            for output, value in zip(self.output_names, values, strict=True):
                found[f"{output}: noise, {name}"] = float(value)
        return found

    def _driven(self, found: dict[str, float]) -> dict[str, float]:
        driven = self.model.driven
        if driven is None:
            return {}
        dynamics = driven.dynamics()
        own = dynamics if isinstance(dynamics, list) else [dynamics]
        for number, g in enumerate(own):
            for name in g.quantities:
                for row, value in enumerate(g.value(name).detach().reshape(-1).tolist()):
                    output = self.output_names[row if len(own) == 1 else number]
                    found[f"{output}: {name}"] = value
        std = self.scaling.target_std
        gains = driven.sensitivities().detach().numpy() * std[:, None]
        for q, length in enumerate(driven.lengthscales().detach().tolist()):
            found[f"force {q}: lengthscale"] = length
            found[f"force {q}: standard deviation"] = abs(float(gains[0, q]))
            for d, output in enumerate(self.output_names[1:], start=1):
                found[f"{output}: gain of force {q}"] = float(gains[d, q] / gains[0, q])
        return found


@final
@dataclass(frozen=True, eq=False)
class PhysicsDraws:
    """Draws [n, parameters] of all physical parameters, jointly, in the user's units."""

    names: tuple[str, ...]
    values: Values

    def __getitem__(self, name: str) -> Values:
        """The draws [n] of one parameter."""
        if name not in self.names:
            raise InputError(
                f"the name of a parameter must be among {list(self.names)}; got {name!r}. "
                "Choose one of them."
            )
        return np.asarray(self.values[:, self.names.index(name)])

    def to_frame(self) -> "pd.DataFrame":
        """A table with one column per parameter."""
        import pandas as pd

        return pd.DataFrame(self.values, columns=list(self.names))


def physics_draws(draws: Sequence[Physics], gains: Mapping[str, Values]) -> PhysicsDraws:
    """The parameters of drawn physics; the first, which is the most probable, gives the names."""
    first, *others = (one.numbers() for one in draws)
    values = np.array([[one[name] for name in first] for one in others])
    columns = [values.reshape(len(others), -1), *(one[:, None] for one in gains.values())]
    return PhysicsDraws((*first, *gains), np.concatenate(columns, 1))


def physics_of(
    model: MarkovModel,
    scaling: Scaling,
    input_name: str,
    output_names: tuple[str, ...],
    active: tuple[int, ...] | None = None,
) -> Physics:
    """The physics that a model has now; `active` are the modes to speak of, if they are known."""
    empty = np.empty(0)
    decay = frequency = empty
    amplitude = np.empty((len(output_names), 0))
    if model.bank is not None:
        with torch.no_grad():
            found = model.bank.parts(model.bank.natural())
        decay, frequency, loadings = (part.numpy() for part in found)
        amplitude = np.sqrt(loadings[:, : len(decay)] ** 2 + loadings[:, len(decay) :] ** 2)
        share = (amplitude**2).max(0)
        if active is None:
            order = np.argsort(-share, kind="stable")
            active = tuple(int(k) for k in order if share[k] > _SHARE)
        amplitude = amplitude * scaling.target_std[:, None]
    names = (input_name, output_names)
    return Physics(model, scaling, *names, decay, frequency, amplitude, active or ())
