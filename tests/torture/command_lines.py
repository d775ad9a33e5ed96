"""Command lines that users might type, and tables that they might have: what must come of each.

refused   a sentence, exit code 2, and nothing on the disk that was not there
done      exit code 0, and what was asked for
"""

from collections.abc import Iterator
from io import BytesIO

import numpy as np
import pandas as pd

from torture.lines import Line, Outcome, fit, rows
from torture.table_lines import cells, encodings, headers, tables


def command_lines() -> list[Line]:
    """All of them."""
    kinds = (tables, headers, cells, encodings, options, columns, dates, scales, parquet, others)
    return [line for kind in kinds for line in kind()]


def options() -> Iterator[Line]:
    """Options that cannot be used, and some that can."""
    table = f"t,a\n{rows()}"
    for option, values in {
        "--steps": ("0", "-1", "1.5", "x", "", "1e3"),
        "--samples": ("0", "-1", "x"),
        "--learning-rate": ("0", "-1", "nan", "inf", "x"),
        "--batch-size": ("0", "-1", "x", "5"),  # a state-space model takes none
        "--restarts": ("0", "-1", "x", "2"),
        "--hidden-dim": ("0", "-1", "3", "x"),
        "--seed": ("-1", "x", "1.5", "99999999999999999999"),
        "--device": ("gpu", "cuda:99", "cpu:7", "", "tpu", "cuda:-1"),
        "--dtype": ("float16", "double", "", "int"),
        "--checkpoint-every": ("0", "-1", "x"),
        "--model": ("", "gp", "Markov", "auto,markov"),
        "--inputs": ("x", "a\nb", "t,,a", "t,a", "t,t", 'a,"b', "T", ",", "\0"[:0] + "\x1b[31m"),
        "--outputs": ("x", "a,a", "a\nb", "a,x", ","),
        "--series": ("x", "t", "a"),
        "--known": ("x", "t", "a", "x,y", "a\nb"),
    }.items():
        for value in values:
            yield fit(f"option: {option} {value!r}", table, "refused", option, value)
    for option, value in {"--dtype": "float64", "--seed": "7", "--device": "cpu"}.items():
        yield fit(f"option: {option} {value}", table, "done", option, value)
    yield fit("option: one that is none", table, "refused", "--stepps", "3")
    yield fit("option: resume of nothing", table, "refused", "--resume")
    many = {"--model": "fourier", "--hidden-dim": "2", "--batch-size": "4", "--restarts": "2"}
    words = [word for pair in many.items() for word in pair]
    yield fit("option: fourier", table, "done", *words)
    yield fit("option: inducing", table, "done", "--model", "inducing", "--hidden-dim", "2")


def columns() -> Iterator[Line]:
    """Ids of series, known inputs, several inputs."""
    head, body = "t,a,id,u\n", rows()
    text = head + "".join(line + f",{'xy'[k % 2]},{k}\n" for k, line in enumerate(body.split()))
    usual = ("--inputs", "t", "--outputs", "a")
    yield fit("series", text, "done", *usual, "--series", "id")
    yield fit("known", text, "done", *usual, "--known", "u")
    yield fit("both", text, "done", *usual, "--known", "u", "--series", "id")
    yield fit("words as known", text, "refused", *usual, "--known", "id")
    yield fit("words as outputs", text, "refused")
    yield fit("an empty id", text + "3,4,,5\n", "refused", *usual, "--series", "id")
    yield fit("an empty known input", text + "3,4,x,\n", "refused", *usual, "--known", "u")
    again = text + "0.00,4,x,99\n"
    yield fit("two values of a known input", again, "refused", *usual, "--known", "u")
    yield fit("series of two inputs", text, "refused", "--inputs", "t,u", "--series", "id")
    two = ("--inputs", "t,u", "--outputs", "a", "--hidden-dim", "2", "--model", "fourier")
    yield fit("two inputs", text, "done", *two)
    yield fit("series of layers", text, "refused", *two, "--series", "id")
    yield fit("known of layers", text, "refused", *two[2:], "--inputs", "t", "--known", "u")


def dates() -> Iterator[Line]:
    """Dates as inputs."""
    values = [line.split(",")[1] for line in rows().split()]

    def table(stamps: list[str]) -> str:
        return "t,a\n" + "".join(f"{t},{v}\n" for t, v in zip(stamps, values, strict=True))

    days = [f"2026-01-{k + 1:02d}" for k in range(12)]
    for name, stamps in {
        "days": days,
        "the year zero": [f"0000-01-{k + 1:02d}" for k in range(12)],
        "times": [f"{day}T12:00:00" for day in days],
        "in a zone": [f"{day}T12:00:00+01:00" for day in days],
        "fractions": [f"2026-01-01 00:00:00.{k:03d}" for k in range(12)],
        "before the epoch": [f"1815-01-{k + 1:02d}" for k in range(12)],
        "nanoseconds": [f"2026-01-01T00:00:00.{k:09d}" for k in range(12)],
    }.items():
        yield fit(f"dates: {name}", table(stamps), "done")
    for name, stamps in {
        "day first": [f"{k + 1}.1.2026" for k in range(12)],
        "American": [f"1/{k + 1}/2026" for k in range(12)],
        "zones for some": [*days[:6], *(f"{day}T12:00:00Z" for day in days[6:])],
        "one that is none": [*days[:11], "2026-02-30"],
        "numbers among them": [*days[:11], "5"],
        "one day": ["2026-01-01"] * 12,
        "times of a day": [f"12:{k:02d}" for k in range(12)],
        "the year 300000": [f"300000-01-{k + 1:02d}" for k in range(12)],
    }.items():
        yield fit(f"dates: {name}", table(stamps), "refused")


def scales() -> Iterator[Line]:
    """Numbers of any size."""
    for power in (-300, -200, -160, -140, -19, -10, 10, 19, 140, 160, 300):
        lines = [line.split(",") for line in rows().split()]
        text = "t,a\n" + "".join(f"{t},{a}e{power}\n" for t, a in lines)
        outcome: Outcome = "done" if abs(power) < 150 else "refused"
        yield fit(f"scale: outputs of 1e{power}", text, outcome)
        text = "t,a\n" + "".join(f"{t}e{power},{a}\n" for t, a in lines)
        outcome = "done" if abs(power) < 20 else "refused"
        yield fit(f"scale: inputs of 1e{power}", text, outcome)
    epoch = "".join(f"{1.7e9 + k},{k % 3}\n" for k in range(12))
    yield fit("scale: seconds of the epoch", f"t,a\n{epoch}", "done")
    constant = "".join(f"{k},1e300\n" for k in range(12))
    yield fit("scale: a constant of 1e300", f"t,a\n{constant}", "refused")
    yield fit("scale: two observations", "t,a\n0,1\n1,2\n", "done")
    two = ("--model", "fourier", "--hidden-dim", "2")
    yield fit("scale: two observations of layers", "t,a\n0,1\n1,2\n", "refused", *two)
    yield fit("scale: three observations", "t,a\n0,1\n1,2\n2,0\n", "done")
    yield fit("scale: one observation of two rows", "t,a\n0,1\n1,\n", "refused")


def parquet() -> Iterator[Line]:
    """Files of Parquet, and what is called so."""
    numbers = pd.DataFrame({"t": np.arange(12.0), "a": np.sin(np.arange(12))})

    def written(frame: pd.DataFrame) -> bytes:
        stream = BytesIO()
        frame.to_parquet(stream)
        return stream.getvalue()

    days, lists = pd.date_range("2026-01-01", periods=12), pd.Series([[1.0, 2.0]] * 12)
    for name, frame, outcome in (
        ("plain", numbers, "done"),
        ("dates in", numbers.assign(t=days), "done"),
        ("dates out", numbers.assign(a=days), "refused"),
        ("durations out", numbers.assign(a=days - days[0]), "refused"),
        ("durations in", numbers.assign(t=days - days[0]), "refused"),
        ("categories", numbers.assign(a=pd.Categorical(list("xyzxyzxyzxyz"))), "refused"),
        ("lists", numbers.assign(a=lists), "refused"),
        ("lists in", numbers.assign(t=lists), "refused"),
        ("an index", numbers.set_index("t"), "done"),
        ("an index without a name", numbers.set_axis([k**2 for k in range(12)]), "done"),
        ("truth values", numbers.assign(a=numbers["a"] > 0), "done"),
        ("missing integers", numbers.assign(a=pd.array([1, None] * 6, dtype="Int64")), "done"),
        ("no rows", numbers[:0], "refused"),
        ("no columns", numbers[[]], "refused"),
    ):
        yield fit(
            f"parquet: {name}",
            written(frame),
            "done" if outcome == "done" else "refused",
            file="d.parquet",
        )
    whole = written(numbers)
    for name, content in {"cut": whole[:-9], "text": b"t,a\n1,2\n", "empty": b""}.items():
        yield fit(f"parquet: {name}", content, "refused", file="d.parquet")


def others() -> Iterator[Line]:
    """Other commands, and files that are not there."""
    table = {"d.csv": f"t,a\n{rows()}".encode()}
    for words in (
        ("fit", "no.csv", "--out", "run"),
        ("fit", ".", "--out", "run"),
        ("fit", "d.csv"),
        ("fit", "d.csv", "--out", "d.csv"),
        ("fit", "d.csv", "e.csv", "--out", "run"),
        ("fit",),
        ("fitt", "d.csv"),
        ("predict", "run", "--at", "d.csv", "--out", "p.csv"),
        ("predict", ".", "--at", "d.csv", "--out", "p.csv"),
        ("predict", "d.csv", "--at", "d.csv", "--out", "p.csv"),
        ("report", "run"),
        ("report", "d.csv"),
        ("report", "."),
        ("update", "run", "d.csv"),
        ("update", "d.csv", "d.csv"),
        ("demo", "--seed", "-1", "--out", "demo"),
        ("demo", "--points", "0", "--out", "demo"),
        ("demo", "--points", "1", "--out", "demo"),
        ("demo", "--points", "-5", "--out", "demo"),
        ("demo", "--steps", "0", "--out", "demo"),
        ("demo", "--models", "none", "--out", "demo"),
        ("demo", "--models", "auto\nx", "--out", "demo"),
        ("demo", "--models", "", "--out", "demo"),
        ("reproduce", "nothing", "--out", "results"),
        ("reproduce", "toy", "--models", "x", "--out", "results"),
        ("reproduce", "toy", "--seeds", "x", "--out", "results"),
        ("reproduce", "toy", "--models", "a\nb", "--out", "results"),
        ("reproduce", "toy", "--jobs", "0", "--out", "results"),
    ):
        yield Line(f"command: {' '.join(words)!r}", words, "refused", table)
