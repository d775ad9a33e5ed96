"""The judgement: what is chance is not warned of, what is not chance is; and the spread follows."""

import json
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from deeplfm.evaluation.check import MODEL, Check
from deeplfm.evaluation.judging import Entries, judge

COUNT, DRAWS = 60, 40


def entries(
    kind: str = "inside", *, size: float = 1.0, blocks: int = 4, seed: int = 0, alike: float = 0.0
) -> Entries:
    """A model that says N(0, 1); truth is `size` times as wide. `alike`: errors share so much."""
    random = np.random.default_rng(seed)

    def drawn(count: int) -> np.ndarray:
        own, common = random.standard_normal((count, COUNT)), random.standard_normal((count, 1))
        return np.asarray(np.sqrt(1 - alike) * own + np.sqrt(alike) * common)

    y = size * drawn(1)[0]
    return Entries(
        kind=kind,
        blocks=blocks,
        y=y,
        mean=np.zeros(COUNT),
        std=np.ones(COUNT),
        crps=np.abs(y) / 2,
        log_density=-(y**2) / 2 - np.log(2 * np.pi) / 2,
        inside=(np.abs(y) < 1.645).astype(float),
        scale=np.ones(COUNT),
        draws=drawn(DRAWS),
        rivals={"mean": np.full(COUNT, 0.1)},
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_model_that_is_right_is_left_in_peace(seed: int) -> None:
    check = judge([entries(seed=seed), entries("end", seed=seed + 9, blocks=1)], widens=True)
    assert check.passed
    assert check.spread.is_plain
    assert check.blocks == 5


def test_intervals_that_are_too_narrow_are_warned_of_and_widened() -> None:
    check = judge([entries(size=2.5)], widens=True)
    (warning,) = check.warnings
    covered = 100 * entries(size=2.5).inside.mean()
    assert warning == (
        f"This fit may mislead: its 90 % intervals cover {covered:.0f} % of gaps in all outputs."
    )
    assert 1.8 < check.spread.inside < 2.6
    assert "times what the model alone says" in check.verdict


def test_intervals_that_are_too_wide_are_warned_of_and_narrowed_with_caution() -> None:
    check = judge([entries(size=0.25)], widens=True)
    assert "times too wide" in check.warnings[0]
    assert 0.45 < check.spread.inside < 0.65


def test_too_narrow_everywhere_is_seen_where_no_kind_alone_shows_it() -> None:
    spread = 1.33 * np.array([NormalDist().inv_cdf((k + 0.5) / COUNT) for k in range(COUNT)])
    covered = (np.abs(spread) < 1.645).astype(float)
    kinds = enumerate(("inside", "end"))
    parts = [replace(entries(kind, seed=k), y=spread, inside=covered) for k, kind in kinds]
    assert all(judge([part], widens=True).passed for part in parts)
    (warning,) = judge(parts, widens=True).warnings
    assert "of all held-out values" in warning


def test_errors_that_are_alike_prove_less() -> None:
    """A forecast that is off as a whole is one error, not sixty."""
    apart = judge([entries("end", size=1.6, blocks=1)], widens=True)
    together = judge([entries("end", size=1.6, blocks=1, alike=0.95, seed=4)], widens=True)
    assert not apart.passed
    assert together.passed


def test_the_spread_moves_less_where_blocks_are_few() -> None:
    many, few = (judge([entries(size=2.0, blocks=n)], widens=True).spread.inside for n in (8, 1))
    assert 1.3 < few < many < 2.1


def test_beyond_the_data_the_spread_has_a_factor_of_its_own() -> None:
    spread = judge([entries(), entries("end", size=3.0)], widens=True, reach=2.0).spread
    assert spread.inside == 1.0
    assert spread.beyond > 1.8
    assert spread.reach == 2.0


def test_what_cannot_be_widened_is_not() -> None:
    check = judge([entries(size=2.5)], widens=False)
    assert check.spread.is_plain
    assert not check.passed
    assert "what the model says" in check.verdict


def test_a_rival_that_wins_clearly_is_named() -> None:
    own = entries()
    y = 1.5 * np.sin(np.arange(COUNT))
    own = replace(own, y=y, rivals={"mean": np.zeros(COUNT), "season before": 0.9 * y})
    (warning,) = judge([own], widens=True).warnings
    assert "season before has" in warning
    lucky = replace(own, y=own.mean + 0.8, rivals={"mean": np.full(COUNT, 0.7)}, kind="end")
    steady = np.repeat(np.random.default_rng(0).standard_normal((DRAWS, 1)), COUNT, axis=1)
    assert judge([replace(lucky, draws=steady)], widens=True).passed  # such a level may be


def test_a_rival_that_wins_a_little_everywhere_is_named_for_all_blocks() -> None:
    parts = [
        replace(entries(kind, seed=k), rivals={"linear interpolation": np.zeros(COUNT)})
        for k, kind in enumerate(("inside", "end"))
    ]
    parts = [replace(one, mean=np.full(COUNT, 0.85), y=one.y / 1.2) for one in parts]
    parts = [replace(one, draws=0.85 + 2.5 * one.draws, std=np.full(COUNT, 2.5)) for one in parts]
    said = judge(parts, widens=False).warnings
    alone = [judge([one], widens=False).warnings for one in parts]
    assert not any("linear interpolation has" in "".join(one) for one in alone)
    assert "in all blocks together linear interpolation has" in said[0]
    assert judge(parts[1:], widens=False).rows[1].name == "last value"


def test_a_rival_that_says_nothing_in_places_cannot_win_but_is_scored() -> None:
    own = entries()
    values = own.y.copy()
    values[:20] = np.nan
    check = judge([replace(own, rivals={"ridge": values})], widens=True)
    assert check.passed
    assert [(row.name, row.values) for row in check.rows] == [(MODEL, COUNT), ("ridge", COUNT - 20)]


def test_scores_are_those_of_their_definitions() -> None:
    own = replace(entries(), scale=np.full(COUNT, 2.0))
    row = judge([own], widens=True).rows[0]
    assert row.nmse == pytest.approx(np.mean(own.y**2) / 4)
    assert row.crps == pytest.approx(np.mean(np.abs(own.y)) / 4)
    assert row.mnll == pytest.approx(np.mean(own.y**2) / 2 + np.log(2 * np.pi) / 2 - np.log(2))
    assert row.coverage == pytest.approx(own.inside.mean())


def test_a_check_reads_as_a_table_and_comes_back_from_json() -> None:
    check = judge([entries(size=2.5), entries("end", blocks=1)], widens=True, reach=0.5)
    assert Check.from_json(json.loads(json.dumps(check.to_json()))) == check
    frame = check.to_frame()
    assert list(frame.columns) == ["kind", "name", "values", "nmse", "mnll", "crps", "coverage"]
    assert len(frame) == 4
    assert frame.loc[frame.name == "mean", "coverage"].isna().all()
    text = str(check).splitlines()
    assert text[0].startswith("held out")
    assert check.warnings[0] in text
    assert "<table>" in check._repr_html_()
    assert check._repr_html_().count("<tr>") == 5
    assert "<script>" not in Check.none("<script>")._repr_html_()


def test_no_check_says_why() -> None:
    check = Check.none("12 rows are too few.")
    assert str(check) == repr(check) == check.verdict == "Not checked: 12 rows are too few."
    assert check.passed
    assert not check.is_done
    assert check.to_frame().empty
