"""Tables as texts: rows, headers, cells and encodings that do not fit, or do."""

from collections.abc import Iterator

import numpy as np

from torture.lines import Line, fit, rows


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
