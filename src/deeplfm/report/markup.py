"""HTML from text: every piece of text is escaped here, and only here.

`Html` is what has been escaped; a plain string that reaches these functions is text.
"""

import html
import json
from collections.abc import Sequence
from typing import Any, NewType

Html = NewType("Html", str)


def text(value: str) -> Html:
    """Text as HTML."""
    return Html(html.escape(value, quote=True))


def element(tag: str, *children: Html, **attributes: str) -> Html:
    """<tag attribute="…">children</tag>; `class_` is `class`, `data_x` is `data-x`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value, quote=True)}"'
        for key, value in attributes.items()
    )
    return Html(f"<{tag}{written}>{''.join(children)}</{tag}>")


def paragraph(value: str, class_: str = "") -> Html:
    """One paragraph of text."""
    return element("p", text(value), **({"class_": class_} if class_ else {}))


def bullets(lines: Sequence[str]) -> Html:
    """A list of sentences."""
    return element("ul", *(element("li", text(line)) for line in lines))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str, left: int = 1) -> Html:
    """A table of text; the first `left` columns are words, the others numbers."""
    heads = (element("th", text(cell), scope="col") for cell in head)
    body = []
    for row in rows:
        cells = [
            element("td", text(cell), class_=_look(cell) if column < left else "number")
            for column, cell in enumerate(row)
        ]
        body.append(element("tr", *cells))
    inner = element("caption", text(caption))
    inner = Html(inner + element("thead", element("tr", *heads)) + element("tbody", *body))
    # Wide tables scroll in a box of their own, which the keyboard must reach.
    return element(
        "div",
        element("table", inner),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def _look(cell: str) -> str:
    """Long words need some width, or a phone would break them letter by letter."""
    return "word long" if len(cell) > 12 else "word"


def listing(pairs: Sequence[tuple[str, str]]) -> Html:
    """Terms and what they are."""
    items = (
        element("div", element("dt", text(term)), element("dd", text(value)))
        for term, value in pairs
    )
    return element("dl", *items)


def code(lines: Sequence[str]) -> Html:
    """Lines to copy."""
    return element("pre", element("code", text("\n".join(lines))), tabindex="0")


def chart(identity: str, title: str, description: str, class_: str = "chart") -> Html:
    """The place of a chart, with its title in words for those who do not see it."""
    plot = element("div", id=identity, class_="plot", role="figure", aria_label=description)
    return element("figure", element("figcaption", text(title)), plot, class_=class_)


def section(identity: str, title: str, *parts: Html) -> Html:
    """A part of the page."""
    return element("section", element("h2", text(title)), *parts, id=identity)


def json_block(identity: str, value: Any) -> Html:
    """Data for a script, in a form that no name in it can leave."""
    written = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    for letter in "<>&":
        written = written.replace(letter, f"\\u{ord(letter):04x}")
    return Html(f'<script type="application/json" id="{html.escape(identity)}">{written}</script>')
