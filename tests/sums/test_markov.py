"""Evidence, gradients and smoother of a Markov state against one dense Gaussian."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from deeplfm.sums import Backend, markov_evidence, markov_smooth
from deeplfm.sums.c import library
from markov_series import LEARNT, learning, random_series, some_readout
from reference.markov import Series, dense

FORMS: list[Backend] = ["plain", "c"] if library.is_built() else ["plain"]
CLOSE = 1e-9  # of the largest number; conditions are below 1e4, and rounding is 1e-16 of each step

f64 = torch.float64


def assert_close(found: Tensor, wanted: Tensor, what: str, tolerance: float = CLOSE) -> None:
    assert found.shape == wanted.shape, what
    if wanted.numel():
        size = max(float(wanted.detach().abs().max()), 1e-6)
        assert float((found - wanted).detach().abs().max()) <= tolerance * size, what


def mixture(log_det: Tensor, gram: Tensor) -> Tensor:
    """One number of all results: what an evidence is, and a gram that need not be symmetric."""
    generator = torch.Generator().manual_seed(3)
    total = (log_det * torch.rand(log_det.shape, generator=generator, dtype=f64)).sum()
    return total + (gram * torch.randn(gram.shape, generator=generator, dtype=f64)).sum()


def gradients(of: Series, log_det: Tensor, gram: Tensor) -> dict[str, Tensor]:
    """By every argument."""
    total = mixture(log_det, gram)
    if not total.requires_grad:  # nothing was observed
        return {name: torch.zeros_like(getattr(of, name)) for name in LEARNT}
    found = torch.autograd.grad(total, of[:8], allow_unused=True, materialize_grads=True)
    return dict(zip(LEARNT, found, strict=True))


def assert_right(of: Series, tolerance: float = CLOSE) -> None:
    """Everything that both sums say, by both forms."""
    readout = some_readout(of)
    leaves = learning(of)
    answers = [dense(leaves, b, readout) for b in range(len(of.targets))]
    log_det = torch.stack([answer.log_det for answer in answers])
    gram = torch.stack([answer.gram for answer in answers])
    wanted = gradients(leaves, log_det, gram)
    for form in FORMS:
        found = markov_evidence.by(form, *leaves)
        assert_close(found[0], log_det, f"log det, {form}", tolerance)
        assert_close(found[1], gram, f"gram, {form}", tolerance)
        for name, slope in gradients(leaves, *found).items():
            assert_close(slope, wanted[name], f"gradient by {name}, {form}", tolerance)
        smoothed = markov_smooth.by(form, *leaves, readout)
        for name, part in zip(("mean", "variance", "weights", "gram"), smoothed, strict=True):
            truth = torch.stack([getattr(answer, name) for answer in answers])
            assert_close(part, truth, f"{name}, {form}", tolerance)
            assert not part.requires_grad


@settings(max_examples=25)
@given(
    series=st.integers(1, 3),
    rows=st.integers(1, 18),
    outputs=st.integers(1, 4),
    columns=st.integers(1, 4),
    oscillators=st.integers(0, 9),
    dense_states=st.integers(0, 4),
    steps=st.integers(1, 18),
    noise=st.tuples(st.booleans(), st.booleans()),
    missing=st.sampled_from([0.0, 0.4, 0.9]),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
    seed=st.integers(0, 1000),
)
@example(2, 9, 2, 2, 0, 0, 3, (True, True), 0.0, 1.0, 0)
def test_values_and_gradients_are_those_of_a_dense_gaussian(
    series: int,
    rows: int,
    outputs: int,
    columns: int,
    oscillators: int,
    dense_states: int,
    steps: int,
    noise: tuple[bool, bool],
    missing: float,
    scale: float,
    seed: int,
) -> None:
    of = random_series(
        *(series, rows, outputs, columns, oscillators, dense_states),
        steps=steps,
        noise=(series if noise[0] else 1, rows if noise[1] else 1),
        missing=missing,
        scale=scale,
        seed=seed,
    )
    assert_right(of)


@pytest.mark.parametrize(("oscillators", "dense_states"), [(5, 0), (3, 3), (0, 2)])
def test_two_hundred_points(oscillators: int, dense_states: int) -> None:
    assert_right(random_series(1, 200, 2, 2, oscillators, dense_states, missing=0.5))


@pytest.mark.parametrize(("oscillators", "dense_states"), [(8, 8), (7, 16), (17, 1), (0, 16)])
def test_sizes_at_which_memory_is_padded_or_not(oscillators: int, dense_states: int) -> None:
    assert_right(random_series(1, 7, 3, 2, oscillators, dense_states))


@pytest.mark.parametrize("outputs", [5, 6, 7, 64])
def test_many_outputs(outputs: int) -> None:
    assert_right(random_series(1, 4, outputs, 1, 3, 1, missing=0.2))


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 15, 16, 17, 20, 21, 99, 100])
def test_checkpoints_at_any_number_of_rows(rows: int) -> None:
    """A segment has √N rows, the last one fewer; the plain form knows none of it."""
    of = random_series(2, rows, 2, 1, 2, 1, steps=5)
    readout, leaves = some_readout(of), learning(of)
    both = [markov_evidence.by(form, *leaves) for form in FORMS]
    slopes = [gradients(leaves, *found) for found in both]
    for name, slope in slopes[0].items():
        assert_close(slopes[-1][name], slope, name)
    parts = [markov_smooth.by(form, *of, readout) for form in FORMS]
    for found, wanted in zip(parts[-1], parts[0], strict=True):
        assert_close(found, wanted, "smoothed")


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_is_its_series_one_by_one(form: Backend) -> None:
    of = random_series(11, 13, 2, 2, 3, 2, steps=4, noise=(11, 13))
    readout, leaves = some_readout(of), learning(of)
    log_det, gram = markov_evidence.by(form, *leaves)
    smoothed = markov_smooth.by(form, *of, readout)
    alone = [Series(*leaves[:6], *(part[b : b + 1] for part in leaves[6:])) for b in range(11)]
    found = [markov_evidence.by(form, *one) for one in alone]
    both = torch.cat([one[0] for one in found]), torch.cat([one[1] for one in found])
    assert_close(both[0], log_det, "log det", 1e-14)
    assert_close(both[1], gram, "gram", 1e-14)
    wanted = gradients(leaves, log_det, gram)
    for name, slope in gradients(leaves, *both).items():
        assert_close(slope, wanted[name], name, 1e-13)
    for b, one in enumerate(alone):
        for part, whole in zip(markov_smooth.by(form, *one, readout), smoothed, strict=True):
            assert_close(part[0], whole[b], "smoothed", 1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_rows_without_an_observation_change_nothing(form: Backend) -> None:
    """Series of a batch are padded at their ends with rows that have no entries and no targets."""
    of = random_series(2, 10, 2, 2, 3, 2, steps=4, noise=(1, 1))
    more = torch.nn.functional.pad
    padded = of._replace(
        targets=more(of.targets, (0, 0, 0, 0, 0, 6), value=float("nan")),
        step=more(of.step, (0, 6)),
        observed=more(of.observed, (0, 0, 0, 6)),
    )
    readout = some_readout(of)
    short, long = learning(of), learning(padded)
    found, wanted = markov_evidence.by(form, *long), markov_evidence.by(form, *short)
    for part, right in zip(found, wanted, strict=True):
        assert_close(part, right, "evidence", 1e-14)
    slopes, rights = gradients(long, *found), gradients(short, *wanted)
    assert (slopes["targets"][:, 10:] == 0).all()
    slopes["targets"] = slopes["targets"][:, :10]
    for name, slope in slopes.items():
        assert_close(slope, rights[name], name, 1e-13)
    pairs = zip(
        markov_smooth.by(form, *padded, readout), markov_smooth.by(form, *of, readout), strict=True
    )
    for part, right in pairs:
        assert part.isfinite().all()
        assert_close(part[:, :10], right, "smoothed", 1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_target_may_be_anything(form: Backend) -> None:
    of = random_series(1, 12, 3, 2, 2, 1)
    unknown = torch.where(of.observed[..., None], of.targets, torch.nan)
    leaves, holes = learning(of), learning(of._replace(targets=unknown))
    found, wanted = markov_evidence.by(form, *holes), markov_evidence.by(form, *leaves)
    slopes, rights = gradients(holes, *found), gradients(leaves, *wanted)
    for name, slope in slopes.items():
        assert_close(slope, rights[name], name, 1e-14)


def test_a_long_series_is_the_short_one_again_and_again() -> None:
    """After a step of 200 time constants nothing is left of what was before."""
    of = random_series(1, 50, 2, 1, 3, 0, noise=(1, 1))
    first = of._replace(decay=of.decay.clone())
    first.decay[of.step[0, 0].long()] = 200.0
    times = 40
    long = first._replace(
        targets=of.targets.repeat(1, times, 1, 1),
        step=of.step.repeat(1, times),
        observed=of.observed.repeat(1, times, 1),
    )
    short, leaves = learning(first), learning(long)
    found, wanted = markov_evidence(*leaves), markov_evidence(*short)
    for part, right in zip(found, wanted, strict=True):
        assert_close(part, times * right, "evidence", 1e-12)
    slopes = torch.autograd.grad(found[0].sum() + found[1].sum(), leaves[:8])
    by = torch.autograd.grad(wanted[0].sum() + wanted[1].sum(), short[:8])
    for name in ("turn", "loadings", "noise"):
        at = LEARNT.index(name)
        assert_close(slopes[at], times * by[at], name, 1e-11)
    readout = some_readout(of)
    *parts, gram = markov_smooth(*long, readout)
    *rights, short_gram = markov_smooth(*first, readout)
    assert_close(gram, times * short_gram, "gram", 1e-12)
    for part, right in zip(parts, rights, strict=True):
        assert_close(part[:, -50:], right, "smoothed", 1e-11)


@pytest.mark.skipif(not library.is_built(), reason="no compiled kernels here")
def test_a_call_with_nan_leaves_nothing_behind() -> None:
    """Kernels keep their memory: what a call with NaN wrote there was read by the next ones."""
    of = random_series(1, 40, 2, 1, 5, 3)
    readout = some_readout(of)
    wanted = markov_smooth(*of, readout)
    bad = of._replace(decay=torch.full_like(of.decay, torch.nan))
    assert markov_smooth(*bad, readout)[0].isnan().any()
    for found, right in zip(markov_smooth(*of, readout), wanted, strict=True):
        assert torch.equal(found, right)
