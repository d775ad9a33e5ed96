"""The command line: `deeplfm`, and `python -m deeplfm`.

Exit codes: 0 done, 2 bad usage or bad input, 1 anything else. Errors are one sentence on stderr.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from deeplfm.errors import DeepLFMError, InputError

app = typer.Typer(help="Deep latent force models.", no_args_is_help=True, add_completion=False)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Deep latent force models: deep Gaussian processes whose every layer is a linear ODE."""
    if show:
        from deeplfm import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Which force is drawn.", min=0, max=2**63 - 1)] = 0,
) -> None:
    """Drive linear ODEs by a latent force, check them against quadrature, draw the result."""
    from deeplfm.demo import ERROR_BAR, demonstrate

    console = Console()
    with console.status("integrating by brute force, to compare …"):
        result = demonstrate(out, seed)
    table = Table(title="closed form against quadrature")
    for heading in ("system", "memory", "largest response", "relative error"):
        table.add_column(heading, justify="left" if heading in ("system", "memory") else "right")
    for check in result.checks:
        table.add_row(check.system, check.memory, f"{check.largest:.3g}", f"{check.error:.1e}")
    console.print(table)
    console.print(f"All errors are below {ERROR_BAR:g}. Picture: {result.figure}", soft_wrap=True)


@app.command()
def reproduce(
    experiment: Annotated[
        str, typer.Argument(help="toy, physio, decay, starts or overconfidence.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    smoke: Annotated[bool, typer.Option("--smoke", help="Seconds, not minutes.")] = False,
    models: Annotated[str, typer.Option(help="Only these, separated by commas.")] = "",
    datasets: Annotated[str, typer.Option(help="Only these, separated by commas.")] = "",
    seeds: Annotated[str, typer.Option(help="Only these, separated by commas.")] = "",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    data: Annotated[Path | None, typer.Option(help="Folder of the data files.")] = None,
) -> None:
    """Run an experiment of the paper; results that are there already are kept."""
    from deeplfm import experiments
    from deeplfm.experiments import registry, report

    console = Console()
    if experiment == "decay":
        drawn = experiments.reproduce_decay(out)
        slow, fast = drawn["largest_distance_to_force"]
        console.print(f"distance to the force, of a range of 2: slow {slow:.3f}, fast {fast:.3f}")
        console.print(f"Picture: {drawn['figure']}", soft_wrap=True)
        return
    chosen = [
        cell
        for cell in experiments.cells(experiment)
        if (not models or cell.model in models.split(","))
        and (not datasets or cell.dataset in datasets.split(","))
        and (not seeds or str(cell.seed) in seeds.split(","))
    ]
    if not chosen:
        raise InputError(
            "models, datasets and seeds must leave something to run; got none. Widen them."
        )
    out = out / "smoke" if smoke else out  # never beside real results
    for cell in chosen:
        console.print(f"{cell.experiment}: {cell.name}")
        experiments.run(registry.smoke(cell) if smoke else cell, out, device=device, data=data)
    headings, rows = report.table(report.load_results(out, experiment))
    shown = Table(title=experiment)
    for heading in headings:
        shown.add_column(heading)
    for row in rows:
        shown.add_row(*row)
    console.print(shown)


def main() -> None:
    """The entry point: runs a command and turns what went wrong into one sentence and a code."""
    try:
        app()
    except InputError as error:
        _fail(str(error), 2)
    except DeepLFMError as error:
        _fail(str(error), 1)
    except OSError as error:
        _fail(f"could not read or write a file: {error}", 1)
    except KeyboardInterrupt:
        _fail("interrupted", 1)


def _fail(message: str, code: int) -> None:
    print(f"deeplfm: {message}", file=sys.stderr)
    sys.exit(code)
