"""What one of several processes does in the tests of training together: `scene folder`.

Not a test itself; `test_distributed.py` starts it, once for each rank.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from deeplfm import FourierDLFM
from deeplfm.data import cardiac, dataset, files
from deeplfm.data.stored import Stored
from deeplfm.errors import InputError, NumericalError, ProcessError
from deeplfm.models import DeepLFM
from deeplfm.objectives import Batch
from deeplfm.regressor.fitting import fit
from deeplfm.training import Processes, Stage, Trainer, Training, join
from deeplfm.training.distributed import ALONE
from small_models import deep, deep_batch

GRADIENTS = {
    "all rows": Training(num_samples=3),
    "a batch that divides": Training(num_samples=3, batch_size=8),
    "a batch that does not": Training(num_samples=3, batch_size=7),
    "clipped": Training(num_samples=3, batch_size=7, gradient_norm=0.5),
    "multi-sample": Training(num_samples=3, batch_size=5, objective="multi_sample"),
}
STEPS = Training(
    steps=20,
    num_samples=2,
    batch_size=7,
    gradient_norm=0.5,
    stages=(Stage(0.3, 1, frozenset({"frequencies", "hyperparameters"})),),
)


def gaps() -> Batch:
    """13 rows, what was not observed is NaN."""
    batch = deep_batch(13)
    return batch._replace(y=torch.where(batch.observed, batch.y, torch.nan))


def moved() -> DeepLFM:
    """Away from the prior, where the KL and its gradients are 0."""
    model, generator = deep(), torch.Generator().manual_seed(2)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(torch.randn(value.shape, generator=generator, dtype=value.dtype), alpha=0.1)
    return model


def gradients(training: Training, processes: Processes = ALONE) -> torch.Tensor:
    """Of the first step, after what is recorded of it; with the draws of one seed everywhere."""
    trainer = Trainer(moved(), gaps(), training, 0, processes)
    trainer.generator.manual_seed(5)
    record = trainer._one_step()
    found = [p.grad.flatten() for p in trainer._parameters() if p.grad is not None]
    return torch.cat([record, *found])


def parameters(trainer: Trainer) -> torch.Tensor:
    return torch.cat([value.flatten().double() for value in trainer.model.state_dict().values()])


def write(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    files.save_tensors(path, tensors)


def sums(folder: Path, processes: Processes) -> None:
    found = {name: gradients(training, processes) for name, training in GRADIENTS.items()}
    write(folder / f"sums_{processes.rank}_of_{processes.size}", found)


def steps(folder: Path, processes: Processes) -> None:
    """Trained at once, and in two parts with a checkpoint between them."""
    whole = Trainer(deep(), gaps(), STEPS, 1, processes)
    whole.run()
    part = Trainer(deep(), gaps(), STEPS, 1, processes)
    part.run(until=10)
    state = part.state()
    if processes.leads:
        write(folder / f"checkpoint_of_{processes.size}", state)
    resumed = Trainer(deep(), gaps(), STEPS, 1, processes)
    resumed.restore(state)
    resumed.run()
    found = {"whole": parameters(whole), "resumed": parameters(resumed)}
    found["loss"] = whole.history()["loss"]
    found["draw"] = torch.randn(3, generator=whole.generator)
    write(folder / f"steps_{processes.rank}_of_{processes.size}", found)


def more(folder: Path, processes: Processes) -> None:
    """From a checkpoint of two processes, and bad luck in one of them."""
    resumed = Trainer(deep(), gaps(), STEPS, 1, processes)
    resumed.restore(files.load_tensors(folder / "checkpoint_of_2"))
    started_at = resumed.step
    resumed.run()
    found = {"resumed": parameters(resumed), "started_at": torch.tensor(started_at)}
    found["loss"] = resumed.history()["loss"]
    found["draw"] = torch.randn(3, generator=resumed.generator)
    unlucky = Trainer(deep(), gaps(), STEPS, 1, processes)
    unlucky.run(until=10)
    found["good"] = parameters(unlucky)
    original = unlucky.model.draw_for_training

    def fail(*arguments: object, **options: object) -> object:
        if processes.rank == 1 and unlucky.step == 13:
            raise InputError("a parameter must be a number; got NaN. Look.")
        return original(*arguments, **options)  # type: ignore[arg-type]

    unlucky.model.draw_for_training = fail  # type: ignore[method-assign, assignment]
    try:
        unlucky.run()
    except NumericalError:
        found["restored"] = parameters(unlucky)
    write(folder / f"more_{processes.rank}_of_{processes.size}", found)


def whole_fit(folder: Path, processes: Processes) -> None:
    """The library's own `fit`, with all that has to be decided."""
    series = cardiac(40)
    training = Training(steps=6, num_samples=1, restarts=2, held_out=0.2, checkpoint_every=4)
    recipe = FourierDLFM(num_features=6, hidden_dim=2)
    data = dataset(series.times, series.training())
    model = fit(data, recipe, training, checkpoints=folder / "fit")
    found = {"mean": torch.tensor(model.predictive(series.times).mean)}
    found["steps"] = torch.tensor(model.steps)
    own = folder / f"rows_{processes.rank}.npy"
    np.save(own, np.hstack([data.x, data.y]))
    batches = Training(steps=5, num_samples=2, batch_size=9)
    stored = fit(Stored(own, data.input_names, data.output_names), recipe, batches)
    found["stored"] = torch.tensor(stored.predictive(series.times).mean)
    found["in memory"] = torch.tensor(fit(data, recipe, batches).predictive(series.times).mean)
    try:
        fit(dataset(series.times + processes.rank, series.training()), recipe, training)
    except InputError as error:
        found["refused"] = torch.tensor("given the same data" in str(error))
    write(folder / f"fit_{processes.rank}_of_{processes.size}", found)


def silence(folder: Path, processes: Processes) -> None:
    """One process does not answer; the other has patience for two seconds."""
    if processes.rank == 1:
        time.sleep(60)
    began = time.monotonic()
    try:
        processes.share(lambda: None)
        processes.gather(torch.zeros(1))
    except ProcessError as error:
        text = f"{time.monotonic() - began:.1f} {error}"
        (folder / "silence.txt").write_text(text)


SCENES = {"sums": sums, "steps": steps, "more": more, "fit": whole_fit, "silence": silence}


def start(size: int, command: Sequence[str]) -> list[subprocess.Popen[str]]:
    """`command` in so many processes, as torchrun would start them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = os.environ | {
        "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }  # fmt: skip
    return [
        subprocess.Popen(
            [sys.executable, *command],
            env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    processes = join("cpu", patience=2.0 if "silence" in sys.argv else 60.0)
    for scene in sys.argv[2:]:
        SCENES[scene](Path(sys.argv[1]), processes)
