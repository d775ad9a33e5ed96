"""What the kernels of C are told: structures with the fields of their counterparts in C.

Sizes are compared when the library is loaded (`library`): a field that one side has and the other
has not would otherwise make a kernel read other memory.
"""

import ctypes

from torch import Tensor

INT, LONG, ARRAY = ctypes.c_int, ctypes.c_long, ctypes.c_void_p

GIVEN = ("z", "ell", "variance", "shift", "log_diagonal", "below", "center", "frame")
NUMBERS = ("phase", "xi", "weights", "noise", "eta")
KEPT = ("scaled", "gram", "factor", "values", "unscaled", "fine", "turns", "theta", "coefficients")
MODEL = (
    *("decay", "turn", "transition", "diffusion", "start", "loadings", "noise", "targets"),
    *("step", "observed"),
)
LEARNT = ("z", "ell", "variance", "shift", "log_diagonal", "below")


class Split(ctypes.Structure):
    """Sets of inputs, the samples that share each, and how points are divided."""

    _fields_ = (("batches", INT), ("each", INT), ("points", INT), ("chunks", INT))

    @property
    def tasks(self) -> int:
        return int(self.batches * self.chunks)


class Job(ctypes.Structure):
    """The arguments of a kernel."""

    def fill(self, **tensors: Tensor | None) -> None:
        """Where these are, if they are; they must outlive the call."""
        for name, values in tensors.items():
            setattr(self, name, None if values is None else values.data_ptr())


class Bumps(Job):
    """`bumps.c`."""

    _fields_ = (
        ("split", Split),
        *((name, INT) for name in ("inputs", "outputs", "forces", "count")),
        ("x", ARRAY),
        *((name, LONG) for name in ("x_s", "x_n", "x_p")),
        *((name, ARRAY) for name in ("centers", "scale", "decay", "weights", "out", "gradient")),
        *((name, LONG) for name in ("g_s", "g_n", "g_d")),
        *((f"by_{name}", ARRAY) for name in ("x", "parameters", "weights")),
        *((f"by_{name}", ARRAY) for name in ("centers", "scale", "decay")),
    )


class Planes(Job):
    """`planes.c`, sums of waves."""

    _fields_ = (
        ("split", Split),
        *((name, INT) for name in ("inputs", "columns", "waves")),
        ("x", ARRAY),
        *((name, LONG) for name in ("x_s", "x_n", "x_p")),
        *((name, ARRAY) for name in ("omega", "cosine", "sine", "out", "gradient")),
        *((name, LONG) for name in ("g_s", "g_n", "g_c")),
        *((name, ARRAY) for name in ("by_x", "by_omega", "by_weights")),
    )


class WaveWeights(Job):
    """`planes.c`, weights of waves."""

    _fields_ = (
        *((name, INT) for name in ("samples", "inputs", "outputs", "forces", "count")),
        *((name, ARRAY) for name in ("omega", "phase", "decay", "sensitivities", "amplitude")),
        *((name, ARRAY) for name in ("cosine", "sine")),
        *((f"by_{name}", ARRAY) for name in ("omega", "decay", "sensitivities", "amplitude")),
    )


class Fourier(Job):
    """`fourier.h`."""

    _fields_ = (
        ("split", Split),
        *((name, INT) for name in ("first", "last")),
        *((name, INT) for name in ("inputs", "groups", "outputs", "forces", "count", "after")),
        ("x", ARRAY),
        *((name, LONG) for name in ("x_s", "x_n", "x_p")),
        *((name, ARRAY) for name in ("omega", "decay", "amplitude", "weights")),
        *((name, ARRAY) for name in ("table", "out", "gradient")),
        *((name, LONG) for name in ("g_s", "g_n", "g_d")),
        *((f"by_{name}", ARRAY) for name in ("x", "table", "weights")),
        *((f"by_{name}", ARRAY) for name in ("omega", "decay", "amplitude")),
    )


class Lookup(Job):
    """`lookup.c`."""

    _fields_ = (
        ("split", Split),
        *((name, INT) for name in ("inputs", "outputs", "size")),
        ("x", ARRAY),
        *((name, LONG) for name in ("x_s", "x_n", "x_p")),
        *((name, ARRAY) for name in ("spacing", "table")),
        ("sides", INT),
        *((name, ARRAY) for name in ("out", "gradient")),
        *((name, LONG) for name in ("g_s", "g_n", "g_d")),
        *((f"by_{name}", ARRAY) for name in ("x", "table")),
    )


class Matheron(Job):
    """`matheron.h`."""

    _fields_ = (
        *((name, INT) for name in ("forces", "points", "inputs", "samples", "basis")),
        *((name, INT) for name in ("z_rows", "ell_rows")),
        *((name, ctypes.c_double) for name in ("jitter", "unit")),
        *((name, ARRAY) for name in (*GIVEN, *NUMBERS, *KEPT)),
        *((f"by_{name}", ARRAY) for name in ("theta", "coefficients", *LEARNT)),
    )


class Markov(Job):
    """`markov.h`."""

    _fields_ = (
        *((name, INT) for name in ("series", "rows", "outputs", "columns", "steps")),
        *((name, INT) for name in ("oscillators", "dense", "readouts", "segment", "groups")),
        *((name, INT) for name in ("noise_series", "noise_rows")),
        *((name, ARRAY) for name in MODEL),
        *((name, ARRAY) for name in ("log_det", "gram", "kept", "by_log_det", "by_gram")),
        *((f"by_{name}", ARRAY) for name in MODEL[:8]),
        *((name, ARRAY) for name in ("readout", "mean", "variance", "weights")),
    )

    @property
    def elements(self) -> int:
        """Numbers of all covariances that a filter goes through."""
        states = 2 * self.oscillators + self.dense
        return int(self.series * self.rows * states**2)


JOBS: dict[str, type[ctypes.Structure]] = {
    "bumps": Bumps,
    "planes": Planes,
    "wave_weights": WaveWeights,
    "fourier": Fourier,
    "lookup": Lookup,
    "matheron": Matheron,
    "markov": Markov,
}
