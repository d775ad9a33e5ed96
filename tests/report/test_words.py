"""Numbers, durations, names and scores as the page says them."""

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.evaluation import metrics
from deeplfm.regressor.learnt import Response
from deeplfm.report import markup
from deeplfm.report.charts import gaps, numbers
from deeplfm.report.names import distinct, short
from deeplfm.report.predictions import evenly, scored_rows
from deeplfm.report.scores import pooled, score
from deeplfm.report.words import duration, number, sentence, settings
from mixtures import mixture
from report.pages import HOSTILE


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (3.2 * 86400, "3.2 days"),
        (1, "1 second"),
        (0.25, "250 milliseconds"),
        (90, "90 seconds"),
        (600, "10 minutes"),
        (3 * 3600, "3 hours"),
        (10 * 365.25 * 86400, "10 years"),
        (2e-6, "2 microseconds"),
        (0, "0 seconds"),
        (float("inf"), "∞"),
        (1e15, "3.169e7 years"),
    ],
)
def test_durations_in_human_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_numbers_are_short_and_undefined_ones_a_dash() -> None:
    assert [number(v) for v in (1.23456, 1e-7, 2e15, np.nan)] == ["1.235", "1e-7", "2e15", "–"]


def test_sentences_follow_the_physics() -> None:
    def told(*poles: complex) -> str:
        return sentence(Response(0, "f", "t", True, poles, 2.0), number)

    assert "at once" in told()
    assert "never forgets" in told(0j)
    assert "time constant of 0.5, without swinging" in told(2 + 0j)
    assert "period of 3.142" in told(0.1 + 2j, 0.1 - 2j)
    assert "varies over 2." in told()


def test_settings_are_written_as_one_would_type_them() -> None:
    recipe = dlfm.FourierDLFM(greens_function=dlfm.FirstOrder(2.5), num_forces=1)
    found = dict(settings(recipe))
    assert found["greens_function"].startswith("FirstOrder(decay=2.5")
    assert found["num_forces"] == "1"
    assert found["shared_forces"] == "no"
    assert found["lengthscale"] == "not set"
    assert dict(settings(dlfm.Training.paper()))["stages"].startswith("[Stage(until=")


def test_names_are_short_distinct_and_on_one_line() -> None:
    for name in HOSTILE:
        found = short(name)
        assert 0 < len(found) <= 60
        assert not set(found) & set("\n\u2028\u202e\ud800")
    assert short(" \n ") == "(no name)"
    assert distinct(["x", "x", "hidden 0"], ["hidden 0"]) == ["x", "x (2)", "hidden 0 (2)"]
    assert len(set(distinct(["a" * 100 + c + "b" * 100 for c in "xyz"]))) == 3


def test_text_is_escaped_wherever_it_goes() -> None:
    evil = "\"'><script>&"
    for made in (
        markup.paragraph(evil),
        markup.table([evil], [[evil]], evil),
        markup.listing([(evil, evil)]),
        markup.code([evil]),
        markup.chart("id", evil, evil),
        markup.bullets([evil]),
    ):
        assert "<script>" not in made
        assert "\"'" not in made
    block = markup.json_block("data", {"</script>&\u2028": 1})
    assert block.count("<") == 2
    assert "&" not in block
    assert "\\u2028" in block
    with pytest.raises(ValueError, match="not JSON compliant"):
        markup.json_block("data", float("nan"))


def test_numbers_for_json_keep_what_varies() -> None:
    assert numbers(np.array([1e9 + 0.125, 1e9 + 0.5, np.nan, np.inf])) == [
        1e9 + 0.125,
        1e9 + 0.5,
        None,
        None,
    ]
    assert numbers(np.array([1 / 3, 2.0])) == [0.33333, 2.0]
    assert numbers(np.array([1 / 3])) == [1 / 3]
    assert numbers(np.array([])) == []
    assert numbers(np.array([1e-300, 1e300])) == [1e-300, 1e300]


def test_gaps_are_long_and_points_are_thinned_evenly() -> None:
    x = np.delete(np.arange(100.0), slice(30, 50))
    assert gaps(x) == [(29.0, 50.0)]
    assert gaps(np.array([1.0])) == []
    assert evenly(np.arange(10), 3).tolist() == [0, 4, 9]
    y = np.full((10_000, 2), np.nan)
    y[::2, 0], y[:3, 1] = 1, 1  # the second is seen in few places: they are all kept
    rows = scored_rows(y)
    assert len(rows) <= 2000
    assert {0, 1, 2} <= set(rows.tolist())


def test_scores_agree_with_the_metrics_and_stay_defined() -> None:
    random = np.random.default_rng(0)
    y = random.standard_normal((200, 3))
    samples = y[None] + random.standard_normal((40, 200, 3))
    predictive = mixture(samples, np.array([0.5, 0.5, 0.5]))
    y[50:, 0] = np.nan
    first, second, _ = score(y, predictive)
    for probability in (0.5, 0.9):
        expected = metrics.coverage(y, predictive, probability)
        found = [first.coverage(probability), second.coverage(probability)]
        np.testing.assert_allclose(found, expected[:2])
    assert first.nmse == pytest.approx(metrics.nmse(y, predictive.mean)[0])
    assert first.crps == pytest.approx(metrics.crps(y, predictive)[0])
    assert first.mnll == pytest.approx(metrics.mnll(y, predictive)[0])
    assert first.histogram().mean() == pytest.approx(1)
    y[:, 1], y[:, 2] = 0.1, np.nan  # constant; never observed
    scores = score(y, predictive)
    assert np.isnan(scores[1].nmse)
    assert scores[1].rmse > 0
    assert scores[2].count == 0
    assert np.isnan(scores[2].coverage(0.9))
    assert pooled(scores).nmse == pytest.approx(scores[0].nmse)


def test_crps_of_heavy_tails_is_close_to_the_integral() -> None:
    random = np.random.default_rng(0)
    samples = np.repeat(0.5 * random.standard_normal((200, 1, 1)), 20, axis=1)  # at every y alike
    y = random.standard_normal((20, 1))
    found = score(y, mixture(samples, np.array([0.6]), 5.0))[0].crps
    z = np.linspace(-40, 40, 4001)[:, None]
    below = mixture(np.repeat(samples[:, :1], 4001, axis=1), np.array([0.6]), 5.0).cdf(z)
    exact = ((below - (z >= y.T)) ** 2).sum(0) * 0.02
    assert found == pytest.approx(exact.mean(), rel=0.05)
