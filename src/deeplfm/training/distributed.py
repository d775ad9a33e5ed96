"""Processes that train one model together: who this one is, and how they agree.

    torchrun --nproc-per-node=4 -m deeplfm fit …        or `fit(...)` in a script under torchrun

Each takes its share of the rows of a step, with random draws of its own; the gradients are summed,
so every process makes the same step. What is decided is decided by the first, which alone writes.
"""

import atexit
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar, final

import torch
import torch.distributed as dist
from torch import Tensor, nn

from deeplfm.data import files
from deeplfm.errors import DeepLFMError, InputError, ProcessError
from deeplfm.training.messages import error_as_message, error_of, packed, unpacked

TOLD = "the first process has told it"  # a note on errors that need not be told again
PATIENCE = 600.0  # seconds to wait for the others: the first may be reading, starting or writing
_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK")

T = TypeVar("T")


@final
class Processes:
    """Process `rank` of `size`. Where there is one only, nothing is sent and nothing changes.

    Not torch's DistributedDataParallel: it fixes what is trainable when it is made, and stages
    change that; and one sum of all gradients can carry along what is recorded of the step.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def leads(self) -> bool:
        """Whether this is the process that decides and writes."""
        return self.rank == 0

    def device(self, name: str) -> str:
        """The device of this process: for "cuda" the one that torchrun meant for it."""
        return name if self.size == 1 else _own(name)

    def part(self, count: int) -> slice:
        """The share of `count` rows that is this process's; shares differ by one row at most."""
        if count < self.size:
            raise InputError(
                f"the rows of a step must be at least as many as processes ({self.size}); got "
                f"{count}. Use a larger batch_size, or fewer processes."
            )
        return slice(self.rank, None, self.size)

    def sum_gradients(self, parameters: Sequence[Tensor], record: Tensor) -> Tensor:
        """Gradients of all processes added up, in place; `record` likewise, as what is returned."""
        if self.size == 1:
            return record
        learnt = [parameter for parameter in parameters if parameter.requires_grad]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in learnt]
        flat = torch.cat([record, *(gradient.reshape(-1) for gradient in gradients)])
        with _reaching_the_others():
            dist.all_reduce(flat)
        record, *sums = flat.split([len(record), *(gradient.numel() for gradient in gradients)])
        for parameter, total in zip(learnt, sums, strict=True):
            if parameter.grad is not None:
                parameter.grad = total.view_as(parameter).to(parameter)
        return record

    def broadcast(self, model: nn.Module) -> None:
        """The state of the first process's model, to all."""
        if self.size > 1:
            state = {name: value.cpu() for name, value in model.state_dict().items()}
            model.load_state_dict(self.share(lambda: state))

    def gather(self, value: Tensor) -> list[Tensor]:
        """A small tensor of the CPU from every process, by rank."""
        if self.size == 1:
            return [value]
        found = [torch.empty_like(value) for _ in range(self.size)]
        with _reaching_the_others():
            dist.all_gather(found, value)
        return found

    def share(self, action: Callable[[], T]) -> T:
        """What `action` gives in the first process, which alone runs it; its errors likewise.

        It gives JSON and tensors (`messages`).
        """
        if self.size == 1:
            return action()
        result: T | None = None
        error: Exception | None = None
        if self.leads:
            try:
                result = action()
            except (DeepLFMError, OSError) as raised:
                error = raised
        told = {"error": error_as_message(error)} if error is not None else {"value": result}
        message = packed(told) if self.leads else b""
        with _reaching_the_others():
            message = _from_the_first(message)
        if error is not None:
            raise error
        if self.leads:
            return result  # type: ignore[return-value]
        found = unpacked(message)
        if "error" in found:
            failed = error_of(found["error"])
            failed.add_note(TOLD)
            raise failed
        return found["value"]  # type: ignore[no-any-return]

    @contextmanager
    def locked(self, folder: Path, action: str) -> Iterator[None]:
        """The first process holds a folder for all; what is wrong with that, all are told."""
        with ExitStack() as stack:
            self.share(lambda: stack.enter_context(files.locked(folder, action)))
            yield

    def share_work(self, work: Callable[[], Generator[object, None, T]]) -> T:
        """As `share`, for work of any length: it yields now and then, so that nobody gives up."""
        running = work() if self.leads else None

        def go_on() -> dict[str, T]:
            try:
                next(running)  # type: ignore[arg-type]
            except StopIteration as end:
                return {"done": end.value}
            return {}

        while True:
            found = self.share(go_on)
            if "done" in found:
                return found["done"]


ALONE = Processes()


def join(device: str, patience: float = PATIENCE) -> Processes:
    """The processes that torchrun started this one among, or those of a process group."""
    if not dist.is_available():
        return ALONE
    if not dist.is_initialized():
        if not all(name in os.environ for name in _TORCHRUN) or os.environ["WORLD_SIZE"] == "1":
            return ALONE
        cuda = device.startswith("cuda")
        if cuda:
            torch.cuda.set_device(_own(device))
        # Decisions travel by the CPU: they are few, and need not wait for the accelerator.
        with _reaching_the_others():
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=timedelta(seconds=patience)
            )
        atexit.register(_leave)
    return Processes(dist.get_rank(), dist.get_world_size())


def _from_the_first(message: bytes) -> bytes:
    """The bytes of the first process, in all: their number, then they."""
    size = torch.tensor([len(message)])
    dist.broadcast(size, src=0)
    content = torch.zeros(int(size), dtype=torch.uint8)
    if message:
        content = torch.frombuffer(bytearray(message), dtype=torch.uint8)
    dist.broadcast(content, src=0)
    return content.numpy().tobytes()


def _own(name: str) -> str:
    """Each process of a machine has another accelerator."""
    if not name.startswith("cuda"):
        return name
    count, local = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", "0"))
    if name != "cuda" or local >= count:
        raise InputError(
            f"every process must have an accelerator of its own; got device {name!r} and {count} "
            f"of them for process {local} of this machine. Use device 'cuda' and at most {count} "
            "processes."
        )
    return f"cuda:{local}"


def outlast_the_first() -> None:
    """Wait until the first process is gone: torchrun ends all as soon as one ends."""
    with suppress(RuntimeError):
        dist.barrier()


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


@contextmanager
def _reaching_the_others() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ProcessError(
            "all processes of a run must stay to its end; another one has ended or does not "
            f"answer ({reason}). Go on from the last checkpoint (--resume), with any number of "
            "processes."
        ) from error
