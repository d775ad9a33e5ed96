"""The judgement of a model on held-out blocks: scores, rivals, spread, and words for them.

    T = mean z²,   z = (y - mean) / std;     Δ = mean (y - mean)² - mean (y - rival)²

What T and Δ would be if the model were right is known from draws of the model itself, all values of
a block together: errors within a block are alike, and one unlucky forecast proves nothing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from deeplfm.evaluation.check import KINDS, MODEL, Check, CheckRow
from deeplfm.evaluation.spread import Spread

Values = NDArray[np.float64]

LEVEL = 0.9  # of the intervals that are looked at
_FARTHEST = 5.0  # standard deviations that one value may count for
_BETTER = 1.5  # times the squared error of a rival from which it wins clearly
_SMALL = 1e-3  # squared errors below this share of the variance are as good as none
_SURPRISE, _MISFIT = 2.6, 2.6  # standard deviations of Δ and of T^⅓ that chance explains
_NARROW, _WIDE = 1.35, 0.5  # intervals that are far off: so many times as wide they should be
_NARROW_ALL = 1.25  # the same, of all blocks together
_DOUBT = 0.5  # of log factors before blocks are seen: a standard deviation
_UNLIKE = 0.3  # standard deviation of log factors from block to block
_CAUTION = 0.5  # share of a narrowing that is done
_CHANGE = 1.1  # factors that are nearer to 1 change nothing


@final
@dataclass(frozen=True, eq=False)
class Entries:
    """Held-out values of one kind of block, and what the model and its rivals say there.

    Shapes:
        y, mean, std, crps, log_density, inside, scale: [K]; draws: [S, K]; rivals: [K] each, NaN
        where one says nothing. `inside` says which are in the 90 % interval; `scale` is the
        standard deviation of the output.
    """

    kind: str
    blocks: int
    y: Values
    mean: Values
    std: Values
    crps: Values
    log_density: Values
    inside: Values
    scale: Values
    draws: Values
    rivals: Mapping[str, Values]


class _Size(NamedTuple):
    """By which factor the spread is off: its logarithm, and how surely chance does not explain it.

    log: of the factor.    error: its standard deviation.    surprise: in standard deviations.
    """

    log: float
    error: float
    surprise: float


def judge(found: Sequence[Entries], widens: bool, reach: float = 0.0) -> Check:
    """Judge a model on all kinds of blocks.

    widens: whether the spread of its predictions can be changed.
    reach:  of the `Spread`.
    """
    rows = [row for entries in found for row in _scores(entries)]
    sizes = {entries.kind: _size([entries]) for entries in found}
    spread = _spread(found, reach) if widens else Spread()
    beaten, misfits, sentences = [], [], []
    for entries in found:
        beaten += _beaten(_widened(entries, spread))
        misfits += _misfit(entries, sizes[entries.kind])
        sentences.append(_in_words(entries, [row for row in rows if row.kind == entries.kind]))
    beaten = beaten or _beaten(_together([_widened(one, spread) for one in found]))
    clauses = beaten + (misfits or _misfit_of_all(found))
    if clauses:
        clauses = [f"This fit may mislead: {'; '.join(clauses)}."]
    sentences.append(_spread_in_words(spread, widens, any(one.kind == "end" for one in found)))
    blocks = sum(entries.blocks for entries in found)
    return Check(tuple(rows), tuple(sentences), tuple(clauses), spread, blocks)


def _scores(entries: Entries) -> list[CheckRow]:
    y, scale, count = entries.y, entries.scale, len(entries.y)
    density = float(np.mean(-entries.log_density - np.log(scale)))
    rows = [
        CheckRow(
            entries.kind,
            MODEL,
            count,
            float(np.mean(((y - entries.mean) / scale) ** 2)),
            density if math.isfinite(density) else None,
            float(np.mean(entries.crps / scale)),
            float(entries.inside.mean()),
        )
    ]
    for name, values in entries.rivals.items():
        known = ~np.isnan(values)
        if not known.any():
            continue
        error = (y - values)[known] / scale[known]
        means = float(np.mean(error**2)), float(np.mean(np.abs(error)))
        shown, count = _shown(name, entries.kind), int(known.sum())
        rows.append(CheckRow(entries.kind, shown, count, means[0], None, means[1], None))
    return rows


def _size(every: Sequence[Entries]) -> _Size:
    """How far the errors are from what they should be, by blocks of one kind or of several."""

    def size(z: Values) -> Values:
        # The cube root of a mean of squares is nearly normal, however few of them there are.
        return np.asarray(np.cbrt(np.minimum(z**2, _FARTHEST**2).mean(-1)))

    seen = np.concatenate([(one.y - one.mean) / one.std for one in every])
    drawn = np.concatenate([(one.draws - one.mean) / one.std for one in every], axis=1)
    usual = size(drawn)
    # What is usual is taken as 1, whatever a few draws of a rough mixture say of it.
    centre, error = min(float(usual.mean()), 1.0), float(usual.std()) + 1e-3
    found = max(float(size(seen)), 1e-4)
    return _Size(1.5 * math.log(found / centre), 1.5 * error / centre, (found - centre) / error)


def _spread(found: Sequence[Entries], reach: float) -> Spread:
    inner = [one for one in found if one.kind != "end"]
    outer = [one for one in found if one.kind == "end"]
    inside = _shrunk(inner, 0.0) if inner else 0.0
    beyond = _shrunk(outer, inside) if outer else inside
    return Spread(_factor(inside), _factor(beyond), reach)


def _shrunk(every: Sequence[Entries], centre: float) -> float:
    """The log factor between what blocks say and `centre`, by how much they can say."""
    size = _size(every)
    noise = size.error**2 + _UNLIKE**2 / sum(one.blocks for one in every)
    return centre + (size.log - centre) * _DOUBT**2 / (_DOUBT**2 + noise)


def _factor(log: float) -> float:
    log = _CAUTION * log if log < 0 else log
    return 1.0 if abs(log) < math.log(_CHANGE) else round(math.exp(log), 3)


def _widened(entries: Entries, spread: Spread) -> Entries:
    """The entries with draws as wide as predictions will be."""
    factor = spread.beyond if entries.kind == "end" else spread.inside
    return replace(entries, draws=entries.mean + factor * (entries.draws - entries.mean))


def _together(found: Sequence[Entries]) -> Entries:
    """All kinds of blocks as one, with the rivals that all of them have."""

    def joined(parts: Iterable[Values]) -> Values:
        return np.concatenate(list(parts), axis=-1)

    shared = [name for name in found[0].rivals if all(name in one.rivals for one in found)]
    rivals = {name: joined(one.rivals[name] for one in found) for name in shared}
    columns = ("y", "mean", "std", "crps", "log_density", "inside", "scale", "draws")
    values = {name: joined(getattr(one, name) for one in found) for name in columns}
    return Entries("all", sum(one.blocks for one in found), rivals=rivals, **values)


def _beaten(entries: Entries) -> list[str]:
    """The rival that wins clearly, where there is one, as the part of a sentence."""
    best, said = 0.0, []
    for name, values in entries.rivals.items():
        if np.isnan(values).any():
            continue
        ratio, surprise = _against(entries, values)
        if ratio > _BETTER and surprise > _SURPRISE and ratio > best:
            best = ratio
            shown = _shown(name, entries.kind)
            said = [f"in {_where(entries.kind)} {shown} has {1 / ratio:.2g} of its squared error"]
    return said


def _against(entries: Entries, rival: Values) -> tuple[float, float]:
    """How many times the squared error of a rival the model has, and how surprising that is."""
    scale = entries.scale

    def both(y: Values) -> tuple[Values, Values]:
        own, other = ((y - values) / scale for values in (entries.mean, rival))
        return np.asarray((own**2).mean(-1)), np.asarray((other**2).mean(-1))

    own, other = both(entries.y)
    drawn = both(entries.draws)
    usual = drawn[0] - drawn[1]
    error = float(usual.std()) + 1e-9
    return (
        float((own + _SMALL) / (other + _SMALL)),
        float((own - other) - usual.mean()) / error,
    )


def _misfit(entries: Entries, size: _Size) -> list[str]:
    """That intervals are far too narrow, as the part of a sentence."""
    factor, covers = math.exp(size.log), float(entries.inside.mean())
    where = _where(entries.kind)
    if factor > _NARROW and size.surprise > _MISFIT and covers < LEVEL:
        return [f"its 90 % intervals cover {100 * covers:.0f} % of {where}"]
    return []


def _misfit_of_all(found: Sequence[Entries]) -> list[str]:
    """That intervals are too narrow, where no kind of block alone could say it, or too wide."""
    size, covers = _size(found), float(np.concatenate([one.inside for one in found]).mean())
    narrow = len(found) > 1 and math.exp(size.log) > _NARROW_ALL
    if narrow and size.surprise > _MISFIT and covers < LEVEL:
        return [f"its 90 % intervals cover {100 * covers:.0f} % of all held-out values"]
    if math.exp(size.log) < _WIDE and size.surprise < -_MISFIT:
        return [f"its 90 % intervals are {math.exp(-size.log):.2g} times too wide"]
    return []


def _in_words(entries: Entries, rows: list[CheckRow]) -> str:
    own, others = rows[0], [row for row in rows[1:] if row.values == rows[0].values]
    said = f"In {_where(entries.kind)} ({own.values:,} values in {_counted(entries.blocks)})"
    said += f" its squared error is {own.nmse:.2g} of the variance"
    if others:
        best = min(others, key=lambda row: row.nmse)
        said += f", that of the best rival, {best.name}, {best.nmse:.2g}"
    return f"{said}; 90 % intervals cover {100 * (own.coverage or 0.0):.0f} %."


def _spread_in_words(spread: Spread, widens: bool, series: bool) -> str:
    if not widens:
        return "The spread of its predictions is what the model says."
    if spread.is_plain:
        return "The spread of its predictions agrees with the blocks and is left as it is."
    if not series:
        return f"The spread of predictions is {spread.inside:.2g} times what the model alone says."
    return (
        "So that it agrees with the blocks the spread of predictions is "
        f"{spread.inside:.2g} times what the model alone says between the first and the last row, "
        f"and {spread.beyond:.2g} times beyond them."
    )


def _where(kind: str) -> str:
    said = {"end": "the forecast of the last rows", "all": "all blocks together"}
    return said.get(kind) or KINDS[kind]


def _shown(name: str, kind: str) -> str:
    """What a rival is called: beyond the data a line between neighbours is the last value."""
    return "last value" if (name, kind) == ("linear interpolation", "end") else name


def _counted(blocks: int) -> str:
    return "one block" if blocks == 1 else f"{blocks} blocks"
