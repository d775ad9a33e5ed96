"""The recipe of state-space latent force models: exact, at uneven times, in O(N)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from numbers import Integral
from typing import Literal, TypeAlias, final

import numpy as np
import torch
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.forces import ForceKernel, Matern
from deeplfm.greens_functions import FirstOrder, GreensFunction
from deeplfm.layers.driven import DrivenOutputs
from deeplfm.layers.markov import DECAY_SPREAD, Levels, OscillatorBank
from deeplfm.layers.smooth import SmoothProcesses
from deeplfm.likelihoods import Gaussian, Likelihood, StudentT
from deeplfm.likelihoods.additive import AdditiveNoise
from deeplfm.models.markov_model import MarkovModel
from deeplfm.models.recipe import ModelSettings, check_force, check_likelihood, check_templates
from deeplfm.models.starts.markov import Spectrum, spectral_start
from deeplfm.registry import register
from deeplfm.shapes import Memory, check_above_zero, check_count
from deeplfm.statespace import Record

Trend: TypeAlias = Literal["auto", "none", "linear", "local"]

_PEAKS, _BROAD = 32, 8  # oscillators at peaks of the spectrum, and broad ones over the band
_ENTRIES = 12  # observed numbers that an oscillator needs, at least
# It has two loadings in every output. Where loadings are a fifth of what an output has observed,
# they take a fifth of the variance of its noise with them; with more of them little is left of it.
_ROWS = 10  # that the outputs need for it, on average
_PERIODS_KEPT = 10.0  # 1/λ of a peak is centred at the length of the record over this
_LEAST_DECAY = 0.5  # a record cannot say that it remembers for longer than twice its length
_FIRST_DECAY = 4.0  # where λ starts, in units of one over the length
_REACH = 3.0  # resolvable frequencies that ω may move, as a standard deviation
_BAND, _BROAD_DECAY = (0.02, 0.9), 0.15  # of the broad ones, per usual step
_WANDER = 0.3  # what a level wanders over the length of the record, in standard deviations
_JITTER, _BROAD_START = 0.03, 0.05  # random loadings at the start: no two modes are alike


@register
@final
@dataclass(frozen=True)
class MarkovDLFM(ModelSettings):
    """The recipe of a latent force model with a Markov state: oscillators, levels, driven ODEs.

        y_d = Σ_k Re(ā_dk z_k) + level_d + Σ_q S_dq (G_d * u_q) + mean_d + noise

    Inference is exact and costs time proportional to the rows, whatever is missing and whatever the
    times are. There is one input, the time. Numbers are float64 inside, whatever is asked for.

    Args:
        num_layers: 2 tries functions g_d of the phase of the strongest rhythm above the state; they
            are kept where they pay, and `fitted_.depth` says so. 1 does not.
        modes: how many oscillators all outputs share; "auto" takes up to 40, as many as the data
            can tell, and none where a `greens_function` is given. Those that carry nothing
            switch themselves off. Where smooth processes explain the data better than
            oscillators, "auto" takes those instead, and the fit says so.
        level: True gives every output a level that is not known before, and wanders; without, it
            swings about 0.
        trend: "linear" adds a line of unknown slope, "local" a slope that wanders too; "auto" is
            "linear" where the data rise or fall by much more than they scatter, else "none".
        periods: periods that are known to be there, in units of the input.
        greens_function: physics of yours, driven by latent forces that the outputs share: one
            template for all outputs, or a list of one per output. In units of the input.
        num_forces: Q, the latent forces that drive them.
        lengthscale: that of the forces, where its prior is centred; None takes a tenth of the
            range of the input.
        force: their kernel, `Matern(0.5)`, `Matern(1.5)` or `Matern(2.5)`.
        memory: "infinite" starts the ODEs long before the data, "zero" at rest at the first row.
        likelihood: the noise, `Gaussian()`, or `StudentT()` for outliers.

    Example:
        >>> model = dlfm.DeepLFMRegressor(dlfm.MarkovDLFM(modes=4), dlfm.Training(steps=20))
        >>> t = np.linspace(0, 10, 100)
        >>> mean, std = model.fit(t, np.sin(3 * t)).predict(t, return_std=True)
        >>> mean.shape
        (100,)
    """

    num_layers: int = 2
    modes: int | Literal["auto"] = "auto"
    level: bool = True
    trend: Trend = "auto"
    periods: tuple[float, ...] = ()
    greens_function: GreensFunction | Sequence[GreensFunction] | None = None
    num_forces: int = 1
    lengthscale: float | None = None
    force: ForceKernel = field(default_factory=Matern)
    memory: Memory = "infinite"
    likelihood: Likelihood = field(default_factory=Gaussian)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_layers not in (1, 2):
            raise InputError(
                f"num_layers of a MarkovDLFM must be 1 or 2; got {self.num_layers}. "
                "Use FourierDLFM or InducingDLFM for deeper models."
            )
        whole = isinstance(self.modes, Integral) and not isinstance(self.modes, bool)
        if self.modes != "auto" and not (whole and self.modes >= 0):
            raise InputError(
                f"modes must be 'auto' or an integer of at least 0; got {self.modes!r}. "
                "Pass 'auto' to let the data decide."
            )
        check_count("num_forces", self.num_forces)
        if self.lengthscale is not None:
            check_above_zero("lengthscale", self.lengthscale)
        for period in self.periods:
            check_above_zero("periods", period)
        given = self.greens_function
        check_templates(given, len(given) if isinstance(given, Sequence) else 1)
        check_likelihood(self.likelihood)
        check_force(self.force)
        if not isinstance(self.likelihood, (Gaussian, StudentT)):
            raise InputError(
                "likelihood of a MarkovDLFM must be Gaussian() or StudentT(); "
                f"got {self.likelihood!r}. Use FourierDLFM for other likelihoods."
            )

    def trends(self, record: Record) -> bool:
        """Whether outputs have a line of unknown slope."""
        if self.trend == "auto":
            return _rises(record)
        return self.trend in ("linear", "local")

    def build(self, record: Record, generator: torch.Generator) -> MarkovModel:
        """The model for a record of standardised targets, started at their spectrum."""
        peaks, broad = self._sizes(record)
        known = [2 * math.pi / period for period in self.periods]
        found = spectral_start(record, peaks, known)
        model = self.skeleton(record, len(found.frequency), broad)
        if model.bank is not None:
            _start_bank(model.bank, found, record, generator)
        _start_signs(model, record)
        return model

    def build_smooth(self, record: Record) -> MarkovModel:
        """The model of smooth processes in place of oscillators, from what outputs share."""
        model = self.skeleton(record, 0, 0, record.num_outputs)
        smooth, cut = model.smooth, record.whole()
        if smooth is None:
            return model
        smooth.start(_covariance(record))

        def density(raw: tuple[float, float]) -> float:
            smooth.log_lengthscale.fill_(raw[0])
            smooth.log_decay.fill_(raw[1])
            return float(model.evidence(record, cut) + model.log_prior())

        with torch.no_grad():
            density(max(product((0.0, -1.0, -2.0), (0.0, 2.0)), key=density))
        return model

    def skeleton(self, record: Record, peaks: int, broad: int, smooth: int = 0) -> MarkovModel:
        """The model before it has seen data, of so many oscillators, or of smooth processes."""
        outputs, (_, length) = record.num_outputs, record.span
        likelihood = self.likelihood.tiled(outputs)
        if not isinstance(likelihood, AdditiveNoise):
            raise TypeError("the noise must be added")
        bank = OscillatorBank(peaks + broad, outputs) if peaks + broad else None
        levels = None
        if self.level:
            size = _WANDER / math.sqrt(length)
            slope = size / length if self.trend == "local" else None
            levels = Levels(outputs, size, slope)
        driven = response = None
        if self.greens_function is not None:
            driven = DrivenOutputs(
                _per_output(self.greens_function, outputs),
                outputs,
                self.num_forces,
                self.lengthscale or length / 10,
                self.force,
                self.memory,
            )
        elif record.known is not None:
            response = FirstOrder(10 / length).tiled(outputs, 1)
        processes = SmoothProcesses(smooth, outputs, length) if smooth else None
        parts = (bank, levels, driven, response)
        return MarkovModel(outputs, likelihood, *parts, smooth=processes)

    def _sizes(self, record: Record) -> tuple[int, int]:
        """Oscillators at peaks, and broad ones."""
        if self.modes != "auto":
            broad = self.modes // 5
            return self.modes - broad, broad
        if self.greens_function is not None:
            return 0, 0
        entries = int((~np.isnan(record.targets)).sum())
        room = min(entries // _ENTRIES, entries // (_ROWS * record.num_outputs))
        count = min(_PEAKS + _BROAD, max(2, room))
        broad = count // 5
        return count - broad, broad


def _covariance(record: Record) -> Tensor:
    """Of outputs, from the rows that each pair of them has; those that have none are unrelated."""
    seen = ~np.isnan(record.targets)
    values = np.where(seen, record.targets - np.nanmean(record.targets, 0), 0.0)
    pairs = seen.T.astype(float) @ seen.astype(float)
    return torch.tensor(values.T @ values / np.maximum(pairs, 1.0))


def _per_output(
    templates: GreensFunction | Sequence[GreensFunction], outputs: int
) -> GreensFunction | list[GreensFunction]:
    if isinstance(templates, GreensFunction):
        return templates.tiled(outputs, 1)
    if len(templates) != outputs:
        raise InputError(
            f"greens_function must be one, or one per output ({outputs}); got {len(templates)}. "
            "Add or remove some."
        )
    return [one.tiled(1, 1) for one in templates]


def _start_bank(
    bank: OscillatorBank, found: Spectrum, record: Record, generator: torch.Generator
) -> None:
    """Peaks at the spectrum, the others over the band; small random loadings beside."""
    peaks, broad = len(found.frequency), len(bank.log_decay) - len(found.frequency)
    resolution = 2 * math.pi / found.span
    low, high = _BAND

    def joined(of_peaks: Tensor | float, of_broad: Tensor | float) -> Tensor:
        ones = torch.ones(peaks, dtype=torch.float64), torch.ones(broad, dtype=torch.float64)
        return torch.cat((of_peaks * ones[0], of_broad * ones[1]))

    band = torch.linspace(low, high, max(broad, 1), dtype=torch.float64)[:broad] / record.step
    usual = _BROAD_DECAY / record.step
    bank.frequency_centre.copy_(joined(torch.tensor(found.frequency), band))
    bank.decay_centre.copy_(joined(_PERIODS_KEPT / found.span, usual))
    bank.least_decay.copy_(joined(_LEAST_DECAY / found.span, 0.0))
    bank.reach.copy_(joined(_REACH * resolution, usual))
    waves = torch.tensor(np.stack([found.loadings.real, found.loadings.imag], -1))
    loadings = torch.zeros(record.num_outputs, peaks + broad, 2, dtype=torch.float64)
    loadings[:, :peaks] = waves
    noise = torch.randn(loadings.shape, generator=generator, dtype=torch.float64)
    loadings += joined(_JITTER, math.hypot(_JITTER, _BROAD_START))[:, None] * noise
    bank.start(loadings)
    with torch.no_grad():
        bank.log_decay[:peaks] = math.log(_FIRST_DECAY / _PERIODS_KEPT) / DECAY_SPREAD


def _start_signs(model: MarkovModel, record: Record) -> None:
    """Gains of either sign are tried, output by output, and the better one is kept."""
    driven = model.driven
    if driven is None or record.num_outputs == 1:
        return
    cut = record.whole()
    with torch.no_grad():
        for d in range(1, record.num_outputs):
            before = float(model.evidence(record, cut))
            driven.gain[d].neg_()
            if not float(model.evidence(record, cut)) > before:
                driven.gain[d].neg_()


def _rises(record: Record) -> bool:
    """Whether some output changes over the record by much more than it scatters about a line."""
    first, length = record.span
    for column in record.targets.T:
        seen = ~np.isnan(column)
        if seen.sum() < 3:
            continue
        x = np.stack([np.ones(seen.sum()), (record.times[seen] - first) / length], 1)
        weights, *_ = np.linalg.lstsq(x, column[seen], rcond=None)
        scatter = float(np.std(column[seen] - x @ weights))
        if abs(weights[1]) > 3 * scatter:
            return True
    return False
