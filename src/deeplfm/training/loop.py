"""The loop: draw, score, step; nothing in it waits for the device.

Losses stay on the device; every `CHECK_EVERY` steps they are checked to be finite. One that is not
ends the training with the last good state restored and a clear error.
A trainer is all its `state`: with that of another it goes on exactly where that was. Where
several processes train together, each has a trainer, and all call the same methods.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import final

import torch
from torch import Tensor, nn

from deeplfm.errors import InputError, NumericalError
from deeplfm.models import DeepLFM
from deeplfm.objectives import Batch, Objective, Terms, elbo, multi_sample
from deeplfm.randomness import derived_seed
from deeplfm.training.distributed import ALONE, Processes
from deeplfm.training.engines import Engine
from deeplfm.training.minibatches import Minibatches
from deeplfm.training.optimiser import AdamW
from deeplfm.training.plateau import Ending
from deeplfm.training.schedule import Stage, Training

CHECK_EVERY = 50
_OBJECTIVES: dict[str, Objective] = {"elbo": elbo, "multi_sample": multi_sample}
_COLUMNS = ("loss", "expected_log_likelihood", "kl")


@final
class Trainer:
    """Trains `model` on `data` (all rows, in the model's units), with its own random numbers.

    Where rows do not fit into memory, `read(rows)` gives those of a batch, and `data` is a few of
    them that stand for all `data.total`.
    """

    def __init__(
        self,
        model: DeepLFM,
        data: Batch,
        training: Training,
        seed: int,
        processes: Processes = ALONE,
        read: Callable[[Tensor], Batch] | None = None,
    ) -> None:
        self._read = read
        self.model, self.data, self.training, self.processes = model, data, training, processes
        own = seed if processes.leads else derived_seed(seed, processes.rank)
        self.generator = torch.Generator(device=data.x.device).manual_seed(own)
        self._minibatches = self._with_seed(seed)
        self.roles = _roles(model)
        learnt = [p for role in self.roles.values() for p in role if p.requires_grad]
        self._learnt = {id(parameter) for parameter in learnt}
        self.optimiser = AdamW(learnt, training.learning_rate, training.weight_decay)
        self._engine = Engine(training.backend, self.generator, alone=processes.size == 1)
        self.step = 0
        self._stage: Stage | None = None  # that parameters are frozen for
        self._records: list[Tensor] = []  # one row of _COLUMNS per step, on the device
        self._backends: list[int] = []  # how each step was computed, as its place in USED
        self._seconds: list[float] = []  # since the start, without pauses between runs
        self._good, self._good_step = self._snapshot(), 0
        self._ending = Ending(training)

    def run(
        self, until: int | None = None, report: Callable[[int, float], None] | None = None
    ) -> None:
        """Train up to step `until`, by default to the end; `report(step, loss)` now and then."""
        last = self._ending.step if until is None else min(until, self._ending.step)
        free_to_read = self.data.x.device.type == "cpu"
        started = time.perf_counter() - (self._seconds[-1] if self._seconds else 0.0)
        while self.step < last:
            broken = False
            try:
                record = self._one_step()
                if self.processes.size > 1 and free_to_read:
                    broken = not bool(record.isfinite().all())
            except InputError:  # a check met a parameter that is no number any more
                if self.step == 0:
                    raise
                record, broken = self._no_record(), True
            self._records.append(record)
            self._backends.append(self._engine.used)
            self._seconds.append(time.perf_counter() - started)
            self.step += 1
            checked = broken or self.step % CHECK_EVERY == 0 or self.step == last
            if checked:
                self._check()
                self._look(self.step)
                last = min(last, self._ending.step)
            # To read a loss on the CPU is free; an accelerator would have to be waited for.
            if report is not None and self._records and (checked or free_to_read):
                report(self.step, float(self._records[-1][0]))

    @property
    def end(self) -> int:
        """The last step, sooner than that of the settings once the bound has stopped rising."""
        return self._ending.step

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.step >= self.end

    def history(self) -> dict[str, Tensor]:
        """step, loss, expected_log_likelihood, kl, seconds and backend, one entry per step."""
        table = torch.stack(self._records).cpu() if self._records else torch.zeros(0, len(_COLUMNS))
        columns = dict(zip(_COLUMNS, table.unbind(1), strict=True))
        seconds = torch.tensor(self._seconds, dtype=torch.float64)
        backends = torch.tensor(self._backends, dtype=torch.uint8)
        first = {"step": torch.arange(1, len(table) + 1)}
        return first | columns | {"seconds": seconds, "backend": backends}

    def bound(self, num_samples: int = 16) -> float:
        """The ELBO now, always with the same draws: what starts are compared by."""

        def now() -> float:
            generator = torch.Generator(device=self.data.x.device).manual_seed(0)
            with torch.no_grad():
                backend = self.training.backend
                path = self.model.draw_for_training(num_samples, generator, backend)
                return float(elbo(self.model, self.data, path, backend).objective)

        return self.processes.share(now)

    def state(self) -> dict[str, Tensor]:
        """Everything needed to go on, with any number of processes; all of them ask at once."""
        generators = self.processes.gather(self.generator.get_state().cpu())
        state = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        state |= {f"optimiser.{name}": value for name, value in self.optimiser.state().items()}
        state |= {_generator(rank): value for rank, value in enumerate(generators)}
        state["step"] = torch.tensor(self.step)
        state["seed"] = torch.tensor(self._minibatches.seed)
        history = self.history()
        state["history"] = torch.stack([history[name] for name in _COLUMNS], dim=1)
        return state | {name: history[name] for name in ("seconds", "backend")}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a `state` of the same model and training."""
        try:
            self.model.load_state_dict(_within("model.", state))
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise InputError(
                f"checkpoint must be of the same model; it is not ({reason}). "
                "Train without resuming."
            ) from None
        self.optimiser.load(_within("optimiser.", state))
        self._engine.forget()
        self.step, seed = int(state["step"]), int(state["seed"])
        self._minibatches = self._with_seed(seed)
        own = state.get(_generator(self.processes.rank))
        if own is not None:
            self.generator.set_state(own)
        else:  # more processes than there were
            self.generator.manual_seed(derived_seed(seed, self.processes.rank, self.step))
        self._records = list(state["history"].to(self.data.x).unbind(0))
        self._seconds = state["seconds"].tolist()
        self._backends = state["backend"].tolist()
        self._good, self._good_step = self._snapshot(), self.step
        for step in range(CHECK_EVERY, self.step + 1, CHECK_EVERY):
            self._look(step)

    def _one_step(self) -> Tensor:
        stage = self._prepare()
        given, batch_of = self._batch()
        return self._engine.step(
            stage, given, lambda *tensors: self._compute(batch_of(*tensors), stage)
        )

    def _compute(self, batch: Batch, stage: Stage) -> Tensor:
        """The arithmetic of a step: gradients, their sum over all processes, and the update."""
        try:
            record = self._gradients(batch, stage)
        except InputError:
            if self.processes.size == 1 or self.step == 0:
                raise
            # The others wait for a sum: it will not be finite, and all of them go back.
            record = self._no_record()
            for parameter in self._parameters():
                parameter.grad = torch.full_like(parameter, torch.nan)
        record = self.processes.sum_gradients(self._parameters(), record)
        self.optimiser.step(self.training.gradient_norm)
        return record

    def _prepare(self) -> Stage:
        """The stage, the parameters that move in it, the rate; no gradient yet."""
        stage = self.training.stage(self.step)
        if stage != self._stage:
            self._stage = stage
            for role, parameters in self.roles.items():
                for p in parameters:
                    p.requires_grad_(id(p) in self._learnt and role not in stage.frozen)
        self.optimiser.set_rate(self._ending.rate(self.step))
        self.optimiser.forget_gradients()
        return stage

    def _look(self, step: int) -> None:
        """Whether the training is to end soon."""
        if self._ending.is_open and step % CHECK_EVERY == 0 and step > self._ending.first:
            records = self._records[self._ending.first : step][-self._ending.seen :]
            self._ending.look(step, torch.stack(records)[:, 0].tolist())

    def _gradients(self, batch: Batch, stage: Stage) -> Tensor:
        """Draw, score, differentiate; what is recorded of it."""
        terms = self._score(batch, stage)
        if self.processes.size > 1:  # terms of all processes add up to those of one
            share = len(batch.x) / (self._minibatches.size or self.data.total)
            terms = Terms(share * terms.expected_log_likelihood, terms.kl / self.processes.size)
        loss = terms.kl - terms.expected_log_likelihood
        loss.backward()
        with torch.no_grad():
            return torch.stack([loss, terms.expected_log_likelihood, terms.kl])

    def _score(self, batch: Batch, stage: Stage) -> Terms:
        training = self.training
        path = self.model.draw_for_training(
            stage.num_samples,
            self.generator,
            training.backend,
            local=training.local_reparameterisation,
        )
        objective = _OBJECTIVES[stage.objective or training.objective]
        return objective(self.model, batch, path, training.backend)

    def _with_seed(self, seed: int) -> Minibatches:
        device = self.data.x.device if self._read is None else torch.device("cpu")
        return Minibatches(self.data.total, self.training.batch_size, seed, device)

    def _batch(self) -> tuple[Sequence[Tensor], Callable[..., Batch]]:
        """What tells this process's rows of this step from those of others, and the rows from it.

        Rows are looked up as a part of the step, so that a recorded one does it too.
        """
        rows, data = self._minibatches.rows(self.step), self.data
        if rows is None and self.processes.size == 1:
            return (), lambda: data
        own = self.processes.part(self._minibatches.size or data.total)
        if rows is None:
            return (), lambda: Batch(data.x[own], data.y[own], data.observed[own], data.total)
        if self._read is not None:
            return self._read(rows[own])[:3], lambda x, y, seen: Batch(x, y, seen, data.total)
        return (rows[own],), lambda some: Batch(
            data.x[some], data.y[some], data.observed[some], data.total
        )

    def _no_record(self) -> Tensor:
        return torch.full_like(self.data.x[0, 0], torch.nan).expand(len(_COLUMNS))

    def _check(self) -> None:
        if self._finite():
            self._good, self._good_step = self._snapshot(), self.step
            return
        self.model.load_state_dict(self._good)
        recovered = [layer.recover() for layer in self.model.stack]
        if any(recovered):
            # Moments of gradients that were not finite are of no use: the optimiser starts afresh.
            self.optimiser.forget_moments()
            self._engine.forget()
            for column in (self._records, self._seconds, self._backends):
                del column[self._good_step :]
            self.step, self._good = self._good_step, self._snapshot()
            self._ending = Ending(self.training)
            return
        raise NumericalError(
            f"the loss must stay finite; it did not near step {self.step}, and the last good state "
            "is restored. Try a smaller learning_rate, float64, or wider data scaling."
        )

    def _finite(self) -> bool:
        """Whether the last losses and all numbers of the model are, with one look at the device."""
        numbers = [*self._records[-CHECK_EVERY:], *self.model.state_dict().values()]
        return bool(torch.cat([value.reshape(-1) for value in numbers]).isfinite().all())

    def _snapshot(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.model.state_dict().items()}

    def _parameters(self) -> list[Tensor]:
        return self.optimiser.parameters


def _generator(rank: int) -> str:
    """Its name in a checkpoint."""
    return f"generator.{rank}" if rank else "generator"


def _within(prefix: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The part of a checkpoint that `prefix` marks."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def _roles(model: DeepLFM) -> dict[str, list[nn.Parameter]]:
    """All parameters by role; the likelihood's noise is its own, trainable from the start."""
    roles: dict[str, list[nn.Parameter]] = {"noise": list(model.likelihood.parameters())}
    for layer in model.stack:
        for role, parameters in layer.parameter_groups().items():
            roles.setdefault(role, []).extend(parameters)
    return roles
