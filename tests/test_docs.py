"""The documentation, as far as it can be checked unbuilt: pages, names, links, commands.

The build itself (`sphinx-build -W`) runs every cell; here are the checks that take a second.
"""

import ast
import re
import shlex
from pathlib import Path
from urllib.parse import unquote

import pytest
import typer

from deeplfm.app.cli import app
from test_house_rules import resolve

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
EXECUTED = {"getting_started", "choose_an_ode", "choose_inference", "missing_data", "long_series"}
EXECUTED |= {"extrapolate_safely", "own_ode", "add_a_layer", "add_a_likelihood", "speed"}
EXECUTED |= {"what_a_state_is"}


def blocks(text: str, kind: str) -> list[str]:
    """The bodies of the fenced blocks of one kind."""
    return re.findall(rf"^```{re.escape(kind)}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def prose(text: str) -> str:
    """A page without its front matter and fenced blocks."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def cells(text: str) -> list[str]:
    """The code that is executed, without the options of its cells."""
    return [re.sub(r"\A(:.*\n)+", "", body) for body in blocks(text, "{code-cell}")]


def test_the_index_names_every_page_and_nothing_else() -> None:
    index = (DOCS / "index.md").read_text()
    named = [
        line.strip()
        for body in blocks(index, "{toctree}")
        for line in body.splitlines()
        if line.strip() and not line.startswith(":")
    ]
    assert sorted([*named, "index"]) == [page.stem for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_resolve(page: Path) -> None:
    text = page.read_text()
    names = re.findall(r"`(deeplfm\.\w[.\w]*)`", prose(text))
    names += [f"deeplfm.{name}" for name in re.findall(r"`dlfm\.(\w[.\w]*)", prose(text))]
    for body in blocks(text, "{eval-rst}"):
        for owner, members in re.findall(r"auto\w+:: (\S+)\n(?: +:members:(.*))?", body):
            parts = [name.strip() for name in members.split(",") if name.strip()]
            names += [owner, *(f"{owner}.{part}" for part in parts)]
    for name in names:
        resolve(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    labels = {
        label for one in PAGES for label in re.findall(r"^\((\S+)\)=$", one.read_text(), re.M)
    }
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text())):
        if target.startswith("https://") or target in labels:
            continue
        path, _, anchor = unquote(target).partition("#")
        found = DOCS / path if path else page
        assert found.is_file(), target
        headings = re.findall(r"^#+ (.*)$", prose(found.read_text()), re.MULTILINE)
        slugs = {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
        assert not anchor or anchor in slugs, target
    for image in re.findall(r"^```\{image\} (\S+)$", page.read_text(), re.MULTILINE):
        assert (DOCS / image).is_file(), image


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_is_python(page: Path) -> None:
    text = page.read_text()
    assert bool(cells(text)) == (page.stem in EXECUTED)
    assert ("file_format: mystnb" in text) == (page.stem in EXECUTED)
    for code in [*cells(text), *blocks(text, "python")]:
        ast.parse(code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_shell_commands_are_understood_by_the_command_line(page: Path) -> None:
    """Parsed with the options that `deeplfm` has, and not run."""
    group = typer.main.get_group(app)
    for body in blocks(page.read_text(), "sh"):
        for line in body.replace("\\\n", " ").splitlines():
            program, name, *arguments = shlex.split(line, comments=True)
            assert program == "deeplfm"
            assert name in group.commands, line
            group.commands[name].make_context(name, arguments).close()
    for name in re.findall(r"`deeplfm ([a-z]+)", prose(page.read_text())):
        assert name in group.commands, name


def test_commands_of_the_promised_interface_are_documented() -> None:
    shown = "\n".join(body for page in PAGES for body in blocks(page.read_text(), "sh"))
    for name in typer.main.get_group(app).commands:
        assert f"deeplfm {name} " in shown, name


def test_every_word_of_the_glossary_has_one_meaning_and_one_place() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (DOCS / "glossary.md").read_text().splitlines()
        if line.startswith("|") and not line.startswith(("| word", "|---"))
    ]
    assert len(rows) > 20
    assert all(len(row) == 4 and all(row) for row in rows)
    words = [word for word, *_ in rows]
    assert len(set(words)) == len(words)
    for _, _, where, _ in rows:
        (name,) = re.findall(r"\A`(deeplfm[.\w]+)`\Z", where)
        resolve(name)
