"""Bad input gets one clear sentence: what was expected, what came, what to do."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import deeplfm as dlfm
from deeplfm.forces import ForcePrior, InducingPosterior
from deeplfm.responses import (
    bump_response,
    path_response,
    system_bump_response,
    system_wave_response,
    wave_response,
)

F32, F64 = torch.ones(3), torch.ones(3, dtype=torch.float64)
META = torch.ones(3, device="meta")
UNSTABLE = dlfm.LinearODE([4.0, -1.0])

CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "negative decay": (lambda: dlfm.FirstOrder(-1.0), "decay must be above 0; got -1. Pass"),
    "zero damping": (lambda: dlfm.SecondOrder(0.0, 1.0), "damping must be above 0; got 0. Pass"),
    "NaN decay": (
        lambda: dlfm.FirstOrder(math.nan),
        "decay must be finite; got 1 NaN or infinite of 1 entries. Replace",
    ),
    "integer tensor": (
        lambda: dlfm.FirstOrder(torch.tensor(2)),
        r"decay must be a real floating tensor; got torch.int64. Call",
    ),
    "bounds the wrong way": (
        lambda: dlfm.FirstOrder(2.0, bounds={"decay": (3.0, 1.0)}),
        r"bounds of decay must be 0 < low < high; got \(3, 1\). Reorder",
    ),
    "start outside its bounds": (
        lambda: dlfm.FirstOrder(2.0, bounds={"decay": (3.0, 4.0)}),
        r"decay must start strictly between its bounds \(3, 4\); got 2 to 2. Widen",
    ),
    "parameters that do not broadcast": (
        lambda: dlfm.SecondOrder(torch.ones(2, 1), torch.ones(3, 1)),
        r"shapes must broadcast together; got damping \(2, 1\), frequency \(3, 1\). Add",
    ),
    "parameters of two precisions": (
        lambda: dlfm.SecondOrder(torch.ones(2, 1), torch.ones(2, 1).double()),
        "one precision; got damping is torch.float32, frequency is torch.float64. Convert",
    ),
    "decay that is no number": (lambda: dlfm.FirstOrder("a"), "decay must be a number or a tensor"),  # type: ignore[arg-type]
    "flat parameters": (
        lambda: dlfm.FirstOrder(torch.ones(3)),
        r"decay must be a number or \[D, P\]; got shape \(3,\). Add",
    ),
    "one bound": (
        lambda: dlfm.FirstOrder(2.0, bounds={"decay": (3.0,)}),  # type: ignore[dict-item]
        r"bounds of decay must be \(low, high\); got \(3.0,\). Pass two",
    ),
    "a name that is not a quantity": (
        lambda: dlfm.FirstOrder(2.0, learn="dacay"),
        r"learn and bounds must name quantities among \['decay'\]; got \['dacay'\]. Correct",
    ),
    "coefficients that are no list": (
        lambda: dlfm.LinearODE(2.0),  # type: ignore[arg-type]
        "coefficients must be numbers .* got 2.0. Pass a flat list",
    ),
    "times that do not broadcast": (
        lambda: dlfm.SecondOrder(0.3, torch.ones(2, 3).double())(torch.ones(13).double()),
        "shapes must broadcast together; got t",
    ),
    "points that do not broadcast": (
        lambda: system_wave_response(
            dlfm.SecondOrder(torch.ones(2, 3)), torch.ones(13), 0.0, "zero"
        ),
        "shapes must broadcast together; got x",
    ),
    "an array": (
        lambda: wave_response(1.0, 1.0, F64.numpy()),  # type: ignore[arg-type]
        "pole must be a tensor or a number; got ndarray. Use torch.as_tensor",
    ),
    "negative lengthscale without dynamics": (
        lambda: system_bump_response(dlfm.NoDynamics(), 1.0, 0.0, -1.0),
        "lengthscale must be above 0; got -1",
    ),
    "no basis": (
        lambda: ForcePrior(1.0).draw(2, 0),
        "num_basis must be an integer of at least 1; got 0. Pass",
    ),
    "no forces": (lambda: ForcePrior(1.0, num_forces=0), "num_forces must be an integer"),
    "jitter of 0": (
        lambda: InducingPosterior(ForcePrior(1.0), F64[:, None], jitter=0.0),
        "jitter must be above 0; got 0. Leave",
    ),
    "flat x for moments": (
        lambda: InducingPosterior(ForcePrior(1.0), F64[:, None]).moments(F64),
        r"x must be \[N, 1\]; got \(3,\). Add",
    ),
    "float32 x for a float64 path": (
        lambda: ForcePrior(1.0).draw(2, 4)(torch.ones(5, 1)),
        "one precision; got x is torch.float32, the path is torch.float64. Convert",
    ),
    "NaN x for a path": (
        lambda: ForcePrior(1.0).draw(2, 4)(F64[:, None] * math.nan),
        "x must be finite",
    ),
    "an ODE over three inputs, a path over one": (
        lambda: path_response(
            dlfm.FirstOrder(torch.ones(1, 3).double()),
            ForcePrior(1.0).draw(2, 4),
            F64[:, None],
        ),
        r"parameters \(\) or \[D, 1\] for a path over 1 inputs; got \[1, 3\]. Give",
    ),
    "a factor that is not triangular": (
        lambda: InducingPosterior(ForcePrior(1.0), F64[:, None]).whitened.set(
            F64[None], torch.ones(1, 3, 3).double()
        ),
        "factor must be lower triangular; got entries above its diagonal. Pass",
    ),
    "no coefficients": (lambda: dlfm.LinearODE([]), r"coefficients must be .* Use NoDynamics"),
    "NaN coefficient": (lambda: dlfm.LinearODE([1.0, math.nan]), "coefficients must be finite"),
    "normalised but unstable": (
        lambda: dlfm.LinearODE([4.0, 0.0], normalised=True),
        "normalised needs a stable ODE .* Use normalised=False",
    ),
    "delta has no values": (lambda: dlfm.NoDynamics()(F64), "δ has no values; got .* Use"),
    "unstable, infinite memory, wave": (
        lambda: system_wave_response(UNSTABLE, 1.0, 1.0),
        "infinite memory needs a stable ODE .* got a pole with Re s = -0.5. Use memory='zero'",
    ),
    "unstable, infinite memory, bump": (
        lambda: system_bump_response(UNSTABLE, 1.0, 1.0, 1.0),
        "infinite memory needs a stable ODE",
    ),
    "unstable, infinite memory, kernel": (
        lambda: dlfm.LatentForceKernel(UNSTABLE),
        "infinite memory needs a stable ODE",
    ),
    "unstable pole, infinite memory": (
        lambda: wave_response(1.0, 1.0, -0.5 + 1j),
        r"pole must be above 0 \(in its real part\) with infinite memory; got -0.5. Pass",
    ),
    "unstable pole, infinite memory, bump": (
        lambda: bump_response(1.0, 1.0, 1.0, 0.0),
        "pole must be above 0 .* got 0. Pass",
    ),
    "NaN pole": (lambda: bump_response(1.0, 1.0, 1.0, math.nan), "pole must be above 0 .* got nan"),
    "negative lengthscale": (
        lambda: bump_response(F64, F64, -F64, F64, "zero"),
        "lengthscale must be above 0; got -1. Pass positive",
    ),
    "a third memory": (
        lambda: wave_response(1.0, 1.0, 1.0, "long"),  # type: ignore[arg-type]
        r"memory must be one of \['infinite', 'zero'\]; got 'long'. Choose",
    ),
    "mixed precision, wave": (
        lambda: wave_response(F32, F64, F32),
        "one precision; got x is torch.float32, frequency is torch.float64, pole is torch.float32",
    ),
    "mixed precision, bump": (lambda: bump_response(F32, F32, F64, F32), "one precision; got"),
    "mixed precision, G": (lambda: dlfm.FirstOrder(1.0)(F32), "one precision; got t is"),
    "complex of another precision": (
        lambda: bump_response(F32, F32, F32, F64 + 1j),
        "one precision; got .* pole is torch.float64",
    ),
    "two devices": (
        lambda: wave_response(F32, META, F32),
        "one device; got x is on cpu, frequency is on meta, pole is on cpu. Move",
    ),
    "complex input": (lambda: wave_response(F64 + 1j, F64, F64), "x must be real; got .* Pass"),
    "integer input": (
        lambda: wave_response(torch.arange(3), F64, F64),
        r"x must be float32, float64, .* got torch.int64. Convert it, .* x.double\(\)",
    ),
    "shapes that do not broadcast": (
        lambda: wave_response(torch.ones(3), torch.ones(2), 1.0),
        r"shapes must broadcast together; got x \(3,\), frequency \(2,\), pole \(\). Add",
    ),
    "lengthscale of the wrong shape": (
        lambda: ForcePrior(torch.ones(3, 2), num_forces=2, num_inputs=2),
        r"lengthscale must be a number or \[2, 2\]; got \(3, 2\). Check num_forces",
    ),
    "negative variance": (
        lambda: ForcePrior(1.0, -1.0),
        "variance must be above 0; got -1. Pass",
    ),
    "flat x for a force": (
        lambda: ForcePrior(1.0).covariance(F64, F64),
        r"x must be \[N, 1\]; got \(3,\). Add the input dimension",
    ),
    "NaN in x": (
        lambda: ForcePrior(1.0).covariance(F64[:, None] * math.nan, F64[:, None]),
        "x must be finite; got 3 NaN or infinite of 3 entries. Remove",
    ),
    "inducing inputs of the wrong shape": (
        lambda: InducingPosterior(ForcePrior(1.0), F64),
        r"inducing_inputs must be \[M, 1\] or \[1, M, 1\]; got \(3,\). Add",
    ),
    "a path of one input asked for two": (
        lambda: path_response(
            dlfm.FirstOrder(), ForcePrior(1.0).draw(2, 4), torch.ones(5, 2).double()
        ),
        r"x must be \[N, 1\] or \[S, N, 1\]; got \(5, 2\). Add",
    ),
    "a path of two draws asked for three": (
        lambda: ForcePrior(1.0).draw(2, 4)(torch.ones(3, 5, 1).double()),
        r"x must be \[N, P\] or \[2, N, P\]",
    ),
    "NaN in the kernel's x": (
        lambda: dlfm.LatentForceKernel(dlfm.FirstOrder())(F64[:, None] * math.nan),
        "x must be finite",
    ),
    "sensitivities for one output of two": (
        lambda: dlfm.LatentForceKernel(
            dlfm.FirstOrder(torch.ones(2, 1).double()), sensitivities=[[1.0]]
        ),
        r"sensitivities must be \[2, Q\]; got \(1, 1\). One row per output",
    ),
}


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("case", CASES)
def test_one_clear_sentence(case: str) -> None:
    call, pattern = CASES[case]
    with pytest.raises(dlfm.InputError, match=pattern) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert isinstance(caught.value, ValueError)


def test_real_and_complex_of_one_precision_mix() -> None:
    real, complex_ = torch.rand(3) + 0.5, torch.rand(3) + 0.5 + 1j
    assert wave_response(real, real, complex_).dtype == torch.complex64
    assert bump_response(real, real, real, complex_.to(torch.complex64)).dtype == torch.complex64
    assert bump_response(real.double(), 0.0, 1.0, complex_.to(torch.complex128)).shape == (3,)


def test_a_failed_change_loses_nothing() -> None:
    posterior = InducingPosterior(ForcePrior(1.0), F64[:, None])
    before = {name: value.clone() for name, value in posterior.state_dict().items()}
    with pytest.raises(dlfm.InputError, match="factor must have a positive diagonal"):
        posterior.whitened.set(F64[None], torch.zeros(1, 3, 3, dtype=torch.float64))
    for name, value in posterior.state_dict().items():
        assert torch.equal(value, before[name])
