"""What ODEs answer to known inputs c(t), given at times and held between them, exact.

    y_dc(t) = ∫ G_d(t - τ) c_c(τ) dτ,    c constant or linear from one sample to the next

An input is a state too: c' = slope. Over every piece of time the ODE takes one exact step with it,
and all steps are composed pairwise: O(N) work, without a loop over time.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.greens_functions import Dynamics
from deeplfm.shapes import Memory, as_tensors, check_choice, check_finite, check_shape
from deeplfm.statespace.chains import OutputODE, Wiring, output_odes

Hold: TypeAlias = Literal["constant", "linear"]


def known_response(
    greens_functions: Dynamics | Sequence[Dynamics],
    times: Float[Tensor, " N1"],
    values: Float[Tensor, "N1 C"],
    query: Float[Tensor, " N"],
    hold: Hold = "constant",
    memory: Memory = "infinite",
) -> Float[Tensor, "N D C"]:
    """The answer of D ODEs at `query` to C inputs sampled at `times`, float64.

    Before its first sample an input was as there (infinite memory, the ODE in steady state), or the
    ODE was at rest (zero memory); after its last sample it stays. `times` must rise; `query` has
    any order. Gradients go to the ODEs' parameters and to `values`.
    """
    check_choice("hold", hold, Hold)
    check_choice("memory", memory, Memory)
    _check_inputs(times, values, query)
    times, values, query = times.double(), values.double(), query.double()
    odes = output_odes(greens_functions)
    if len(query) == 0:
        return values.new_zeros(0, len(odes), values.shape[1])
    # Before the first sample nothing changes: the answer is that at the first sample.
    moments, order = torch.sort(torch.cat([times, query.clamp(min=times[0])]), stable=True)
    sample = torch.searchsorted(times, moments, right=True) - 1
    slopes = torch.zeros_like(values)
    if hold == "linear" and len(times) > 1:
        rises = values.diff(dim=0) / times.diff()[:, None]
        slopes = torch.cat([rises, torch.zeros_like(values[:1])])
    level = values[sample] + slopes[sample] * (moments - times[sample])[:, None]
    drive = torch.stack([slopes[sample], level], dim=1)
    place = torch.argsort(order)[len(times) :]
    answers = [_answer(ode, moments, drive, memory)[place] for ode in odes]
    if memory == "zero":
        early = (query < times[0])[:, None]
        answers = [torch.where(early, torch.zeros_like(one), one) for one in answers]
    return torch.stack(answers, dim=1)


def _answer(
    ode: OutputODE, moments: Float[Tensor, " N"], drive: Float[Tensor, "N 2 C"], memory: Memory
) -> Float[Tensor, "N C"]:
    """The answer at rising moments, with slope and level of the inputs from each one on."""
    if not ode.factors:
        return drive[:, 1]
    wiring = Wiring(moments)
    rest = moments.new_zeros(())
    slope, level = wiring.single(rest), wiring.single(rest)
    wiring.feed(level, slope, torch.ones_like(rest))
    readout = wiring.readout(wiring.chain(ode.factors, [(level, 1.0)]))[2:]
    system = wiring.system(moments.new_zeros(wiring.size, 0))
    steps, which = torch.unique(moments.diff(), return_inverse=True)
    moves = system.transitions(steps)
    start = moments.new_zeros(wiring.size - 2, drive.shape[2])
    if memory == "infinite":  # filters that pass a constant unchanged stand at it, velocities at 0
        positions = (*system.singles[2:], *system.pairs)
        still = torch.zeros_like(start[:, 0])
        still[[i - 2 for i in positions]] = 1.0
        start = still[:, None] * drive[0, 1]
    pushes = moves[which, 2:, :2] @ drive[:-1]
    states = torch.cat([start[None], _recurrence(moves[which, 2:, 2:], pushes, start)])
    return ode.gain * torch.einsum("i,nic->nc", readout, states)


def _recurrence(
    transition: Float[Tensor, "N n n"], push: Float[Tensor, "N n C"], start: Float[Tensor, "n C"]
) -> Float[Tensor, "N n C"]:
    """x_i = Φ_i x_{i-1} + b_i for all i: every two steps become one, which halves their number."""
    count = len(transition)
    if count == 0:
        return push
    if count == 1:
        return transition @ start + push
    even, odd = slice(0, count - 1, 2), slice(1, count, 2)
    both = transition[odd] @ transition[even]
    pushed = transition[odd] @ push[even] + push[odd]
    after_two = _recurrence(both, pushed, start)
    before = torch.cat([start[None], after_two])[: (count + 1) // 2]
    after_one = transition[::2] @ before + push[::2]
    states = torch.empty_like(push)
    states = states.index_copy(0, torch.arange(0, count, 2, device=push.device), after_one)
    return states.index_copy(0, torch.arange(1, count, 2, device=push.device), after_two)


def _check_inputs(times: Tensor, values: Tensor, query: Tensor) -> None:
    as_tensors({"times": times.sum(), "values": values.sum(), "query": query.sum()})
    check_shape("times", times, ("N1",), "Flatten them first.")
    check_shape("query", query, ("N",), "Flatten them first.")
    check_shape("values", values, (len(times), "C"), "Pass one row per time.")
    for name, value in (("times", times), ("values", values), ("query", query)):
        check_finite(name, value, "Fill or remove those rows.")
    if len(times) == 0:
        raise InputError("known inputs must have one sample or more; got none. Leave them out.")
    if times.device.type == "cpu" and not bool((times.diff() > 0).all()):
        raise InputError(
            "times of known inputs must rise; got a time that is not after the one before. Sort "
            "the rows, and keep one of those at equal times."
        )
