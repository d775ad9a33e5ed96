"""What the sums of Markov states refuse in a sentence, and odd arguments that are right."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.sums import Backend, markov_evidence, markov_smooth
from deeplfm.sums.c import library
from markov_series import learning, random_series, some_readout
from reference.markov import Series, dense

FORMS: list[Backend] = ["plain", "c"] if library.is_built() else ["plain"]
OF = random_series(3, 6, 2, 2, 2, 1, noise=(3, 6))


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"turn": zeros(6, 3)}, r"turn of markov_evidence must be \[T = 6, K = 2\]; got \[6, 3\]"),
        ({"turn": zeros(5, 2)}, "turn of markov_evidence must be"),
        ({"transition": zeros(6, 1, 2)}, "transition of markov_evidence must be"),
        ({"diffusion": zeros(6, 2, 2)}, "diffusion of markov_evidence must be"),
        ({"start": zeros(2, 2)}, "start of markov_evidence must be"),
        ({"start": zeros(1)}, "start of markov_evidence must be"),
        ({"loadings": zeros(2, 4)}, r"2 oscillators and 1 others must be \[D, 5\]; got \[2, 4\]"),
        ({"loadings": zeros(3, 5)}, "must be"),
        ({"noise": zeros(2, 1, 2)}, "noise of markov_evidence must have 1 or B = 3"),
        ({"noise": zeros(1, 5, 2)}, "noise of markov_evidence must have 1 or N = 6"),
        ({"noise": zeros(1, 1, 1)}, "noise of markov_evidence must be"),
        ({"targets": zeros(3, 6, 2)}, "targets of markov_evidence must be"),
        ({"step": OF.step[:, :5]}, "step of markov_evidence must be"),
        ({"observed": OF.observed[:2]}, "observed of markov_evidence must be"),
        ({"turn": OF.turn.float()}, "one type on one device"),
        ({"targets": OF.targets.to("meta")}, "one type on one device"),
        ({"step": OF.step.long()}, "step must be int32 and observed bool; got torch.int64"),
        ({"observed": OF.observed.to(torch.uint8)}, "step must be int32 and observed bool"),
        ({"step": OF.step.to("meta")}, "step and observed must be on cpu; got meta"),
        ({"step": OF.step + 6}, "step must number the 6 steps that are given, from 0; got 6 to"),
        ({"step": OF.step - 6}, "step must number the 6 steps"),
    ],
)
def test_wrong_arguments_are_refused_with_a_sentence(
    form: Backend, changed: dict[str, Any], reason: str
) -> None:
    wrong = OF._replace(**changed)
    with pytest.raises(InputError, match=reason):
        markov_evidence.by(form, *wrong)
    with pytest.raises(InputError, match=reason.replace("evidence", "smooth")):
        markov_smooth.by(form, *wrong, zeros(1, wrong.loadings.shape[1]))


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("readout", [zeros(3, 4), zeros(5), zeros(2, 5).float()])
def test_a_wrong_readout_is_refused(form: Backend, readout: Tensor) -> None:
    with pytest.raises(InputError, match=r"readout|one type"):
        markov_smooth.by(form, *OF, readout)


def strided(part: Tensor) -> Tensor:
    """The same numbers, every other one of a longer tensor, with the axes in another order."""
    turned = part.permute(*reversed(range(part.ndim))).contiguous()
    longer = torch.stack((turned, turned), -1).flatten(-2)
    return longer[..., ::2].permute(*reversed(range(part.ndim)))


@pytest.mark.parametrize("form", FORMS)
def test_tensors_need_not_be_contiguous(form: Backend) -> None:
    other = Series._make(strided(part) for part in OF)
    assert not other.targets.is_contiguous()
    leaves, others = learning(OF), other._replace(targets=other.targets.requires_grad_())
    found, wanted = markov_evidence.by(form, *others), markov_evidence.by(form, *leaves)
    for part, right in zip(found, wanted, strict=True):
        assert torch.equal(part, right)
    # What comes back may have strides of any kind too.
    upstream = strided(torch.randn(3, 2, 2, dtype=torch.float64))
    (slope,) = torch.autograd.grad((found[1] * upstream).sum(), others.targets)
    (right,) = torch.autograd.grad((wanted[1] * upstream).sum(), leaves.targets)
    torch.testing.assert_close(slope, right)
    readout = some_readout(OF)
    pairs = zip(
        markov_smooth.by(form, *other, strided(readout)),
        markov_smooth.by(form, *OF, readout),
        strict=True,
    )
    for part, right in pairs:
        assert torch.equal(part, right)


def test_float32_is_right_to_its_digits() -> None:
    """The compiled form is of float64: others take the plain one."""
    parts = (part.float() if part.is_floating_point() else part for part in OF)
    readout = some_readout(OF)
    small = Series._make(parts)
    for part, right in zip(markov_evidence(*small), markov_evidence(*OF), strict=True):
        assert part.dtype == torch.float32
        torch.testing.assert_close(part.double(), right, rtol=1e-4, atol=1e-4)
    pairs = zip(markov_smooth(*small, readout.float()), markov_smooth(*OF, readout), strict=True)
    for part, right in pairs:
        torch.testing.assert_close(part.double(), right, rtol=1e-3, atol=1e-4)


def test_more_outputs_than_the_kernel_has_room_for() -> None:
    of = random_series(1, 3, 65, 1, 2, 1, missing=0.1)
    readout = some_readout(of)[:2]
    answer = dense(of, 0, readout)
    torch.testing.assert_close(markov_evidence(*of)[0][0], answer.log_det)
    torch.testing.assert_close(markov_smooth(*of, readout)[1][0], answer.variance)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("series", "rows", "columns"), [(0, 4, 1), (2, 0, 1), (2, 4, 0), (1, 1, 1), (9, 1, 2)]
)
def test_nothing_and_next_to_nothing(form: Backend, series: int, rows: int, columns: int) -> None:
    of = random_series(series, rows, 2, columns, 2, 1, steps=3)
    leaves = learning(of)
    log_det, gram = markov_evidence.by(form, *leaves)
    assert log_det.shape == (series,)
    assert gram.shape == (series, columns, columns)
    if log_det.requires_grad:
        torch.autograd.grad(log_det.sum() + gram.sum(), leaves[:8], allow_unused=True)
    for count in (0, 1):
        mean, variance, weights, _ = markov_smooth.by(form, *of, some_readout(of)[:count])
        assert mean.shape == (series, rows, count, columns)
        assert variance.shape == (series, rows, count)
        assert weights.shape == of.targets.shape


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["decay", "start", "noise", "targets"])
def test_one_argument_alone_may_learn(form: Backend, name: str) -> None:
    """And of one result alone: the slope of the other is then nothing."""
    alone = OF._replace(**{name: getattr(OF, name).clone().requires_grad_()})
    whole = learning(OF)
    for place in (0, 1):
        if (place, name) == (0, "targets"):
            continue  # log det does not depend on them
        found, wanted = (
            torch.autograd.grad(markov_evidence.by(form, *of)[place].sum(), getattr(of, name))[0]
            for of in (alone, whole)
        )
        torch.testing.assert_close(found, wanted)


@pytest.mark.skipif(not library.is_built(), reason="no compiled kernels here")
def test_threads_change_no_bit() -> None:
    of = random_series(11, 40, 2, 2, 12, 2)
    results = []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            leaves = learning(of)
            found = markov_evidence(*leaves)
            slopes = torch.autograd.grad(found[0].sum() + found[1].sum(), leaves[:8])
            results.append([*found, *slopes, *markov_smooth(*of, some_readout(of))])
    finally:
        torch.set_num_threads(threads)
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


@pytest.mark.skipif(not library.is_built(), reason="no compiled kernels here")
def test_processors_with_shorter_vectors() -> None:
    """Their kernels pad a state otherwise; torch can be told to take them."""
    code = """
import torch
from deeplfm.sums import markov_evidence, markov_smooth
from markov_series import learning, random_series, some_readout
for sizes in ((1, 20, 3, 2, 5, 3), (2, 9, 2, 1, 8, 4), (1, 5, 1, 1, 0, 1)):
    of = random_series(*sizes)
    leaves = learning(of)
    both = []
    for form in ("plain", "c"):
        found = markov_evidence.by(form, *leaves)
        learnt = [part for part in leaves[:8] if part.numel()]
        slopes = torch.autograd.grad(found[0].sum() + found[1].sum(), learnt)
        both.append([*found, *slopes, *markov_smooth.by(form, *of, some_readout(of))])
    for wanted, part in zip(*both, strict=True):
        torch.testing.assert_close(part, wanted, rtol=1e-10, atol=1e-10)
"""
    paths = [str(Path(__file__).parents[1]), str(Path(library.__file__).parents[3])]
    shorter = {"ATEN_CPU_CAPABILITY": "avx2", "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | shorter)
    assert done.returncode == 0, done.stderr
