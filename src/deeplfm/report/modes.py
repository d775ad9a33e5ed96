"""The learnt physics of a state-space model: its modes, ODEs and noise, with how far each is known.

    share of mode k in output d = |a_dk|² / (Σ_j |a_dj|² + variance of the noise)

Numbers are 5 %, 50 % and 95 % points of draws of the physics.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from deeplfm.regressor.learnt import responses
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.regressor.markov_physics import Physics, physics_draws
from deeplfm.report import markup, words
from deeplfm.report.markup import Html
from deeplfm.report.words import Amount, number, percent

Values = NDArray[np.float64]

_DRAWS = 200
_LEVELS = (0.05, 0.5, 0.95)
_ROWS, _SENTENCES, _COLUMNS = 200, 20, 12  # of tables; a page is not a data base
_NAMED = 3  # outputs that a sentence names
_DURATIONS = ("period", "time constant", "lengthscale")


@final
@dataclass(frozen=True, eq=False)
class Modes:
    """What draws of the physics say: [levels, K] each, shares [levels, K, D]; other numbers."""

    period: Values
    time_constant: Values
    share: Values
    others: dict[str, Values]  # [levels] by name


def modes_of(fitted: FittedMarkov) -> Modes:
    """Quantiles over draws of the physics."""
    first, *draws = fitted.physics(_DRAWS)
    found = physics_draws([first, *draws], fitted.gains(_DRAWS))
    quantiles = np.quantile(found.values, _LEVELS, axis=0)
    known = dict(zip(found.names, quantiles.T, strict=True))
    own = [
        [known.pop(f"mode {k}: {name}") for k in range(len(first.active))]
        for name in ("period", "time constant")
    ]
    shares = np.stack([shares_of(one) for one in draws])
    period, constant = (np.array(one).reshape(-1, len(_LEVELS)).T for one in own)
    return Modes(period, constant, np.quantile(shares, _LEVELS, axis=0), known)


def learnt(fitted: FittedMarkov, found: Modes, amount: Amount, dated: bool) -> list[Html]:
    """Sentences and tables; `amount` writes a distance in time, `dated` where that is seconds."""
    count, outputs = found.period.shape[1], fitted.output_names
    lines = [_sentence(found, k, outputs, amount) for k in range(min(count, _SENTENCES))]
    if fitted.model.driven is not None:
        odes = [one for one in responses(fitted) if np.isfinite(one.lengthscale)]
        lines += [words.sentence(one, amount) for one in odes[:_SENTENCES]]
    elif fitted.model.smooth is not None:
        lines.append(
            "No rhythm was found: outputs follow smooth processes, which explain them better."
        )
    elif not count:
        lines.append("No mode carries anything that can be seen.")
    html = [markup.bullets([*lines, *_beside(fitted)])]
    if note := _note(fitted, count, dated):
        html.append(markup.paragraph(note, "note"))
    if count:
        html += [_modes_table(found, amount), _shares_table(found, outputs)]
    return [*html, _others_table(found, amount)]


def mode_names(fitted: FittedMarkov, found: Modes, amount: Amount) -> dict[str, str]:
    """What each mode adds to each output, as the page calls it, by the name the model has."""
    names = fitted.force_names(0)
    if fitted.model.driven is not None or fitted.model.smooth is not None:
        return {}
    shown = [
        f"Mode {k}, of period {amount(period)}, in {output}"
        for k, period in enumerate(found.period[1].tolist())
        for output in fitted.output_names
    ]
    return dict(zip(names, shown, strict=True))


def shares_of(physics: Physics) -> Values:
    """The share [K, D] of each mode in each output, of one draw."""
    squares = physics.amplitude**2
    zeros = torch.zeros(1, len(squares), dtype=torch.float64)
    with torch.no_grad():
        noise = physics.model.likelihood.variance(zeros).expand(zeros.shape)[0].numpy()
    total = squares.sum(1) + noise * physics.scaling.target_std**2
    return np.asarray((squares[:, list(physics.active)] / total[:, None]).T)


def _sentence(found: Modes, k: int, outputs: Sequence[str], amount: Amount) -> str:
    period, constant = found.period[1, k], found.time_constant[1, k]
    rings = constant / period
    fades = f"it rings for about {rings:.2g} periods" if rings >= 1 else "it fades within a period"
    shares = found.share[1, k]
    order = np.argsort(-shares, kind="stable")[:_NAMED]
    carried = ", ".join(f"{percent(shares[d])} of {outputs[d]}" for d in order)
    more = ", and less of the others" if len(outputs) > _NAMED else ""
    return (
        f"Mode {k} swings with a period of {amount(period)} and forgets with a time constant of "
        f"{amount(constant)}: {fades}. Of the variance of the outputs it carries {carried}{more}."
    )


def _beside(fitted: FittedMarkov) -> list[str]:
    found = []
    if fitted.model.levels is not None:
        found.append("a level that wanders")
    if fitted.trend:
        found.append("a line of unknown slope")
    lines = [f"Beside that every output has {' and '.join(found)}."] if found else []
    return lines if fitted.depth is None else [*lines, fitted.depth.sentence]


def _note(fitted: FittedMarkov, count: int, dated: bool) -> str:
    notes = []
    if count > _SENTENCES:
        notes.append(f"{count - _SENTENCES} more modes are in the table.")
    if count:
        notes.append("Shares are of the variance of modes and noise together.")
    name = fitted.input_names[0]
    if dated:
        notes.append("Rates are per second, frequencies in radians per second.")
    else:
        notes.append(f"Times are in the units of {name}, rates in one over them.")
    return " ".join(notes)


def _modes_table(found: Modes, amount: Amount) -> Html:
    rows = [
        (f"mode {k}", *map(amount, found.period[:, k]), *map(amount, found.time_constant[:, k]))
        for k in range(min(found.period.shape[1], _ROWS))
    ]
    names = [f"{name}, {level:.0%}" for name in ("period", "time constant") for level in _LEVELS]
    head = ("mode", *(name.replace("%", " %") for name in names))
    return markup.table(head, rows, "Modes: 5 %, 50 % and 95 % points of what is believed")


def _shares_table(found: Modes, outputs: Sequence[str]) -> Html:
    shown = range(min(len(outputs), _COLUMNS))
    rows = [
        (f"mode {k}", *(_range(found.share[:, k, d]) for d in shown))
        for k in range(min(found.share.shape[1], _ROWS))
    ]
    cut = f" (the first {_COLUMNS} of {len(outputs)} outputs)" if len(outputs) > _COLUMNS else ""
    caption = f"Share of the variance of each output, 50 % (5 % to 95 %){cut}"
    return markup.table(("mode", *(outputs[d] for d in shown)), rows, caption)


def _range(points: Values) -> str:
    low, middle, high = (100 * points).tolist()
    return f"{middle:.1f} % ({low:.1f} to {high:.1f})"


def _others_table(found: Modes, amount: Amount) -> Html:
    rows = []
    for name, points in list(found.others.items())[:_ROWS]:
        timed = name.rsplit(": ", 1)[-1] in _DURATIONS
        rows.append((name, *map(amount if timed else number, points)))
    cut = f" (the first {_ROWS} of {len(found.others)})" if len(found.others) > _ROWS else ""
    caption = f"Quantities, gains and noise, in the units of each output{cut}"
    return markup.table(("quantity", "5 %", "50 %", "95 %"), rows, caption)
