"""Where pictures are drawn: axes that are made or given, their colours, names safe to write.

Colours come from the axes, so that every style sheet holds, dark ones too.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import InputError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

LONGEST = 40  # letters of a name in a title
_COLUMN = 1.3  # inches of a legend
AxesArray = NDArray[np.object_]


def single_axes(ax: Any, size: tuple[float, float]) -> "Axes":
    """The axes given, or those of a new figure of that many inches."""
    axes: Axes = (_checked("ax", ax, 1) if ax is not None else grid(1, 1, size))[0]
    return axes


def axes_row(axes: Any, count: int, size: tuple[float, float]) -> AxesArray:
    """The axes given, or a row of new ones."""
    return _checked("axes", axes, count) if axes is not None else grid(count, count, size)


def axes_stack(axes: Any, count: int) -> AxesArray:
    """The axes given, or new ones below each other with one x; many share several columns."""
    if axes is not None:
        return _checked("axes", axes, count)
    columns = 1 if count <= 5 else 2 if count <= 12 and count % 3 else 3
    rows = -(-count // columns)
    return grid(count, columns, (max(8.0, 3.6 * columns), 0.9 + 1.7 * rows), share_x=True)


def grid(count: int, columns: int, size: tuple[float, float], share_x: bool = False) -> AxesArray:
    """`count` new axes in a figure that notebooks show."""
    from matplotlib import pyplot as plt

    rows = -(-count // columns)
    _, made = plt.subplots(
        rows, columns, figsize=size, sharex=share_x, squeeze=False, layout="constrained"
    )
    for empty in made.flat[count:]:
        empty.remove()
    for above in made.flat[max(0, count - columns) : count]:
        above.tick_params(labelbottom=True)
    return np.array(made.flat[:count], dtype=object)


def _checked(name: str, axes: Any, count: int) -> AxesArray:
    from matplotlib.axes import Axes

    found = np.empty(1, dtype=object)
    if isinstance(axes, Axes):
        found[0] = axes
    else:
        found = np.array(axes, dtype=object).ravel()
    if len(found) != count or not all(isinstance(one, Axes) for one in found):
        kinds = ", ".join(sorted({type(one).__name__ for one in found})) or "nothing"
        raise InputError(
            f"{name} must be {count} matplotlib Axes; got {len(found)} of {kinds}. Make them with "
            f"plt.subplots({count})."
        )
    return found


def ink(axes: "Axes") -> Any:
    """The colour these axes write in: black on white, white on black."""
    return axes.title.get_color()


def next_color(axes: "Axes") -> Any:
    """The next colour of the cycle of these axes, which the user may have set."""
    (line,) = axes.plot([], [])
    line.remove()
    return line.get_color()


def name_of(names: Sequence[str], index: int, kind: str) -> str:
    """The name of a column to be written; its kind and number where it has none."""
    return written(names[index] if index < len(names) else f"{kind} {index}")


def written(name: object, longest: int = LONGEST) -> str:
    """A name that matplotlib writes as it is: no formulas, one line, short, never a hidden label.

    The middle of a long name goes: names of one family often differ at their ends.
    """
    line = " ".join(str(name).split())
    if len(line) > longest:
        tail = (longest - 1) // 3
        line = f"{line[: longest - 1 - tail]}…{line[-tail:]}"
    hidden = line.startswith("_")  # matplotlib leaves such labels out of legends
    return (" " if hidden else "") + line.replace("$", r"\$")


def add_legend(axes: Sequence["Axes"] | AxesArray, made: bool) -> None:
    """What is labelled in any of the axes, each label once.

    Above a figure of our own; in the first of the axes that were given.
    """
    entries: dict[str, Artist] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            entries.setdefault(str(label), handle)
    handles, labels = list(entries.values()), list(entries)
    if made:
        figure = axes[0].figure
        legend = figure.legend(
            handles, labels, loc="outside upper right", ncols=len(labels), frameon=False
        )
    else:
        first = axes[0]
        inches = first.get_window_extent().width / first.figure.dpi
        columns = max(1, min(len(labels), int(inches / _COLUMN)))  # flat, to hide little
        legend = first.legend(handles, labels, loc="upper right", ncols=columns, fontsize="small")
    as_text(legend)


def as_text(legend: "Legend") -> None:
    """Names of users are no TeX, also where the rest of the figure is."""
    for text in legend.get_texts():
        text.set_usetex(False)


def shown(values: Iterable[str], most: int = 4) -> str:
    """Names in one label; from the `most`th on they are counted."""
    names = list(values)
    if len(names) <= most:
        return ", ".join(names)
    return ", ".join(names[: most - 1]) + f" and {len(names) - most + 1} more"
