"""The command line: `deeplfm`, and `python -m deeplfm`.

Exit codes: 0 done, 2 bad usage or bad input, 1 anything else. Errors are one sentence on stderr.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from deeplfm.app.endings import ended
from deeplfm.app.printing import line, show_check, show_fit, show_table
from deeplfm.app.start import interruptible
from deeplfm.data import csv_tables as tables
from deeplfm.errors import InputError
from deeplfm.models import FourierDLFM, InducingDLFM, MarkovDLFM, ModelSettings
from deeplfm.regressor.choosing import AUTO
from deeplfm.training import Training

_RECIPES: dict[str, Callable[..., ModelSettings | str]] = {
    AUTO: lambda: AUTO,
    "markov": MarkovDLFM,
    "fourier": FourierDLFM,
    "inducing": InducingDLFM,
}

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
def fit(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file with a header.")],
    out: Annotated[Path, typer.Option(help="A new folder for the run.")],
    inputs: Annotated[str, typer.Option(help="Input columns; by default the first.")] = "",
    outputs: Annotated[str, typer.Option(help="Output columns; by default all others.")] = "",
    model: Annotated[str, typer.Option(help="auto, markov, fourier or inducing.")] = AUTO,
    series: Annotated[
        str, typer.Option(help="Column of ids: each has a state of its own (one input).")
    ] = "",
    known: Annotated[
        str, typer.Option(help="Columns of known inputs, by commas (one input).")
    ] = "",
    steps: Annotated[int, typer.Option(help="Training steps.")] = Training.steps,
    samples: Annotated[int, typer.Option(help="Draws per step.")] = Training.num_samples,
    learning_rate: Annotated[float, typer.Option(help="Of AdamW.")] = Training.learning_rate,
    batch_size: Annotated[int | None, typer.Option(help="Rows per step; all by default.")] = None,
    restarts: Annotated[int, typer.Option(help="Starts; the best is kept.")] = Training.restarts,
    hidden_dim: Annotated[
        int | None, typer.Option(help="Functions of a hidden layer; not of markov.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of start, training and predictions.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    checkpoint_every: Annotated[
        int, typer.Option(help="Steps between checkpoints.")
    ] = Training.checkpoint_every,
    check: Annotated[
        bool, typer.Option(help="Hold out blocks to see how good the fit is, and say it.")
    ] = True,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out, to the same result.")
    ] = False,
) -> None:
    """Fit a model to the columns of a table; empty cells were not observed."""
    from deeplfm.app import runs
    from deeplfm.app.sources import Source
    from deeplfm.regressor.estimator import DeepLFMRegressor

    interruptible()
    training = Training(
        steps=steps,
        num_samples=samples,
        learning_rate=learning_rate,
        batch_size=batch_size,
        restarts=restarts,
        checkpoint_every=checkpoint_every,
    )
    recipe = _recipe(model, hidden_dim)
    estimator = DeepLFMRegressor(recipe, training, seed, device, dtype, check=check)
    fitted, seen, given = (tables.names_of(text) for text in (inputs, outputs, known))
    source = Source(data, fitted, seen, series or None, given)
    ended = runs.fit_run(source, estimator, out, resume=resume, say=line)
    if ended == "interrupted":
        raise KeyboardInterrupt
    if ended == "followed":
        return
    if estimator.__sklearn_is_fitted__():
        show_fit(estimator.fitted_)
        show_check(estimator.check_)
    line(f"Model: {out}   next: deeplfm report {out}")


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    at: Annotated[
        Path,
        typer.Option(help="A CSV or Parquet file with the input columns, series, known inputs."),
    ],
    out: Annotated[Path, typer.Option(help="The CSV or Parquet file to write.")],
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
) -> None:
    """Mean, standard deviation and 5, 50 and 95 % quantiles of new observations."""
    from deeplfm.app import runs

    interruptible()
    rows = runs.predict_run(run, at, out, device)
    line(f"{rows} rows: {out}")


@app.command()
def update(
    run: Annotated[Path, typer.Argument(help="The folder of a run of a state-space model.")],
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file with the run's columns.")],
    out: Annotated[Path | None, typer.Option(help="A new folder; by default the run's.")] = None,
) -> None:
    """Take new rows into a run: the same physics, nothing is fitted again."""
    from deeplfm.app import runs

    interruptible()
    new, total = runs.update_run(run, data, out)
    line(
        f"{new:,} new row{'' if new == 1 else 's'}, {total:,} in all: {run if out is None else out}"
    )


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    out: Annotated[Path | None, typer.Option(help="By default run/report.html.")] = None,
    held_out: Annotated[
        Path | None, typer.Option(help="A table of observations that were not fitted, to score.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
) -> None:
    """One self-contained HTML page: predictions, physics, calibration, learning curve."""
    from deeplfm.app import runs

    interruptible()
    path = out or run / "report.html"
    runs.report_run(run, path, held_out, device)
    line(f"Report: {path}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for models, pictures, reports.")] = Path("demo"),
    models: Annotated[str, typer.Option(help="By commas, such as auto,fourier,inducing.")] = AUTO,
    points: Annotated[int, typer.Option(help="Samples of the signals.")] = 1000,
    steps: Annotated[int, typer.Option(help="Training steps.")] = Training.steps,
    seed: Annotated[int, typer.Option(help="Of the signals and the models.")] = 0,
) -> None:
    """Fill gaps in synthetic cardiac signals: scores, pictures, reports."""
    from deeplfm.app.demo import FEWEST, demonstrate
    from deeplfm.regressor.conventions import check_seed

    interruptible()
    check_seed(seed)
    if points < FEWEST:
        raise InputError(f"--points must be {FEWEST} or more; got {points}. Leave it out.")
    console = Console()
    recipes = {name: _recipe(name, None, "--models") for name in tables.names_of(models)}
    if not recipes:
        raise InputError(f"--models must name one of {list(_RECIPES)}; got none. Leave it out.")
    result = demonstrate(out, recipes, points, steps, seed, say=line)
    table = Table(title=f"gaps in cardiac signals, {result.seconds:.0f} s")
    for heading in ("model", "signal", "NMSE", "MNLL", "90 % interval covers"):
        table.add_column(heading, justify="left" if heading in ("model", "signal") else "right")
    for score in result.scores:
        numbers = (f"{score.nmse:.3f}", f"{score.mnll:.2f}", f"{score.coverage:.0%}")
        table.add_row(score.model, score.signal, *numbers)
    console.print(table)
    for kind, paths in (("Pictures", result.pictures), ("Reports", result.reports)):
        listed = ", ".join(str(path) for path in paths)
        line(f"{kind}: {listed}")


@app.command()
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            help="Such as toy, physio, charis, uci, decay or planted; a wrong name lists all."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    smoke: Annotated[bool, typer.Option("--smoke", help="Seconds, not minutes.")] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Tables and figures of what is done.")
    ] = False,
    models: Annotated[str, typer.Option(help="Only these, separated by commas.")] = "",
    datasets: Annotated[str, typer.Option(help="Only these, separated by commas.")] = "",
    seeds: Annotated[str, typer.Option(help="Only these, separated by commas.")] = "",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda; several by commas.")] = "auto",
    jobs: Annotated[int, typer.Option(help="Runs side by side, in processes.", min=1)] = 1,
    data: Annotated[Path | None, typer.Option(help="Folder of the data files.")] = None,
) -> None:
    """Run an experiment of the paper; what is done already is kept, and a sweep goes on."""
    from deeplfm.paper import experiments

    interruptible()
    out = out / "smoke" if smoke else out  # never beside real results
    if experiment == "decay":
        drawn = experiments.reproduce_decay(out)
        slow, fast = drawn["largest_distance_to_force"]
        line(f"distance to the force, of a range of 2: slow {slow:.3f}, fast {fast:.3f}")
        line(f"Picture: {drawn['figure']}")
        return
    if experiment == "planted":
        only = tables.names_of(datasets)
        show_table(experiments.reproduce_planted(out, data, names=only, smoke=smoke, say=line))
        return
    names = (tables.names_of(text) for text in (models, datasets, seeds))
    chosen = experiments.choose(experiment, *names)
    sweep = experiments.Sweep(out, tables.names_of(device), jobs, data, smoke)
    written = experiments.reproduce([] if report_only else chosen, experiment, sweep, line)
    for table in experiments.tables(out, experiment):
        show_table(table)
    line(f"Files: {', '.join(str(path) for path in written) or 'none yet'}")


def _recipe(name: str, hidden_dim: int | None, option: str = "--model") -> ModelSettings | str:
    if name not in _RECIPES:
        raise InputError(
            f"{option} must be one of {list(_RECIPES)}; got {name!r}. Choose one of them."
        )
    if hidden_dim is None:
        return _RECIPES[name]()
    if name in (AUTO, "markov"):
        why = "chooses it" if name == AUTO else "has no hidden layer"
        raise InputError(
            f"--hidden-dim must be left out with --model {name}, which {why}; got {hidden_dim}. "
            "Leave it out, or choose fourier or inducing."
        )
    return _RECIPES[name](hidden_dim=hidden_dim)


def main() -> None:
    """Run a command; what goes wrong is one sentence and a code."""
    ended(app)
