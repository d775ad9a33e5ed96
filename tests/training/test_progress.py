"""The progress bar shows what there is to show, and nothing where nobody looks."""

import io

from rich.console import Console

from deeplfm.training.progress import progress_bar


def test_it_shows_steps_loss_and_rate() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with progress_bar(100, console=console) as report:
        assert report is not None
        report(50, 123.4)
    assert "50/100" in screen.getvalue()
    assert "loss 123.4" in screen.getvalue()
    assert "steps/s" in screen.getvalue()


def test_it_is_silent_in_other_runs() -> None:
    screen = io.StringIO()
    for console, show in ((Console(file=screen), True), (Console(force_terminal=True), False)):
        with progress_bar(100, show, console) as report:
            assert report is None
    assert screen.getvalue() == ""
