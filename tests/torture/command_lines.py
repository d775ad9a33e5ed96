"""Command lines that users might type, and tables that they might have: what must come of each.

refused   a sentence, exit code 2, and nothing on the disk that was not there
done      exit code 0, and what was asked for
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Literal

import numpy as np
import pandas as pd

Outcome = Literal["refused", "done"]

QUICK = ("--steps", "1", "--no-check", "--samples", "1")


@dataclass(frozen=True)
class Line:
    """A command line; `files` are there before, with what is in them."""

    name: str
    arguments: tuple[str, ...]
    outcome: Outcome
    files: dict[str, bytes] = field(default_factory=dict)


def rows(count: int = 12, seed: int = 0) -> str:
    """The lines of a small table of two columns."""
    noise = np.random.default_rng(seed).normal(size=count)
    return "".join(f"{0.1 * k:.2f},{np.sin(k) + 0.1 * noise[k]:.4f}\n" for k in range(count))


def fit(
    name: str, table: str | bytes, outcome: Outcome, *options: str, file: str = "d.csv"
) -> Line:
    """A fit of the default model to a table."""
    content = table.encode() if isinstance(table, str) else table
    return Line(name, ("fit", file, "--out", "run", *QUICK, *options), outcome, {file: content})


def command_lines() -> list[Line]:
    """All of them."""
    kinds = (tables, headers, cells, encodings, options, columns, dates, scales, parquet, others)
    return [line for kind in kinds for line in kind()]


def tables() -> Iterator[Line]:
    """Tables that are none, or have rows that do not fit."""
    body = rows()
    for name, text in {
        "nothing in it": "",
        "blank lines": "\n\n\n",
        "a space": " ",
        "a header alone": "t,a\n",
        "a header without an end": "t,a",
        "one row": "t,a\n1,2\n",
        "the same row twice": "t,a\n1,2\n1,3\n",
        "rows at one time": "t,a\n" + "1,2\n1,3\n" * 9,
        "an overlong first row": "t,a\n0,1,2\n" + body,
        "an overlong last row": f"t,a\n{body}9,9,9\n",
        "overlong rows": "t,a\n" + body.replace("\n", ",7\n"),
        "rows that are longer by two": "t,a\n" + body.replace("\n", ",7,8\n"),
        "numbers only": body,
        "words only": "t,a\n" + "x,y\n" * 9,
        "one column": "a\n1\n2\n3\n",
        "a page": "<html><body>404</body></html>",
        "json": '{"t": [1, 2], "a": [3, 4]}',
        "a quote that never ends": f't,a\n"0,1\n{body}',
        "a comment above": f"# made by a device\nt,a\n{body}",
        "a mark of a spreadsheet": f"sep=;\nt;a\n{body.replace(',', ';')}",
        "units below the header": f"t,a\ns,mmHg\n{body}",
        "a sum below": f"t,a\n{body}total,12\n",
        "two tables": f"t,a\n{body}\nt,b\n{body}",
        "spaces for separators": "t a\n" + body.replace(",", " "),
        "colons for separators": "t:a\n" + body.replace(",", ":"),
        "bars for separators": "t|a\n" + body.replace(",", "|"),
        "separators that differ": f"t,a\n{body}1;2\n",
        "a row of separators": f"t,a\n{body},\n",
        "only missing outputs": "t,a\n0,\n1,\n2,\n",
        "only missing inputs": "t,a\n,1\n,2\n,3\n",
        "a missing input": f"t,a\n{body},3\n",
        "nulls": "t,a\n\0,1\n",
    }.items():
        yield fit(f"table: {name}", text, "refused")
    for name, text in {
        "plain": f"t,a\n{body}",
        "no line end at the end": f"t,a\n{body}".rstrip(),
        "line ends of Windows": f"t,a\n{body}".replace("\n", "\r\n"),
        "line ends of old": f"t,a\n{body}".replace("\n", "\r"),
        "blank lines between": f"t,a\n{body}".replace("\n", "\n\n"),
        "blank lines above": f"\n\nt,a\n{body}",
        "spaces about": f"t, a\n{body}".replace(",", ", "),
        "quotes": f"t,a\n{body}".replace(",", '","').replace("\n", '"\n"')[:-1].join(('"', "")),
        "separators at the ends": f"t,a\n{body}".replace("\n", ",\n"),
        "semicolons": f"t,a\n{body}".replace(",", ";"),
        "tabs": f"t,a\n{body}".replace(",", "\t"),
        "decimal commas": f"t,a\n{body}".replace(",", ";").replace(".", ","),
        "a gap": f"t,a\n{body}5,\n",
        "a short row": f"t,a\n{body}5\n",
        "rows in no order": "t,a\n" + "".join(reversed(body.splitlines(keepends=True))),
        "repeated times": f"t,a\n{body}{body}",
        "NA": f"t,a\n{body}5,NA\n6,nan\n7,NULL\n",
        "a constant": "t,a\n" + "".join(f"{k},3\n" for k in range(9)),
        "a gap in all of a row": f"t,a,b\n{body.replace(chr(10), ',1' + chr(10))}7,,\n",
    }.items():
        yield fit(f"table: {name}", text, "done")


def headers() -> Iterator[Line]:
    """Names of columns."""
    body = rows().replace("\n", ",1.5\n").replace(",1.5\n", ",2.5\n", 3)
    for header in ("t,a,a", "t,t,a", "a,a,a", 't,a," a"', "1.5,2,3", "1e3,2,3", "t,a", "t", ""):
        yield fit(f"header: {header!r}", f"{header}\n{body}", "refused")
    names = ("b", "a.1", "index", "ä", "日本", "\U0001f600", "a b", "=cmd()", "<b>", "../x")
    for name in (
        *names,
        "'",
        "n" * 300,
        "nan",
        "t_mean",
        "a_mean",
        "0",
        "%s",
        "{0}",
        "[red]",
        "-x",
    ):
        yield fit(f"header: t,a,{name[:20]}", f"t,a,{name}\n{body}", "done")
    yield fit("header: a saved index", f",t,a\n{body}", "done")
    yield fit("header: Unnamed: 0", f"Unnamed: 0,t,a\n{body}", "done")
    yield fit("header: no names at all", f",,\n{body}", "refused")
    yield fit("header: one name of three", f",,a\n{body}", "refused")
    yield fit("header: a line break", f't,a,"b\nc"\n{body}', "done")


def cells() -> Iterator[Line]:
    """What a cell may hold."""
    body = rows()
    bad = (
        "x",
        "1.2.3",
        "1,5",
        "1 000",
        "#REF!",
        "=1+1",
        "inf",
        "-inf",
        "1e999",
        "0x10",
        "1_0",
        "½",
    )
    for cell in (*bad, "12:30", "2026-01-01", "5%", "$3", "−3", "1j", "[1]", "--", "<1", "--5"):
        yield fit(f"cell: {cell}", f't,a\n{body}9,"{cell}"\n', "refused")
        yield fit(f"input cell: {cell}", f't,a\n{body}"{cell}",9\n', "refused")
    for cell in (
        "+3",
        "-3",
        " 3 ",
        "3.",
        ".3",
        "3e0",
        "3E+2",
        "-0",
        "0003",
        "1e-300",
        "n/a",
        "NaN",
    ):
        yield fit(f"cell: {cell}", f't,a\n{body}9,"{cell}"\n', "done")


def encodings() -> Iterator[Line]:
    """Bytes of text."""
    text = f"t,ä\n{rows()}"
    for name in ("latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "cp037"):
        yield fit(f"encoding: {name}", text.encode(name), "refused")
    for name in ("utf-8", "utf-8-sig"):
        yield fit(f"encoding: {name}", text.encode(name), "done")
    yield fit("encoding: a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "refused")
    yield fit("encoding: an archive", b"PK\3\4" + bytes(range(256)) * 4, "refused")
    yield fit("encoding: compressed", b"\x1f\x8b\x08" + bytes(range(1, 250)), "refused")
    yield fit("encoding: random", np.random.default_rng(0).bytes(5000), "refused")


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
