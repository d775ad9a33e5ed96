"""The compiled kernels of the CPU: found, if they were built for this machine, and called.

They are built with the package where there is a C compiler, once for each kind of processor
(`hatch_build.py`). Without them sums have forms made of torch's operations.
Arguments travel as structures (`jobs`), whose sizes are compared at load.
"""

import ctypes
import logging
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.sums.c.jobs import ARRAY, JOBS, Job, Split
from deeplfm.sums.constants import LOOKUP_NODES
from deeplfm.sums.torch.interpolation import lagrange

logger = logging.getLogger(__name__)

KINDS = {"AVX512": "x86-64-v4", "AVX2": "x86-64-v3"}  # torch's names for processors; ours
_TASKS = 8  # that points are divided into, if samples are fewer
_POINTS = 64  # of a task, at least
_SMALL = 2**15  # waves or bumps that a second thread would not be worth


def split_of(x: Float[Tensor, "S3 N P"], samples: int) -> Split:
    """The same whatever the number of threads, and so are the bits of sums."""
    batches, points = x.shape[:2]
    chunks = min(math.ceil(_TASKS / batches), math.ceil(points / _POINTS))
    return Split(batches, samples // batches, points, max(1, chunks))


def call(name: str, job: Job, elements: int) -> None:
    """A kernel, on as many threads as torch has, for so many waves or bumps."""
    threads = torch.get_num_threads() if elements > _SMALL else 1
    if not getattr(_library(), name)(ctypes.byref(job), threads):
        raise MemoryError(f"{name} found no memory; close other programs or use fewer samples.")


def number(name: str, job: Job) -> int:
    """What a function of the library counts for a job."""
    count = getattr(_library(), name)
    count.restype = ctypes.c_long
    return int(count(ctypes.byref(job)))


def is_built() -> bool:
    """Whether there are kernels for this processor."""
    return _library() is not None


@lru_cache(maxsize=1)
def _library() -> Any:
    kind = KINDS.get(torch.backends.cpu.get_cpu_capability(), "any")
    path = Path(__file__).with_name(f"kernels-{kind}.so")
    if not path.exists():
        logger.info("no compiled kernels (%s): sums have torch's forms", path.name)
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        logger.warning("compiled kernels cannot be loaded (%s): torch's forms instead", error)
        return None
    if not _has_our_structures(library):
        logger.warning(
            "compiled kernels are of other sources (%s): torch's forms instead; "
            "build them with python -m deeplfm.sums.c.build",
            path.name,
        )
        return None
    library.use_threads_of(_threads_of_torch())
    matrices = lagrange(LOOKUP_NODES, (torch.float32, torch.device("cpu")))
    weights, slopes = (part.mT.contiguous() for part in matrices)
    library.set_weights(ARRAY(weights.data_ptr()), ARRAY(slopes.data_ptr()))
    return library


def _has_our_structures(library: Any) -> bool:
    """Whether every structure has the size that C gives it."""
    for name, job in JOBS.items():
        size = getattr(library, f"size_of_{name}", None)
        if size is None or size() != ctypes.sizeof(job):
            return False
    return True


def _threads_of_torch() -> ctypes.c_void_p | None:
    """How torch starts its threads, where it uses OpenMP; without, a kernel has one."""
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        path = Path(torch.__file__).parent / "lib" / name
        if path.exists():
            try:
                return ctypes.cast(ctypes.CDLL(str(path)).GOMP_parallel, ARRAY)
            except (OSError, AttributeError):
                break
    logger.info("torch does not start threads by OpenMP: compiled kernels run on one")
    return None
