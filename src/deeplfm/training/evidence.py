"""Learning by evidence: Adam on the raw parameters of a Markov model, whole or by windows.

    loss = -(log evidence · rows of all / rows of the window + log prior)

Works like `Trainer` from outside: steps, a history, checkpoints that resume bit for bit.
"""

import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import files
from deeplfm.errors import InputError, NumericalError
from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace.clock import Clock
from deeplfm.statespace.record import Cut, Record
from deeplfm.training.checkpoints import ENDING, Checkpoints
from deeplfm.training.clock import fit_clock
from deeplfm.training.plateau import Ending
from deeplfm.training.progress import Report
from deeplfm.training.robust import noise_scale
from deeplfm.training.schedule import Training
from deeplfm.training.threads import one_thread

_STRIDE = 5.0  # raw numbers are of size 1: steps may be longer than those of weights
_WHOLE = 3000  # rows up to which every step sees all of them
WINDOW, _AT_ONCE = 1000, 2  # rows of a window, and windows of a step
_ROUNDS, _ROBUST_EVERY = 2, 5  # of noise with heavy tails, in windows; steps between, whole
_STEADY = 0.6  # share of the steps before the clock of the rhythm is asked for
_COLUMNS = ("step", "loss", "log_evidence", "log_prior", "seconds")
_NAME = "evidence"
CHECKPOINT = _NAME + ENDING


@final
class EvidenceTrainer:
    """Trains one model on one record."""

    def __init__(
        self,
        model: MarkovModel,
        record: Record,
        training: Training,
        seed: int,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.model, self.record, self.training = model, record, training
        self.step = 0
        self._parameters = [raw.value for raw in model.raw()]
        rate = _STRIDE * training.learning_rate
        self._optimiser = torch.optim.Adam(self._parameters, lr=rate, betas=(0.9, 0.95))
        self._generator = torch.Generator().manual_seed(seed)
        self._records: list[list[float]] = []
        self.checkpoints = checkpoints
        self._began = time.perf_counter()
        self._spent = 0.0
        self._whole = record.whole() if len(record.times) <= _WHOLE else None
        self._scale: Tensor | None = None  # of the noise of every entry, where tails are heavy
        self._ending = Ending(training)
        # Until then the clock is steady; a second layer has a rhythm that has its clock already.
        self._clock_at = 0 if model.phase is not None else round(_STEADY * training.steps)

    def run(self, until: int, report: Report | None = None) -> None:
        """Steps up to `until`; what was recorded is in `history`."""
        self._began = time.perf_counter()
        every = self.training.checkpoint_every
        with one_thread():
            while self.step < min(until, self._ending.step):
                if self.model.phase is None and self.step == self._clock_at:
                    clock = fit_clock(self.model, self.record)
                    self.model.clock = None if clock is None else clock.mean()
                self._one_step()
                self._look(self.step)
                if report is not None:
                    report(self.step, self._records[-1][1])
                last = self.step == min(until, self._ending.step)
                if self.checkpoints is not None and (self.step % every == 0 or last):
                    self.save()

    @property
    def exact(self) -> bool:
        """Whether every step sees all rows."""
        return self._whole is not None

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.step >= self._ending.step

    def history(self) -> Mapping[str, NDArray[np.float64]]:
        """One entry per step."""
        table = np.array(self._records).reshape(-1, len(_COLUMNS))
        return dict(zip(_COLUMNS, table.T, strict=True))

    def objective(self, cut: Cut) -> tuple[Tensor, Tensor]:
        """The log evidence of rows, as if they were all, and the log prior."""
        rows = cut.observed.sum() if self._whole is None else None
        share = 1.0 if rows is None else float(self._observed / max(1, int(rows)))
        scale, probe, phase = self._noise_scale(cut), None, self.model.phase
        if phase is not None:
            probe = torch.randn(phase.count, generator=self._generator, dtype=torch.float64)
        found = self.model.evidence(self.record, cut, None, scale, self.training.backend, probe)
        return share * found, self.model.log_prior()

    def save(self) -> None:
        """A checkpoint, whole or not at all; before the first step there is nothing to keep."""
        if self.checkpoints is None or self.step == 0:
            return
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for k, part in enumerate(self._parameters):
            state = self._optimiser.state[part]
            tensors |= {f"adam.{k}.{name}": state[name] for name in ("exp_avg", "exp_avg_sq")}
        if self._scale is not None:
            tensors["scale"] = self._scale
        if (clock := self.model.clock) is not None:
            for k, (knots, faster) in enumerate(zip(clock.knots, clock.faster, strict=True)):
                tensors[f"clock.{k}.knots"] = torch.from_numpy(knots)
                tensors[f"clock.{k}.faster"] = torch.from_numpy(faster)
        tensors["generator"] = self._generator.get_state()
        tensors["records"] = torch.tensor(self._records, dtype=torch.float64)
        self.checkpoints.save(_NAME, tensors, step=self.step)

    def resume(self) -> None:
        """Go on from the checkpoint in the folder, if there is one."""
        found = None if self.checkpoints is None else self.checkpoints.load(_NAME)
        if self.checkpoints is None or found is None:
            return
        path = self.checkpoints.folder / CHECKPOINT
        with files.understood(path):
            self._restore(*found, path)

    def _restore(self, tensors: Mapping[str, Tensor], said: Mapping[str, Any], path: Path) -> None:
        part = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
        try:
            self.model.load_state_dict(part)
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise InputError(
                f"checkpoint must be of the same model; {path} is not ({reason}). Delete it, or "
                "choose another folder."
            ) from None
        self.step = int(said["step"])
        self._generator.set_state(tensors["generator"])
        self._scale = tensors.get("scale")
        series = range(sum(name.endswith(".knots") for name in tensors))
        self.model.clock = None
        if series:
            parts = ("knots", "faster")
            own = ([tensors[f"clock.{k}.{part}"].numpy() for k in series] for part in parts)
            self.model.clock = Clock(*map(tuple, own))
        self._records = tensors["records"].tolist()
        self._spent = self._records[-1][-1] if self._records else 0.0
        for step in range(1, self.step + 1):
            self._look(step)
        for k, parameter in enumerate(self._parameters):
            names = ("exp_avg", "exp_avg_sq")
            state = {name: tensors[f"adam.{k}.{name}"] for name in names}
            self._optimiser.state[parameter] = {"step": torch.tensor(float(self.step)), **state}

    def _one_step(self) -> None:
        cut = self._whole
        if cut is None:
            cut = self.record.windows(_AT_ONCE, WINDOW, self._generator)
        for group in self._optimiser.param_groups:
            group["lr"] = _STRIDE * self._ending.rate(self.step)
        self._optimiser.zero_grad()
        evidence, prior = self.objective(cut)
        loss = -(evidence + prior)
        loss.backward()
        if not bool(loss.isfinite()):
            raise NumericalError(
                "the evidence of the model must be finite; got "
                f"{loss.item()} at step {self.step}. Check the data for extreme values."
            )
        self._optimiser.step()
        self.step += 1
        seconds = self._spent + time.perf_counter() - self._began
        values = (float(self.step), loss.item(), evidence.item(), prior.item(), seconds)
        self._records.append(list(values))

    def _look(self, step: int) -> None:
        """Where the bound has stopped rising the clock comes, and after it the end."""
        if not self._ending.is_time(step):
            return
        if step >= self._clock_at:
            self._ending.look(step, [row[1] for row in self._records[self._clock_at : step]])
        elif self._ending.is_flat([row[1] for row in self._records[:step]]):
            self._clock_at = step

    def _noise_scale(self, cut: Cut) -> Tensor | None:
        """How much more noise than usual each entry has; of windows found anew."""
        if self._whole is None:
            return noise_scale(self.model, self.record, cut, rounds=_ROUNDS)
        if self.step % _ROBUST_EVERY == 0:
            self._scale = noise_scale(self.model, self.record, cut, self._scale, rounds=1)
        return self._scale

    @cached_property
    def _observed(self) -> int:
        return int((~np.isnan(self.record.targets)).sum())
