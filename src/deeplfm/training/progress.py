"""A progress bar for training: steps, loss, rate and time left; silent where nobody looks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Report = Callable[[int, float], None]


@contextmanager
def progress_bar(
    steps: int, show: bool = True, console: "Console | None" = None
) -> Iterator[Report | None]:
    """`report(step, loss)` for a fit; None in runs that are not interactive."""
    # Imported when a bar is wanted: `import deeplfm` stays quick.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = console or Console(stderr=True)
    if not (show and console.is_terminal):
        yield None
        return
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4g}"),
        TextColumn("{task.fields[rate]:.3g} steps/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("training", total=steps, loss=float("nan"), rate=0.0)

        def report(step: int, loss: float) -> None:
            speed = bar.tasks[0].speed or 0.0
            bar.update(task, completed=step, loss=loss, rate=speed)

        yield report
