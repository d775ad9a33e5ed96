"""The Markov model: a bank of oscillators or smooth processes, levels, physics, a second layer.

    y_d = Σ_k Re(ā_dk z_k) + Σ_q b_dq p_q + level_d + Σ_q S_dq (G_d * u_q) + Σ_c gain_dc (G_d * c)
          + mean_d + g_d(θ) + noise,   θ the phase of a hidden rhythm

Parameters are raw numbers with standard normal priors; `natural` are those that the evidence sees.
It knows no data: a `Record` brings them.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from deeplfm.greens_functions import GreensFunction
from deeplfm.layers.driven import DrivenOutputs
from deeplfm.layers.markov import Levels, OscillatorBank
from deeplfm.layers.phase import PhaseLayer
from deeplfm.layers.smooth import SmoothProcesses
from deeplfm.likelihoods.additive import AdditiveNoise
from deeplfm.shapes import Memory
from deeplfm.statespace import Block, System, known_response, stack_blocks
from deeplfm.statespace.clock import Clock
from deeplfm.statespace.record import Cut, Record
from deeplfm.statespace.system import Observations
from deeplfm.sums import Backend

_NOISE_SPREAD = 2.0  # standard deviation of the log of the noise variance about where it starts

Natural = dict[str, Tensor]
# Mean and variance of the phase of a rhythm at rows of a record, [B, N] each.
Rhythm = Callable[[Record, Cut], tuple[Tensor, Tensor]]


class Raw(NamedTuple):
    """One raw parameter and the standard deviation of its prior."""

    name: str
    value: nn.Parameter
    spread: float


@final
class MarkovModel(nn.Module):
    """Parts that are None are not there; `response` answers known inputs where no force drives.

    The `clock` of the oscillators is steady, but for models that are drawn from a posterior. A
    second layer, `phase`, needs the `rhythm` whose phase it is a function of.
    """

    def __init__(
        self,
        num_outputs: int,
        likelihood: AdditiveNoise,
        bank: OscillatorBank | None = None,
        levels: Levels | None = None,
        driven: DrivenOutputs | None = None,
        response: GreensFunction | None = None,
        phase: PhaseLayer | None = None,
        smooth: SmoothProcesses | None = None,
    ) -> None:
        super().__init__()
        self.num_outputs = num_outputs
        self.bank, self.smooth, self.levels, self.driven = bank, smooth, levels, driven
        self.response, self.likelihood = response, likelihood
        self.phase = phase
        self.clock: Clock | None = None
        self.rhythm: Rhythm | None = None

    def raw(self) -> list[Raw]:
        """All parameters that are learnt."""
        return [
            Raw(name, part, _NOISE_SPREAD if name.startswith("likelihood") else 1.0)
            for name, part in self.named_parameters()
        ]

    def log_prior(self) -> Float[Tensor, ""]:
        """The log density of all raw numbers, up to its constant."""
        terms = [(part / spread).square().sum() for _, part, spread in self.raw()]
        return -torch.stack(terms).sum() / 2

    def natural(self) -> Natural:
        """The numbers that the evidence sees: raw ones, and loadings instead of what makes them."""
        found: Natural = {}
        for name, part in self.named_children():
            if isinstance(part, (OscillatorBank, SmoothProcesses, Levels)):
                found |= {f"{name}.{key}": value for key, value in part.natural().items()}
            else:
                found |= {f"{name}.{key}": value for key, value in part.named_parameters()}
        return found

    def system(self, natural: Natural | None = None) -> System:
        """The model as numbers, of these parameters or of its own."""
        given = self.natural() if natural is None else natural
        like = next(iter(given.values()))
        decay = frequency = like.new_zeros(0)
        columns, blocks = [like.new_zeros(self.num_outputs, 0)], list[Block]()
        if self.bank is not None:
            decay, frequency, loadings = self.bank.parts(_part(given, "bank"))
            columns.append(loadings)
        for name in ("smooth", "levels"):
            part: SmoothProcesses | Levels | None = getattr(self, name)
            if part is not None:
                own, loadings = part.parts(_part(given, name))
                blocks += own
                columns.append(loadings)
        if self.driven is not None:
            block = functional_call(self.driven, _part(given, "driven"))
            blocks.append(block)
            columns.append(block.outputs)
        noise = functional_call(self.likelihood.noise, _part(given, "likelihood.noise"))
        noise = noise.to(like).expand(self.num_outputs)
        stacked = None if not blocks else stack_blocks(blocks)
        return System(decay, frequency, stacked, torch.cat(columns, 1), noise)

    def observations(
        self, record: Record, cut: Cut, natural: Natural | None = None, scale: Tensor | None = None
    ) -> Observations:
        """Rows of a record with the functions of unknown weight of this model."""
        design = self.design(record, cut, natural)
        rows = (cut.timeline, cut.targets, cut.observed, design, scale, record.device)
        believed = 0 if self.phase is None else self.phase.count
        return Observations(*rows, self._faster(record, cut), believed)

    def _faster(self, record: Record, cut: Cut) -> Float[Tensor, "B N"] | None:
        """How much faster than usual the clock runs on the step to each row."""
        if self.clock is None or self.bank is None:
            return None
        found = []
        for b, times in enumerate(cut.times):
            found.append(self.clock.of_steps(times.numpy(), _series_of(record, cut, b)))
        return torch.from_numpy(np.stack(found))

    def design(
        self, record: Record, cut: Cut, natural: Natural | None = None
    ) -> Float[Tensor, "B N D P"]:
        """Constants of outputs with a level, lines with a trend, answers, functions of a phase."""
        outputs = self.num_outputs
        one = torch.eye(outputs, dtype=torch.float64).expand(*cut.times.shape, -1, -1)
        columns = [one if record.level else one[..., :0]]
        if record.trend:
            first, length = record.span
            columns.append(one * ((cut.times - first) / length - 0.5)[..., None, None])
        if record.known is not None:
            answers = self._answers(record, cut, natural)  # [B, N, D, C]
            spread = torch.einsum("bndc,de->bndec", answers, torch.eye(outputs).to(answers))
            columns.append(spread.flatten(3))
        if self.phase is not None:
            if self.rhythm is None:
                raise TypeError("a second layer needs a rhythm")
            given = {} if natural is None else _part(natural, "phase")
            columns.append(functional_call(self.phase, given, self.rhythm(record, cut)))
        return torch.cat(columns, -1)

    def evidence(
        self,
        record: Record,
        cut: Cut,
        natural: Natural | None = None,
        scale: Tensor | None = None,
        backend: Backend = "auto",
        probe: Tensor | None = None,
    ) -> Float[Tensor, ""]:
        """The log evidence of rows of a record, summed over series; `probe` as `System` has it."""
        rows = self.observations(record, cut, natural, scale)
        return self.system(natural).evidence(rows, backend, probe).sum()

    def _answers(self, record: Record, cut: Cut, natural: Natural | None) -> Tensor:
        """What the ODEs answer to known inputs of unit gain."""
        known = record.known
        answering = self.response if self.driven is None else self.driven
        if answering is None or known is None:
            raise TypeError("known inputs need an ODE that answers them")
        name = "response" if self.driven is None else "driven"
        given = {} if natural is None else _part(natural, name, "answering.")
        memory: Memory = "infinite" if self.driven is None else self.driven.memory
        found = []
        for b, times in enumerate(cut.times):
            own = known.series == _series_of(record, cut, b)
            inputs = torch.tensor(known.times[own]), torch.tensor(known.values[own])
            arguments = (*inputs, times, "constant", memory)
            found.append(functional_call(_Answers(answering), given, arguments))
        return torch.stack(found)


def _series_of(record: Record, cut: Cut, b: int) -> int:
    """The number of the series that is in a row of the table."""
    return b if cut.rows is None else int(record.series[cut.rows[b, 0]])


@final
class _Answers(nn.Module):
    """What ODEs answer to known inputs, with the parameters that they have during a call."""

    def __init__(self, answering: GreensFunction | DrivenOutputs) -> None:
        super().__init__()
        self.answering = answering

    def forward(self, *arguments: Any) -> Tensor:
        own = self.answering
        ode = own.dynamics() if isinstance(own, DrivenOutputs) else own
        return known_response(ode, *arguments)


def _part(natural: Mapping[str, Tensor], name: str, prefix: str = "") -> Natural:
    """The parameters of one part, by their names there."""
    return {
        prefix + key.removeprefix(f"{name}."): value
        for key, value in natural.items()
        if key.startswith(f"{name}.")
    }
