"""The loss by step, as recorded and smoothed, on a scale on which all of it can be read."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from deeplfm.errors import InputError
from deeplfm.plotting import canvas
from deeplfm.plotting.points import Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WINDOW = 1 / 25  # of the recorded steps, in one smoothed value
_STEEP = 5  # how many times larger a loss starts than it ends, where a linear scale hides the end


def plot_loss(history: Mapping[str, Any], *, ax: Any = None) -> "Axes":
    """`model.history_`: the loss of each recorded step, and its running mean.

    Where the start dwarfs the rest the scale is logarithmic, or linear around what the loss ends
    at and logarithmic beyond where a loss is not positive.
    """
    step, loss = (_column(history, name) for name in ("step", "loss"))
    if step.shape != loss.shape or step.ndim != 1 or not np.isfinite(loss).any():
        raise InputError(
            "history must have as many steps as losses, some of them finite; got "
            f"{step.shape} and {loss.shape}. Pass model.history_."
        )
    axes = canvas.single_axes(ax, (8, 3.6))
    half = int(len(loss) * _WINDOW / 2)
    marker = "o" if len(loss) == 1 else "none"
    (line,) = axes.plot(step, loss, "-", marker=marker, label="loss")
    if half:
        line.set(alpha=0.35, linewidth=0.8)
        axes.plot(
            step, running_mean(loss, half), "-", marker="none", color=line.get_color(),
            label=f"mean of {2 * half + 1} steps",
        )  # fmt: skip
    _set_scale(axes, loss[np.isfinite(loss)])
    axes.set(xlabel="step", ylabel="loss")
    if ax is None:
        axes.margins(x=0.01)
    axes.legend(loc="upper right")
    return axes


def running_mean(values: Values, half: int) -> Values:
    """Over `half` values on either side, of those that are finite; `values` are more than 2 half.

    As many on both sides at the ends too, so that a steep start is not flattened.
    """
    finite = np.isfinite(values)
    known, weight = np.where(finite, values, 0.0), finite.astype(float)
    window = np.ones(2 * half + 1)
    total, count = (np.pad(np.convolve(v, window, "valid"), half) for v in (known, weight))
    for reach in range(half):
        for at in (reach, len(values) - 1 - reach):
            near = slice(at - reach, at + reach + 1)
            total[at], count[at] = known[near].sum(), weight[near].sum()
    # Counts are whole, up to the rounding of the convolution.
    return np.where(count > 0.5, total / np.maximum(count, 1), np.nan)


def _set_scale(axes: "Axes", loss: Values) -> None:
    late = loss[len(loss) // 2 :]
    end = float(np.abs(late).max())
    if end == 0 or np.abs(loss).max() <= _STEEP * end:
        return
    if loss.min() > 0:
        axes.set_yscale("log")
    else:
        # Base 0: ticks at round numbers; powers of ten would crowd around 0.
        axes.set_yscale("asinh", linear_width=end, base=0)
        axes.yaxis.set_major_formatter("{x:g}")


def _column(history: Mapping[str, Any], name: str) -> Values:
    if not isinstance(history, Mapping) or name not in history:
        got = sorted(history) if isinstance(history, Mapping) else type(history).__name__
        raise InputError(
            f"history must be a mapping with 'step' and 'loss'; got {got}. Pass model.history_."
        )
    return np.asarray(history[name], dtype=float)
